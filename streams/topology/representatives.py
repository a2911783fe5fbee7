"""New units of an edit: siblings of a split, the representative of several units (All-Mem A.1–A.2).

They rest on the evidence of what they stand for, never on its text. A unit made from turns is an episode
(ours): a turn is what was said, and nothing else takes its kind or its place in a session.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lamina.streams.codec import Vector
from lamina.streams.records import Descriptor, Kind, Span, Status, Unit
from lamina.streams.topology.bank import Bank
from lamina.streams.topology.values import layer_of, since


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One sibling of a split as planned: verbatim parts of the target's evidence, described and embedded."""

    spans: tuple[Span, ...]
    descriptor: Descriptor
    vector: Vector
    """`dense` of the descriptor's summary, unit length."""


def words_of(descriptor: Descriptor) -> Descriptor:
    """Return the descriptor with its space collapsed, its keywords each once and none empty (app. C.4)."""
    keywords = (" ".join(word.split()) for word in descriptor.keywords)
    unique = {word.casefold(): word for word in reversed(list(keywords)) if word}
    return Descriptor(
        summary=" ".join(descriptor.summary.split()), keywords=tuple(reversed(list(unique.values())))
    )


def evidence_of(unit: Unit) -> tuple[UUID, ...]:
    """Return the turns that a unit rests on; a turn rests on itself."""
    return (unit.id,) if unit.kind == "turn" else unit.evidence


def sibling(bank: Bank, parent: Unit, part: Part) -> Unit:
    """Return the unit of one part of a split: it rests on the turns of its spans; the next version."""
    named = {span.turn for span in part.spans}
    evidence = [key for key in evidence_of(parent) if key in named]
    turns = [bank.turns[key] for key in evidence if key in bank.turns]
    latest = max(turns, key=lambda turn: (turn.said_at, turn.position), default=parent)
    descriptor = words_of(part.descriptor)
    folded = descriptor.summary.casefold()
    return _unit(
        bank,
        layer_of(parent.kind),
        descriptor,
        latest,
        evidence=tuple(evidence),
        spans=tuple(sorted(part.spans, key=lambda span: (evidence.index(span.turn), span.start))),
        entities=tuple(name for name in parent.entities if name.casefold() in folded),
        speaker=parent.speaker,
        valid_from=parent.valid_from,
        version=parent.version + 1,
    )


def representative(bank: Bank, sources: Sequence[Unit], kind: Kind, descriptor: Descriptor) -> Unit:
    """Return the unit that stands for the sources: all their evidence, earliest validity, next version.

    Subject, relation and object are kept where all sources agree on them. Where facts spell their object in
    several ways ("the peanut", "peanuts") the latest is kept: they are merged because they say the same.
    """
    latest = max(sources, key=lambda unit: (unit.said_at, unit.position, str(unit.id)))
    subject = _common(unit.subject for unit in sources)
    relation = _common(unit.relation for unit in sources)
    value = _common(unit.object for unit in sources) or (latest.object if kind == "fact" else None)
    agreed = None not in {subject, relation, value}
    return _unit(
        bank,
        kind,
        words_of(descriptor),
        latest,
        evidence=_evidence(bank, sources),
        spans=_spans(sources),
        entities=tuple(dict.fromkeys(name for unit in sources for name in unit.entities)),
        speaker=_common(unit.speaker for unit in sources) or "",
        topic=_common(unit.topic for unit in sources),
        subject=subject,
        relation=relation if agreed else None,
        object=value if agreed else None,
        valid_from=min(since(unit) for unit in sources) if kind == "fact" else None,
        occurred_from=min((u.occurred_from for u in sources if u.occurred_from), default=None),
        occurred_to=max((u.occurred_to for u in sources if u.occurred_to), default=None),
        version=1 + max(unit.version for unit in sources),
    )


def _unit(bank: Bank, kind: Kind, descriptor: Descriptor, latest: Unit, **fields: object) -> Unit:
    new = {
        "id": bank.next_id(),
        "namespace": bank.command.namespace,
        "kind": kind,
        "session": latest.session,
        "ordinal": bank.ordinal,
        "text": descriptor.summary,
        "keywords": descriptor.keywords,
        "said_at": latest.said_at,
        "time_source": latest.time_source,
        "recorded_at": bank.now,
        "engine": bank.engine,
        "status": Status.CONSOLIDATED,
    }
    return Unit.model_validate({**new, **fields})


def _evidence(bank: Bank, sources: Sequence[Unit]) -> tuple[UUID, ...]:
    """Return the union of the sources' evidence in time order; turns that are not in the bank come first."""
    union = dict.fromkeys(key for unit in sources for key in evidence_of(unit))

    def told(key: UUID) -> tuple[float, int]:
        turn = bank.turns.get(key)
        return (turn.said_at.timestamp(), turn.position) if turn else (float("-inf"), 0)

    return tuple(sorted(union, key=told))


def _spans(sources: Sequence[Unit]) -> tuple[Span, ...]:
    """Return the sources' spans, without those of turns that one of them rests on whole."""
    whole: set[UUID] = set()
    spans: dict[tuple[UUID, int, int], Span] = {}
    for unit in sources:
        whole |= set(evidence_of(unit)) - {span.turn for span in unit.spans}
        spans |= {(span.turn, span.start, span.end): span for span in unit.spans}
    return tuple(span for span in spans.values() if span.turn not in whole)


def _common(values: Iterable[str | None]) -> str | None:
    """Return the value that all share, as the first spells it; None where they differ or one has none."""
    listed = list(values)
    folded = {value.casefold() if value else None for value in listed}
    return listed[0] if len(folded) == 1 else None


def grounded(spans: Sequence[Span], unit: Unit, turns: Mapping[UUID, Unit]) -> bool:
    """Tell whether spans are non-empty parts of the turns that a unit rests on."""
    evidence = set(evidence_of(unit))
    return bool(spans) and all(
        span.turn in evidence
        and span.start < span.end
        and (span.turn not in turns or span.end <= len(turns[span.turn].text))
        for span in spans
    )


def validity_end(superseded: Unit, current: Unit) -> datetime | None:
    """Return when a superseded fact stopped to hold: when the current one began, or had it ended earlier."""
    if superseded.kind != "fact":
        return superseded.valid_to
    begun = since(current)
    return begun if superseded.valid_to is None else min(superseded.valid_to, begun)
