"""remember: store and count, one transaction per batch, then the copy to the vector store."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from lamina.streams.buffer import Buffered
from lamina.streams.count import CountPolicy, Decision, RecurrenceState
from lamina.streams.metrics import MERGES, PROMOTIONS, THETA_SIM, TURNS
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Hit, Query, Transaction
from lamina.streams.records import Command, Link, Status, Unit
from lamina.streams.recurrence import Exchange
from lamina.streams.steps.buffer import issue_due
from lamina.streams.steps.embed import EmbeddedTurn
from lamina.streams.steps.index import index, leaf_of
from lamina.streams.steps.ports import Ports
from lamina.streams.store import neighbours_in_batch, semantic_links, temporal_link


class RecurrenceCache:
    """Recurrence states of the namespaces seen last; a state is used only while its version holds."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._states: OrderedDict[Namespace, tuple[int, RecurrenceState]] = OrderedDict()

    async def state(self, namespace: Namespace, tx: Transaction, ports: Ports) -> RecurrenceState:
        """Return the namespace's state, from memory when nobody else saved it since, and take it out.

        It goes back by `keep` after the commit: a state whose write failed is never used again.
        """
        version = await tx.recurrence_version(namespace)
        cached = self._states.pop(namespace, None)
        if cached is not None:
            self._held -= cached[1].size
            if cached[0] == version:
                return cached[1]
        rows = await tx.recurrence(namespace)
        return RecurrenceState(namespace, rows, CountPolicy.of(ports.settings), ports.embedder.dimension)

    def keep(self, namespace: Namespace, version: int, state: RecurrenceState) -> None:
        """Keep a committed state, dropping the least recently used ones beyond the limit of vectors."""
        self._states[namespace] = (version, state)
        self._held += state.size
        while len(self._states) > 1 and self._held > self._limit:
            _, (_, oldest) = self._states.popitem(last=False)
            self._held -= oldest.size


@dataclass(slots=True)
class Remembered:
    """What one batch led to."""

    units: list[Unit] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    decisions: dict[UUID, Decision] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)


async def remember(batch: Sequence[EmbeddedTurn], ports: Ports, cache: RecurrenceCache) -> Remembered:
    """Store a batch and count its exchanges; a turn or exchange seen before has no second effect.

    Raises:
        TablesUnavailable: nothing was written.
        StoreUnavailable: before the commit nothing was written; after it, the copy is completed by the next
            call or the sweeper.
    """
    # Partition order gives each turn once, but a redelivery may bring it twice in one batch.
    unique = list({each.record.unit.id: each for each in batch}.values())
    kept = [each for each in unique if each.record.unit.status is not Status.GATED]
    namespaces = {each.record.unit.namespace for each in unique}
    vectors = {each.record.unit.id: each.dense for each in kept}
    leaves = {
        each.record.unit.id: leaf_of(each.record.unit, each.tokens, each.record.previous, each.before)
        for each in kept
        if each.tokens is not None or not ports.embedder.token_width
    }
    # What a crash left uncopied must be found as a neighbour, as it would have been without the crash.
    if await ports.tables.has_unindexed(namespaces):
        await index(namespaces, vectors, ports, leaves=leaves)
    found = await _neighbours(kept, ports)
    done = Remembered()
    states: dict[Namespace, tuple[int, RecurrenceState]] = {}
    async with ports.tables.transaction(namespaces) as tx:
        rows = await tx.units({each.record.unit.id for each in unique})
        _store(kept, rows, found, ports, done)
        await tx.update_units(done.units)
        await tx.insert_links(done.links)
        await tx.record_changes([(unit, "created") for unit in done.units], ports.clock.now())
        for namespace in sorted(namespaces):
            state = await cache.state(namespace, tx, ports)
            await _count([e for e in unique if e.record.unit.namespace == namespace], state, tx, ports, done)
            done.commands += await save(namespace, state, tx)
            done.commands += await _buffer(namespace, done, tx, ports)
            states[namespace] = (await tx.recurrence_version(namespace), state)
    for namespace, (version, state) in states.items():
        cache.keep(namespace, version, state)
    _measure(done, ports)
    await index(namespaces, vectors, ports, leaves=leaves)
    return done


async def _buffer(namespace: Namespace, done: Remembered, tx: Transaction, ports: Ports) -> list[Command]:
    """Push new turns to the topology buffer where it may edit turns; derived units come by consolidation."""
    settings = ports.settings
    if not settings.topology or settings.topology_kinds != "all":
        return []
    now = ports.clock.now()
    new = [unit.id for unit in done.units if unit.namespace == namespace]
    await tx.push_buffer(namespace, [Buffered(unit, now) for unit in new])
    command = await issue_due(namespace, tx, settings, now)
    return [command] if command else []


async def save(namespace: Namespace, state: RecurrenceState, tx: Transaction) -> list[Command]:
    """Write what a state decided: rows, claims and commands commit together."""
    delta = state.take()
    if delta.exchanges or delta.threads:
        await tx.save_recurrence(
            namespace, delta.exchanges.values(), delta.threads.values(), similarities=delta.similarities
        )
    await tx.issue_commands(delta.commands)
    return delta.commands


async def _neighbours(kept: Sequence[EmbeddedTurn], ports: Ports) -> list[list[Hit]]:
    cap = ports.settings.semantic_links
    if not kept or not cap:
        return [[] for _ in kept]
    # A link is computed once: it must not depend on how far consolidation has come.
    queries = [
        Query(each.record.unit.namespace, each.dense, ("turn",), cap + 1, words_only=True) for each in kept
    ]
    return await ports.store.search(queries)


def _store(
    kept: Sequence[EmbeddedTurn],
    rows: dict[UUID, Unit],
    found: Sequence[list[Hit]],
    ports: Ports,
    done: Remembered,
) -> None:
    cap = ports.settings.semantic_links
    batch = neighbours_in_batch([(each.record.unit, each.dense) for each in kept], cap)
    for each, stored, near in zip(kept, found, batch, strict=True):
        row = rows.get(each.record.unit.id, each.record.unit)
        if row.status in {Status.REMEMBERED, Status.CONSOLIDATED}:
            continue
        unit = row.model_copy(update={"status": Status.REMEMBERED, "visible": True})
        done.units.append(unit)
        done.links += temporal_link(unit, each.record.after)
        done.links += semantic_links(unit, stored, near, cap)


async def _count(
    batch: Sequence[EmbeddedTurn], state: RecurrenceState, tx: Transaction, ports: Ports, done: Remembered
) -> None:
    exchanges = [(each, exchange) for each in batch if (exchange := exchange_of(each, ports)) is not None]
    seen = await tx.observed({exchange.id for _, exchange in exchanges})
    if exchanges:
        mode = "adaptive" if ports.settings.theta_sim == "adaptive" else "fixed"
        ports.metrics.observe(THETA_SIM, state.theta_sim, mode=mode)
    for each, exchange in exchanges:
        if exchange.id in seen:
            continue
        position = each.record.unit.position
        done.decisions[exchange.id] = state.observe(exchange, position=position, now=ports.clock.now())


def exchange_of(each: EmbeddedTurn, ports: Ports) -> Exchange | None:
    """Return the exchange that a turn closes, if any.

    A salient turn that answers nothing is an exchange of its own at once: it must not wait for a reply that
    may never come.
    """
    unit, previous = each.record.unit, each.record.previous
    now = ports.clock.now()
    if ports.settings.count_unit == "exchange" and each.exchange is not None and previous is not None:
        return Exchange(unit.id, (previous.id, unit.id), unit.said_at, now, each.exchange, unit.salience)
    if unit.status is Status.GATED:
        return None
    if ports.settings.count_unit == "turn" or unit.salience is not None:
        return Exchange(unit.id, (unit.id,), unit.said_at, now, each.dense, unit.salience)
    return None


def _measure(done: Remembered, ports: Ports) -> None:
    ports.metrics.count(TURNS, len(done.units), step="remember", outcome="remembered")
    outcomes = [decision.outcome for decision in done.decisions.values()]
    ports.metrics.count(MERGES, outcomes.count("merges"))
    for command in done.commands:
        if command.kind == "promote":
            ports.metrics.count(PROMOTIONS, reason=command.reason)


async def ripen(ports: Ports, *, limit: int = 64) -> list[Command]:
    """Issue the commands of threads that have been quiet for longer than there is patience, by the clock.

    Works on fresh rows, not on the cache: another worker may own the namespace. A cached state notices by
    its version.
    """
    issued: list[Command] = []
    now, settings = ports.clock.now(), ports.settings
    waited = now - timedelta(seconds=settings.merge_wait_seconds)
    idle = now - timedelta(seconds=settings.merge_idle_seconds)
    for namespace in await ports.tables.idle_namespaces(waited, idle, limit):
        async with ports.tables.transaction([namespace]) as tx:
            rows = await tx.recurrence(namespace)
            state = RecurrenceState(namespace, rows, CountPolicy.of(ports.settings), ports.embedder.dimension)
            state.ripen(position=await tx.position(namespace), now=now)
            issued += await save(namespace, state, tx)
    return issued
