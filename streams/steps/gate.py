"""gate: place a batch of turns, judge each once, and say what goes on to the embedder.

The first recorded verdict wins: a turn that comes again gets the verdict it got. The window is read from
the tables by ordinal, so a verdict does not depend on batches or on when a turn arrived.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lamina.streams.gate import GatePolicy, Similarity, dense_similarity, judge, lexical_similarity
from lamina.streams.metrics import GATE_SCORE, TURNS
from lamina.streams.namespace import Namespace
from lamina.streams.placement import place, reply_closes
from lamina.streams.ports import Transaction
from lamina.streams.records import Admitted, Placement, Status, Unit
from lamina.streams.salience import salience_of
from lamina.streams.steps.buffer import issue_due
from lamina.streams.steps.ports import Ports

KEPT = frozenset({Status.ADMITTED, Status.REMEMBERED, Status.CONSOLIDATED})
UNJUDGED = frozenset({Status.ACCEPTED, Status.FAILED})
"""A failed turn that comes again (redrive) is judged again."""

Place = tuple[Namespace, str, int]


@dataclass(slots=True)
class Judged:
    """What a batch led to, in order."""

    gated: list[Admitted] = field(default_factory=list)
    """For the `gated` topic."""
    forwarded: list[Admitted] = field(default_factory=list)
    """For the embedder: admitted turns, and gated replies to kept turns, whose exchange still counts."""


async def gate(batch: Sequence[Placement], ports: Ports) -> Judged:
    """Place and judge a batch; verdicts are committed before anything is forwarded.

    Raises:
        TablesUnavailable: nothing was written.
        EmbedderUnavailable: with a dense E(·) only; nothing was written.
    """
    async with ports.tables.transaction({each.namespace for each in batch}) as tx:
        placed = list({unit.id: unit for unit in await place(tx, batch)}.values())
        known = await _windows(placed, tx, ports.settings.gate_window)
        fresh = [unit for unit in placed if unit.status in UNJUDGED]
        similarity = await _similarity(known.values() if fresh else (), ports)
        for unit in fresh:
            known[_place_of(unit)] = _judged(unit, known, similarity, ports)
        await tx.update_units([known[_place_of(unit)] for unit in fresh])
        await _count_sessions(fresh, tx, ports)
    judged = Judged()
    for unit in (known[_place_of(each)] for each in placed):
        admitted = _admitted(unit, known, ports.settings.gate_window)
        if unit.status is Status.GATED:
            judged.gated.append(admitted)
            if ports.settings.count_unit == "exchange" and _closes_kept(admitted):
                judged.forwarded.append(admitted)
        elif unit.status is Status.ADMITTED:
            judged.forwarded.append(admitted)
    _measure([known[_place_of(unit)] for unit in fresh], ports)
    return judged


async def _count_sessions(fresh: Sequence[Unit], tx: Transaction, ports: Ports) -> None:
    """Count the sessions that begin, whatever the verdict on their first turn: topology looks every few."""
    if not ports.settings.topology:
        return
    # A failed turn that is judged again was counted when it first came.
    began = Counter(u.namespace for u in fresh if u.ordinal == 0 and u.status is Status.ACCEPTED)
    for namespace, sessions in sorted(began.items()):
        await tx.count_sessions(namespace, sessions)
        await issue_due(namespace, tx, ports.settings, ports.clock.now())


async def _windows(placed: Sequence[Unit], tx: Transaction, window: int) -> dict[Place, Unit]:
    """Return the placed turns and the `window` turns before each, by their place."""
    ordinals: dict[tuple[Namespace, str], list[int]] = {}
    for unit in placed:
        ordinals.setdefault((unit.namespace, unit.session), []).append(unit.ordinal)
    known: dict[Place, Unit] = {}
    for (namespace, session), places in ordinals.items():
        for start, stop in _spans(places, window):
            for unit in await tx.session_slice(namespace, session, start, stop):
                known[_place_of(unit)] = unit
    return known


def _spans(ordinals: Sequence[int], window: int) -> list[tuple[int, int]]:
    """Return the half-open ranges that cover each ordinal and the `window` before it, joined where they meet.

    An old turn that comes again beside a new one does not draw in all that was said between them.
    """
    spans: list[tuple[int, int]] = []
    for ordinal in sorted(ordinals):
        start = max(0, ordinal - window)
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], ordinal + 1)
        else:
            spans.append((start, ordinal + 1))
    return spans


async def _similarity(turns: Iterable[Unit], ports: Ports) -> Similarity:
    """Return E(·)'s cosine; the dense one embeds the window first (the embedder's cache knows most of it)."""
    if ports.settings.gate_similarity == "lexical":
        return lexical_similarity
    texts = list(dict.fromkeys(turn.text for turn in turns))
    vectors = await ports.embedder.embed(texts) if texts else ()
    return dense_similarity(dict(zip(texts, vectors, strict=True)))


def _judged(unit: Unit, known: dict[Place, Unit], similarity: Similarity, ports: Ports) -> Unit:
    settings = ports.settings
    before = [each.text for each in _before(unit, known, settings.gate_window - 1)]
    verdict = judge(unit.text, before, GatePolicy.of(settings), similarity)
    keep = verdict.keep or not settings.gate_enabled
    return unit.model_copy(
        update={
            "status": Status.ADMITTED if keep else Status.GATED,
            "score": verdict.score,
            "reason": verdict.reason,
            "salience": salience_of(unit.text) if settings.salience else None,
        }
    )


def _admitted(unit: Unit, known: dict[Place, Unit], window: int) -> Admitted:
    before = _before(unit, known, window)
    previous = before[-1] if before and before[-1].ordinal == unit.ordinal - 1 else None
    kept = [each.id for each in before if each.status in KEPT]
    return Admitted(
        unit=unit,
        previous=previous,
        reply=previous is not None and reply_closes(previous, unit),
        after=kept[-1] if kept else None,
    )


def _closes_kept(admitted: Admitted) -> bool:
    return admitted.reply and admitted.previous is not None and admitted.previous.status in KEPT


def _before(unit: Unit, known: dict[Place, Unit], count: int) -> list[Unit]:
    ordinals = range(max(0, unit.ordinal - count), unit.ordinal)
    places = [(unit.namespace, unit.session, ordinal) for ordinal in ordinals]
    return [known[place] for place in places if place in known]


def _place_of(unit: Unit) -> Place:
    return unit.namespace, unit.session, unit.ordinal


def _measure(fresh: Sequence[Unit], ports: Ports) -> None:
    for unit in fresh:
        ports.metrics.count(TURNS, step="gate", outcome=str(unit.status))
        ports.metrics.observe(GATE_SCORE, unit.score or 0.0, outcome=str(unit.status))
