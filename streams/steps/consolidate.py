"""consolidate: carry out one claimed command (RecMem §3.3–3.4) and record how it ended."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lamina.streams.codec import Matrix
from lamina.streams.consolidation import Applied, Current, apply, evidence_of, pairs_of
from lamina.streams.engine import Cluster
from lamina.streams.errors import Rejected
from lamina.streams.metrics import DERIVED
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Claim, Query, Transaction
from lamina.streams.records import Command, Link, Plan, Status, Unit
from lamina.streams.recurrence import Thread
from lamina.streams.steps.index import index
from lamina.streams.steps.ports import Ports
from lamina.streams.store import neighbours_in_batch, semantic_links


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended."""

    state: Literal["applied", "no_op", "lost"]
    """`lost`: a newer owner took the lane; nothing was written."""
    applied: Applied | None = None


async def consolidate(claim: Claim, ports: Ports, replaces: Callable[[str], bool]) -> Outcome:
    """Ask the engine for a plan and apply it in one transaction with the end of the command.

    Args:
        claim: the command under lease; this owner alone works in the namespace.
        ports: the outside.
        replaces: whether a relation holds one value at a time.

    Raises:
        TablesUnavailable, StoreUnavailable, EmbedderUnavailable: the command stays planned.
    """
    command = claim.command
    # What the last command wrote must be findable before its successor looks for neighbours.
    if await ports.tables.has_unindexed([command.namespace]):
        await index([command.namespace], {}, ports)
    heads = await _heads(await _thread(command, ports), command, ports)
    plan = await _plan(claim, heads, ports)
    texts = [draft.text for draft in plan.drafts]
    vectors = await ports.embedder.embed(texts) if texts else None
    now = ports.clock.now()
    async with ports.tables.transaction([command.namespace]) as tx:
        turns = await tx.units(evidence_of(plan, heads, command))
        facts = await tx.visible_facts(command.namespace, pairs_of(plan))
        # While the engine worked, exchanges may have joined the thread: read what they left of it.
        thread = await _thread(command, ports)
        current = Current(command, thread, tuple(heads), tuple(facts), turns)
        applied = apply(plan, current, replaces=replaces, now=now)
        state: Literal["applied", "no_op"] = "applied" if applied.inserted else "no_op"
        if not await tx.finish_command(claim, state, plan.model_dump(mode="json")):
            return Outcome("lost")
        if vectors is not None:
            applied.links += await _semantic(applied, vectors, ports)
        await _write(applied, current, tx, now)
    for unit in applied.inserted:
        ports.metrics.count(DERIVED, kind=unit.kind)
    known = {} if vectors is None else {u.id: vectors[u.ordinal] for u in applied.inserted}
    await index([command.namespace], known, ports)
    return Outcome(state, applied)


async def _thread(command: Command, ports: Ports) -> Thread:
    """Return the command's thread as it is at this moment."""
    thread = command.thread and await ports.tables.thread(command.namespace, command.thread)
    if not thread:
        raise Rejected(f"command {command.id} names thread {command.thread}, which does not exist")
    return thread


async def _heads(thread: Thread, command: Command, ports: Ports) -> list[Unit]:
    """Return the episodes that a thread stands for; the owner of the lane alone changes them."""
    units = await ports.tables.units(command.namespace, thread.heads)
    return [units[head] for head in thread.heads]


async def _plan(claim: Claim, heads: list[Unit], ports: Ports) -> Plan:
    command = claim.command
    keys = [key for head in heads for key in head.evidence]
    units = await ports.tables.units(command.namespace, {*keys, *command.evidence})
    cluster = Cluster(
        turns=tuple(_in_order(units[key] for key in command.evidence if key in units)),
        heads=tuple(heads),
        told=tuple(_in_order(units[key] for key in dict.fromkeys(keys) if key in units)),
    )

    async def related(text: str) -> tuple[Unit, ...]:
        return await _known_facts(command.namespace, text, ports)

    return await ports.engine.consolidate(claim, cluster, related)


async def _known_facts(namespace: Namespace, text: str, ports: Ports) -> tuple[Unit, ...]:
    """Return the visible facts nearest to a text (RecMem eq. 8)."""
    (vector,) = await ports.embedder.embed([text])
    query = Query(namespace, vector, ("fact",), ports.settings.known_facts)
    (hits,) = await ports.store.search([query])
    units = await ports.tables.units(namespace, [hit.id for hit in hits])
    return tuple(units[hit.id] for hit in hits if hit.id in units and units[hit.id].visible)


def _in_order(turns: Iterable[Unit]) -> list[Unit]:
    return sorted(turns, key=lambda turn: (turn.said_at, turn.position))


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
    await tx.update_units(applied.archived)
    await tx.insert_links(applied.links)
    await tx.record_changes(applied.changes, now)
    if applied.thread is not None:
        await tx.save_recurrence(current.command.namespace, (), [applied.thread])
    rests_on = {turn for unit in applied.inserted for turn in unit.evidence}
    # A gated turn may stand in an exchange that is consolidated; it stays gated.
    remembered = [turn for turn in rests_on if current.turns[turn].status is Status.REMEMBERED]
    await tx.set_status(remembered, Status.CONSOLIDATED)
