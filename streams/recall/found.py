"""What every strategy of recall takes and gives: the question, the filters, the ports, what was found."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from lamina.streams.codec import Vector
from lamina.streams.late_interaction import QuestionTokens
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Embedder, Query, Tables, VectorStore
from lamina.streams.records import Kind, Status, Unit

Tier = Literal["subconscious", "episodic", "semantic"]
"""RecMem's names of the layers: exchanges, episodes, facts; an abstract is of the last."""

TIERS: Mapping[Kind, Tier] = {
    "turn": "subconscious",
    "episode": "episodic",
    "fact": "semantic",
    "abstract": "semantic",
}
"""The tier of each kind of unit; the order of the kinds breaks ties between equal scores."""

Stage = Callable[[Literal["search", "load", "expand", "rank"]], AbstractContextManager[object]]
"""Wraps a stage of the recall, so that a caller with a clock can time it; a stage may come more than once."""

Why = Mapping[str, float | str]
"""The reasons of a result by name. `cosine`, with the question, is always among a strategy's."""

_JUST_BEFORE = timedelta(microseconds=1)
_ORDER = {kind: rank for rank, kind in enumerate(TIERS)}
_KEPT = frozenset({Status.REMEMBERED, Status.CONSOLIDATED})


@dataclass(frozen=True, slots=True)
class Filters:
    """What a memory must satisfy to be found; both ends of a time range are included."""

    kinds: tuple[Kind, ...] = tuple(TIERS)
    session: str | None = None
    speaker: str | None = None
    said_from: datetime | None = None
    said_to: datetime | None = None
    as_of: datetime | None = None
    """What could be known at this time: nothing said later, no fact that holds only from later on."""

    def query(self, question: Vector, namespace: Namespace, kinds: tuple[Kind, ...], limit: int) -> Query:
        """Return the question to the store that holds a namespace's units to these filters."""
        ends = [end for end in (self.said_to, self.as_of) if end is not None]
        return Query(
            namespace=namespace,
            dense=question,
            kinds=kinds,
            limit=limit,
            sessions=() if self.session is None else (self.session,),
            speakers=() if self.speaker is None else (self.speaker,),
            said_from=self.said_from,
            said_to=min(ends, default=None),
        )

    def within(self, start: datetime | None, end: datetime | None) -> "Filters":
        """Return these filters narrowed to what was said from `start` on and before `end`; None: open."""
        starts = [each for each in (self.said_from, start) if each is not None]
        ends = [each for each in (self.said_to, end and end - _JUST_BEFORE) if each is not None]
        return replace(self, said_from=max(starts, default=None), said_to=min(ends, default=None))

    def passes(self, unit: Unit) -> bool:
        """Tell whether a unit that the store was not asked for satisfies them too."""
        return (
            unit.kind in self.kinds
            and self.session in {None, unit.session}
            and self.speaker in {None, unit.speaker}
            and (self.said_from is None or unit.said_at >= self.said_from)
            and (self.said_to is None or unit.said_at <= self.said_to)
            and known(unit, self.as_of)
        )


@dataclass(frozen=True, slots=True)
class Found:
    """A memory and why it was found.

    `unit` is a turn (of an exchange: the best), or the episode, fact or abstract; `score` what the strategy
    ranks by, with `tiers` its cosine with the question; `turns` its evidence in time order: with `tiers` the
    whole exchange for a turn, else the turn itself.
    """

    unit: Unit
    score: float
    tier: Tier
    turns: tuple[Unit, ...]
    why: Why = field(default_factory=dict)

    @property
    def cosine(self) -> float:
        """Return the cosine with the question, which is comparable over strategies."""
        return float(self.why.get("cosine", self.score))


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A question to one namespace."""

    text: str
    vector: Vector
    """Shape (dimension,), unit length."""
    namespace: Namespace
    """The only one that is read."""
    at: datetime
    """When it is asked, UTC: what "last week" counts from, unless the filters say `as_of`."""
    filters: Filters = field(default_factory=Filters)
    top_k: int | None = None
    """Most results; None: as many as the strategy gives."""
    tokens: QuestionTokens | None = None
    """Of the question, from the pass that gave its vector; None where the embedder gives none."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The ports that a strategy reads through."""

    store: VectorStore
    tables: Tables
    embedder: Embedder
    stage: Stage = nullcontext


def known(unit: Unit, as_of: datetime | None) -> bool:
    """Tell whether a unit was said, and holds if it is a fact, by the given time; None: ever."""
    if as_of is None:
        return True
    return unit.said_at <= as_of and (unit.valid_from is None or unit.valid_from <= as_of)


def said(unit: Unit) -> str:
    """Return a unit's text as it is embedded alone: a turn with its speaker."""
    return unit.spoken if unit.kind == "turn" else unit.text


def archived(unit: Unit) -> bool:
    """Tell whether consolidation took a unit from sight; a gated turn was never in sight."""
    return not unit.visible and unit.status in _KEPT


def in_time(turns: Iterable[Unit]) -> tuple[Unit, ...]:
    """Return turns in the order in which they were said."""
    return tuple(sorted(turns, key=lambda turn: (turn.said_at, turn.position)))


def rank(found: Found) -> tuple[float, int, UUID]:
    """Return the key that sorts results best first; ties by kind, then id."""
    return place(found.unit, found.score)


def place(unit: Unit, score: float) -> tuple[float, int, UUID]:
    """Return the key that sorts scored units best first; ties by kind, then id."""
    return (-score, _ORDER[unit.kind], unit.id)
