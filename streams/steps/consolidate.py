"""consolidate: carry out one claimed `promote` or `merge` (RecMem §3.3–3.4) and record how it ended."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

from lamina.streams.buffer import Buffered
from lamina.streams.codec import Matrix, Vector
from lamina.streams.consolidation import Applied, Current, apply, edit_of, evidence_of, pairs_of
from lamina.streams.engine import Cluster
from lamina.streams.errors import Rejected
from lamina.streams.metrics import DERIVED
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Claim, Query, Transaction
from lamina.streams.records import Command, Link, LinkType, Plan, Status, Unit
from lamina.streams.recurrence import Thread
from lamina.streams.steps.buffer import issue_due
from lamina.streams.steps.index import index
from lamina.streams.steps.outcome import Outcome
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.release import exchange_vectors, exchanges_of, release
from lamina.streams.store import neighbours_in_batch, semantic_links

TURNS_BEFORE = 2
"""Turns before each one in which its references are looked for (SimpleMem eq. 3: window + two)."""


async def consolidate(claim: Claim, ports: Ports, replaces: Callable[[str], bool]) -> Outcome:
    """Ask the engine for a plan and apply it in one transaction with the end of the command.

    Args:
        claim: the command under lease; this owner alone works in the namespace.
        ports: the outside.
        replaces: whether a relation holds one value at a time, where the plan does not say so itself.

    Raises:
        TablesUnavailable, StoreUnavailable, EmbedderUnavailable: the command stays planned.
        ModelUnavailable, BudgetSpent: the same; what was paid is stored.
        UnusableReply: the engine cannot read what the model answered.
    """
    command = claim.command
    # What the last command wrote must be findable before its successor looks for neighbours.
    if await ports.tables.has_unindexed([command.namespace]):
        await index([command.namespace], {}, ports)
    thread = await _thread(command, ports)
    if thread.closed:
        return await release(claim, ports, "no_op", "its thread was closed: no episode was found in it")
    heads = await _heads(thread, ports, command.namespace)
    plan = await _plan(claim, heads, ports)
    texts = [draft.text for draft in plan.drafts]
    vectors = await ports.embedder.embed(texts) if texts else None
    free = {} if plan.episodes or heads else await _claimed_vectors(command, ports)
    now = ports.clock.now()
    async with ports.tables.transaction([command.namespace]) as tx:
        current = await _current(claim, plan, heads, vectors, free, tx, ports)
        applied = apply(plan, current, replaces=replaces, now=now)
        if vectors is not None:
            applied.links += await _semantic(applied, vectors, ports)
        edit = edit_of(applied, current)
        state: Literal["applied", "no_op"] = "applied" if edit else "no_op"
        record, edits = plan.model_dump(mode="json"), (edit,) if edit else ()
        if not await tx.finish_command(claim, state, record, edits=edits, note=plan.note):
            return Outcome("lost")
        await _write(applied, current, tx, now)
        await _buffer(applied, command.namespace, tx, ports, now)
    for unit in applied.inserted:
        ports.metrics.count(DERIVED, kind=unit.kind)
    known = {} if vectors is None else {u.id: vectors[u.ordinal] for u in applied.inserted}
    await index([command.namespace], known, ports)
    return Outcome(state, plan.note)


async def _thread(command: Command, ports: Ports) -> Thread:
    """Return the command's thread as it is at this moment."""
    thread = command.thread and await ports.tables.thread(command.namespace, command.thread)
    if not thread:
        raise Rejected(f"command {command.id} names thread {command.thread}, which does not exist")
    return thread


async def _heads(thread: Thread, ports: Ports, namespace: Namespace) -> list[Unit]:
    """Return the visible episodes that a thread stands for; the owner of the lane alone changes them."""
    units = await ports.tables.units(namespace, thread.heads)
    return [units[head] for head in thread.heads if head in units and units[head].visible]


async def _plan(claim: Claim, heads: list[Unit], ports: Ports) -> Plan:
    command = claim.command
    keys = [key for head in heads for key in head.evidence]
    units = await ports.tables.units(command.namespace, {*keys, *command.evidence})
    turns = _in_order(units[key] for key in command.evidence if key in units)
    cluster = Cluster(
        turns=tuple(turns),
        before=await _before(turns, command.namespace, ports),
        heads=tuple(heads),
        told=tuple(_in_order(units[key] for key in dict.fromkeys(keys) if key in units)),
    )

    async def related(text: str) -> tuple[Unit, ...]:
        return await _known_facts(command.namespace, text, ports)

    plan = await ports.engine.consolidate(claim, cluster, related)
    return plan if ports.settings.resolution else plan.model_copy(update={"resolved": ()})


async def _before(turns: Sequence[Unit], namespace: Namespace, ports: Ports) -> dict[UUID, tuple[Unit, ...]]:
    """Return the turns before each one in its session, gated ones too: they were said."""
    places = {
        turn.id: [(turn.session, turn.ordinal - back) for back in range(TURNS_BEFORE, 0, -1)]
        for turn in turns
    }
    known = await ports.tables.turns_at(namespace, {place for each in places.values() for place in each})
    kept = {place: turn for place, turn in known.items() if turn.status is not Status.FAILED}
    return {key: tuple(kept[place] for place in each if place in kept) for key, each in places.items()}


async def _known_facts(namespace: Namespace, text: str, ports: Ports) -> tuple[Unit, ...]:
    """Return the visible facts nearest to a text (RecMem eq. 8)."""
    if not ports.settings.known_facts:
        return ()
    (vector,) = await ports.embedder.embed([text])
    query = Query(namespace, vector, ("fact",), ports.settings.known_facts)
    (hits,) = await ports.store.search([query])
    units = await ports.tables.units(namespace, [hit.id for hit in hits])
    return tuple(units[hit.id] for hit in hits if hit.id in units and units[hit.id].visible)


def _in_order(turns: Iterable[Unit]) -> list[Unit]:
    return sorted(turns, key=lambda turn: (turn.said_at, turn.position))


async def _claimed_vectors(command: Command, ports: Ports) -> dict[UUID, Vector]:
    async with ports.tables.transaction([command.namespace]) as tx:
        claimed = await tx.exchanges(command.exchanges)
    return await exchange_vectors(command.namespace, claimed, ports)


async def _current(
    claim: Claim,
    plan: Plan,
    heads: Sequence[Unit],
    vectors: Matrix | None,
    free: Mapping[UUID, Vector],
    tx: Transaction,
    ports: Ports,
) -> Current:
    """Read, under the lock, what the plan is applied to."""
    command = claim.command
    facts = await tx.visible_facts(command.namespace, pairs_of(plan))
    # While the engine worked, exchanges may have joined the thread: read what they left of it.
    thread = await _thread(command, ports)
    lost = not plan.episodes and not heads
    return Current(
        command=command,
        thread=thread,
        heads=tuple(heads),
        facts=tuple(facts),
        turns=await tx.units(evidence_of(plan, heads, command)),
        versions=await _versions(command.namespace, [unit.id for unit in (*heads, *facts)], ports),
        vectors=() if vectors is None else tuple(vectors[: len(plan.episodes)]),
        exchanges=tuple(await exchanges_of(claim, thread, tx, waiting=lost)),
        embedded=free,
    )


async def _versions(namespace: Namespace, units: Sequence[UUID], ports: Ports) -> tuple[Link, ...]:
    if not units:
        return ()
    versions: tuple[LinkType, ...] = ("version",)
    direct = await ports.tables.links_from(namespace, units, versions)
    older = {link.target for link in direct}
    return (*direct, *(await ports.tables.links_from(namespace, older, versions) if older else ()))


async def _semantic(applied: Applied, vectors: Matrix, ports: Ports) -> list[Link]:
    """Link new visible units to their neighbours of the same kind: layers are joined by evidence links."""
    cap = ports.settings.semantic_links
    new = [(unit, vectors[unit.ordinal]) for unit in applied.inserted if unit.visible]
    if not new or not cap:
        return []
    found = await ports.store.search(
        [Query(unit.namespace, vector, (unit.kind,), cap + len(applied.archived)) for unit, vector in new]
    )
    gone = {unit.id for unit in applied.archived}
    links: list[Link] = []
    for kind in ("episode", "fact"):
        layer = [(each, hits) for each, hits in zip(new, found, strict=True) if each[0].kind == kind]
        batch = neighbours_in_batch([each for each, _ in layer], cap)
        for ((unit, _), hits), near in zip(layer, batch, strict=True):
            links += semantic_links(unit, [hit for hit in hits if hit.id not in gone], near, cap)
    return links


async def _write(applied: Applied, current: Current, tx: Transaction, now: datetime) -> None:
    await tx.insert_units(applied.inserted)
    await tx.update_units([*applied.archived, *applied.resolved])
    await tx.insert_links(applied.links)
    await tx.record_changes(applied.changes, now)
    if applied.threads or applied.exchanges:
        await tx.save_recurrence(current.command.namespace, applied.exchanges, applied.threads)
    rests_on = {turn for unit in applied.inserted for turn in unit.evidence}
    # A gated turn may stand in an exchange that is consolidated; it stays gated.
    remembered = [turn for turn in rests_on if current.turns[turn].status is Status.REMEMBERED]
    await tx.set_status(remembered, Status.CONSOLIDATED)


async def _buffer(
    applied: Applied, namespace: Namespace, tx: Transaction, ports: Ports, now: datetime
) -> None:
    """Hand the new visible units to topology."""
    new = [unit.id for unit in applied.inserted if unit.visible]
    if not ports.settings.topology or not new:
        return
    await tx.push_buffer(namespace, [Buffered(key, now) for key in new])
    await issue_due(namespace, tx, ports.settings, now)
