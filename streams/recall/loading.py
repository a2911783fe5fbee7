"""What found ids stand for: rows of the tables, and the turns that they rest on."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from lamina.streams.ports import Hit
from lamina.streams.recall.found import TIERS, Asked, Filters, Found, Sources, Why, in_time, known
from lamina.streams.records import Kind, Unit


@dataclass(frozen=True, slots=True)
class Scored:
    """A unit with what it ranks by and why."""

    unit: Unit
    score: float
    why: Why


async def nearest(
    asked: Asked, sources: Sources, kinds: tuple[Kind, ...], limit: int, *others: Filters
) -> list[tuple[Unit, float]]:
    """Return the visible units nearest to the question with their cosines, best first, ties by id.

    A point that the store still holds for an archived, forgotten or foreign unit is dropped: the tables
    are the truth. With no kinds nothing is asked.

    Args:
        asked: the question; results satisfy its filters.
        sources: the ports.
        kinds: of these kinds only.
        limit: most units per search.
        others: narrower filters: each is one more search in the same call to the store, joined to the first.
    """
    if not kinds:
        return []
    filters = asked.filters
    queries = [one.query(asked.vector, asked.namespace, kinds, limit) for one in (filters, *others)]
    with sources.stage("search"):
        answers = await sources.store.search(queries)
    hits: dict[UUID, Hit] = {hit.id: hit for hits in answers for hit in hits}
    with sources.stage("load"):
        units = await sources.tables.units(asked.namespace, hits.keys()) if hits else {}
    best = sorted(hits.values(), key=lambda hit: (-hit.score, hit.id))
    return [
        (unit, hit.score)
        for hit in best
        if (unit := units.get(hit.id)) is not None
        and unit.visible
        and unit.kind in kinds
        and filters.passes(unit)
    ]


async def evidenced(asked: Asked, sources: Sources, scored: Sequence[Scored]) -> list[Found]:
    """Join scored units with the turns they rest on, in the same order.

    A turn is its own evidence. A derived unit that rests on a turn said after the filters' `as_of` is left
    out: it would tell what could not be known.
    """
    wanted = {turn for one in scored for turn in one.unit.evidence}
    with sources.stage("load"):
        turns = await sources.tables.units(asked.namespace, wanted) if wanted else {}
    found: list[Found] = []
    for one in scored:
        evidence = (one.unit,) if one.unit.kind == "turn" else _present(one.unit.evidence, turns)
        if all(known(turn, asked.filters.as_of) for turn in evidence):
            found.append(Found(one.unit, one.score, TIERS[one.unit.kind], evidence, one.why))
    return found


def kinds_of(asked: Asked, kinds: Collection[Kind]) -> tuple[Kind, ...]:
    """Return those of the kinds that the filters allow."""
    return tuple(kind for kind in asked.filters.kinds if kind in kinds)


def _present(evidence: Iterable[UUID], turns: dict[UUID, Unit]) -> tuple[Unit, ...]:
    return in_time(turns[turn] for turn in evidence if turn in turns)
