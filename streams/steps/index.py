"""index: copy committed units to the vector store. The tables are the truth, the store a copy.

Runs under the namespace's lock, so the row read is the row copied; nothing else writes the store. What a
crash leaves behind is still marked, and `sweep` picks it up with vectors recomputed from the text.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from uuid import UUID

from lamina.streams.codec import Vector
from lamina.streams.late_interaction import TokenVectors
from lamina.streams.metrics import INDEXED
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Before, Leaf, Point, Transaction
from lamina.streams.recall.auto.traits import traits_of
from lamina.streams.records import Status, Unit
from lamina.streams.steps.ports import Ports
from lamina.streams.words import stems

PAGE = 256
"""Units copied under one lock: to embed so many again takes a second or two, and every writer waits."""

NAMESPACES = 64
"""Namespaces locked together."""


async def index(
    namespaces: Iterable[Namespace],
    vectors: Mapping[UUID, Vector],
    ports: Ports,
    *,
    leaves: Mapping[UUID, Leaf] = MappingProxyType({}),
) -> int:
    """Copy every marked unit of the namespaces to the store and return how many were copied.

    Args:
        namespaces: whose units, in one transaction for up to `NAMESPACES` of them.
        vectors: vectors at hand by unit id; others are recomputed from the text.
        ports: the outside.
        leaves: those of turns at hand; a turn whose vector is here and its leaf not is recomputed too.

    Raises:
        StoreUnavailable: the marks stay; calling again, or the sweeper, finishes the work.
    """
    copied = 0
    waiting = sorted(set(namespaces))
    while waiting:
        count = await _copy(waiting[:NAMESPACES], vectors, leaves, ports)
        copied += count
        if count < PAGE:
            waiting = waiting[NAMESPACES:]
    return copied


async def _copy(
    namespaces: Sequence[Namespace], vectors: Mapping[UUID, Vector], leaves: Mapping[UUID, Leaf], ports: Ports
) -> int:
    """Copy up to `PAGE` units of the namespaces; return how many there were."""
    async with ports.tables.transaction(namespaces) as tx:
        units: list[Unit] = []
        for namespace in namespaces:
            units += await tx.dirty(namespace, PAGE - len(units))
            if len(units) == PAGE:
                break
        shown = [unit for unit in units if unit.visible]
        hidden = [unit.id for unit in units if not unit.visible]
        lacking = [
            unit
            for unit in shown
            if unit.id not in vectors or (unit.kind == "turn" and unit.id not in leaves)
        ]
        again, leaves_again = await _recompute(lacking, tx, ports)
        if shown:
            summaries = await _summaries(shown, ports)
            known, known_leaves = {**vectors, **again}, {**leaves, **leaves_again}
            await ports.store.upsert(
                [
                    _point(unit, known[unit.id], summaries.get(unit.id), known_leaves.get(unit.id))
                    for unit in shown
                ]
            )
            ports.metrics.count(INDEXED, len(shown), action="upsert")
        if hidden:
            await ports.store.delete(hidden)
            ports.metrics.count(INDEXED, len(hidden), action="delete")
        await tx.mark_indexed(units)
    return len(units)


def _point(unit: Unit, dense: Vector, summary: Vector | None, leaf: Leaf | None) -> Point:
    return Point(
        id=unit.id,
        namespace=unit.namespace,
        kind=unit.kind,
        session=unit.session,
        speaker=unit.speaker,
        said_at=unit.said_at,
        dense=dense,
        summary=summary,
        leaf=leaf,
    )


def leaf_of(
    turn: Unit,
    tokens: TokenVectors | None,
    previous: Unit | None = None,
    before: TokenVectors | None = None,
) -> Leaf:
    """Return what stands beside a turn's vector in the store.

    Args:
        turn: what was said.
        tokens: its own; None where the embedder gives none.
        previous: the turn before it; it counts where the gate kept it from the store.
        before: the tokens of that turn, from the same pass.
    """
    seen = Counter(stems(turn.spoken))
    gated = previous is not None and previous.status is Status.GATED
    return Leaf(
        ordinal=turn.ordinal,
        stems=tuple(seen),
        seen=tuple(seen.values()),
        traits=tuple(traits_of(turn.text, turn.said_at)),
        tokens=tokens,
        before=Before(previous.id, previous.speaker, previous.said_at, leaf_of(previous, before))
        if gated and previous is not None
        else None,
    )


async def _summaries(units: Sequence[Unit], ports: Ports) -> dict[UUID, Vector]:
    """Embed what describes a turn beside its words: its summary and, where it has some, its keywords."""
    described = {unit.id: unit for unit in units if unit.summary is not None}
    if not described:
        return {}
    rows = await ports.embedder.embed(
        [f"{unit.speaker}: {unit.summary} {', '.join(unit.keywords)}".strip() for unit in described.values()]
    )
    return dict(zip(described, rows, strict=True))


async def _recompute(
    units: Sequence[Unit], tx: Transaction, ports: Ports
) -> tuple[dict[UUID, Vector], dict[UUID, Leaf]]:
    """Embed units again exactly as they were embedded first: a turn after its previous turn."""
    vectors: dict[UUID, Vector] = {}
    leaves: dict[UUID, Leaf] = {}
    turns = [unit for unit in units if unit.kind == "turn"]
    if turns:
        previous = []
        for turn in turns:
            before = await tx.session_slice(turn.namespace, turn.session, turn.ordinal - 1, turn.ordinal)
            previous.append(before[0] if before else None)
        embedded = await ports.embedder.embed_turns(
            [(last.spoken if last else None, turn.spoken) for last, turn in zip(previous, turns, strict=True)]
        )
        nothing = (None,) * len(turns)
        rows = zip(
            turns,
            previous,
            embedded.turn,
            embedded.tokens or nothing,
            embedded.before or nothing,
            strict=True,
        )
        for turn, last, vector, own, of_last in rows:
            vectors[turn.id] = vector
            leaves[turn.id] = leaf_of(turn, own, last, of_last)
    derived = [unit for unit in units if unit.kind != "turn"]
    if derived:
        matrix = await ports.embedder.embed([unit.text for unit in derived])
        vectors.update(zip([unit.id for unit in derived], matrix, strict=True))
    return vectors, leaves


async def sweep(ports: Ports, *, limit: int = 64) -> int:
    """Copy what a crash or an outage left marked, oldest namespaces first; return how many units."""
    return await index(await ports.tables.dirty_namespaces(limit), {}, ports)
