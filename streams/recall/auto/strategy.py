"""auto: candidates by vector and by words, ranked by late interaction and what a reader would look at.

 question ─▶ pool: 100 nearest, 100 best by BM25, their neighbours ─▶ features ─▶ Σ weight·feature ─▶ turns
          └▶ nearest derived units ─▶ each beside the turns it rests on

Ours; `docs/auto.md` says what each feature is worth. A derived unit ranks by the turns it rests on: a fact
with the best of them, since it says the same; an episode or abstract with the middle one, since it says the
rest too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lamina.streams.recall.auto.fusion import Ranked, rank
from lamina.streams.recall.auto.gather import gather
from lamina.streams.recall.auto.pool import Pool
from lamina.streams.recall.auto.traits import TRAITS
from lamina.streams.recall.found import Asked, Filters, Found, Sources, in_time, known, place
from lamina.streams.recall.loading import Scored, evidenced
from lamina.streams.recall.options import Auto
from lamina.streams.records import Unit

_SPARE = 3
"""Turns loaded beyond those wanted: the store may still hold a point of one that is archived."""
_ASKS = TRAITS.index("asks")


async def auto(
    asked: Asked, sources: Sources, options: Auto, weights: Mapping[str, float] | None = None
) -> list[Found]:
    """Find what answers a question; best first, ties by kind, then id.

    A turn comes with the turn before it where that asks something: a reply is read with its question.
    `why` of a turn: `cosine`, and the term of each feature; the terms sum to `score`. Of another unit:
    `cosine` and `beside`, the id of the turn whose score it has.

    Args:
        asked: the question; dates in it count from `as_of`, else from when it is asked.
        sources: the ports.
        options: how much is looked at and returned.
        weights: of the features; None: the shipped ones.

    Raises:
        StoreUnavailable: the store does not answer.
        TablesUnavailable: the tables do not answer.
    """
    pool = await gather(asked, sources, options)
    derived = dict(pool.derived)
    with sources.stage("rank"):
        ranked = rank(asked.text, asked.filters.as_of or asked.at, pool, weights)
        best = _best(asked, pool, ranked, options)
    with sources.stage("load"):
        wanted = {turn for one in best for turn in (one.turn, one.asker) if turn is not None} | derived.keys()
        units = await sources.tables.units(asked.namespace, wanted) if wanted else {}
    kept = [one for one in best if _is_result(units.get(one.turn), asked)][: _most(asked, options)]
    cosines = await _cosines(asked, sources, pool, [one.place for one in kept])
    scored = [
        Scored(
            units[one.turn],
            float(ranked.scores[one.place]),
            {**ranked.why(one.place), "cosine": cosines[one.place]},
        )
        for one in kept
    ]
    scores = dict(zip(pool.ids, ranked.scores.tolist(), strict=True)) if derived else {}
    scored += [
        _beside(units[key], cosine, scores)
        for key, cosine in derived.items()
        if _is_result(units.get(key), asked)
    ]
    scored.sort(key=lambda one: place(one.unit, one.score))
    askers = {
        one.turn: asker
        for one in kept
        if one.asker is not None
        and (asker := units.get(one.asker)) is not None
        and known(asker, asked.filters.as_of)
    }
    return [
        replace(one, turns=in_time((askers[one.unit.id], one.unit))) if one.unit.id in askers else one
        for one in await evidenced(asked, sources, scored[: asked.top_k])
    ]


@dataclass(frozen=True, slots=True)
class _Best:
    """A turn that may be a result."""

    place: int
    """In the pool."""
    turn: UUID
    asker: UUID | None
    """The turn before it, where that asks something."""


def _best(asked: Asked, pool: Pool, ranked: Ranked, options: Auto) -> list[_Best]:
    """Return the best turns of a pool, more than are wanted."""
    if "turn" not in asked.filters.kinds:
        return []
    passing = ranked.order[_passing(pool, asked.filters)[ranked.order]]
    asking = {
        (int(pool.session[n]), int(pool.ordinal[n])): pool.ids[n]
        for n in np.flatnonzero(pool.traits[:, _ASKS]).tolist()
    }
    return [
        _Best(n, pool.ids[n], asking.get((int(pool.session[n]), int(pool.ordinal[n]) - 1)))
        for n in passing[: _most(asked, options) + _SPARE].tolist()
    ]


def _passing(pool: Pool, filters: Filters) -> NDArray[np.bool_]:
    """Return which candidates the filters let pass, as far as a pool tells: neighbours need not.

    A session's neighbours are of that session, and what was said after `as_of` is in no pool.
    """
    passing = np.ones(len(pool), np.bool_)
    if filters.speaker is not None:
        named = [place for place, name in enumerate(pool.speakers) if name == filters.speaker]
        passing &= np.isin(pool.speaker, [*named, -1])
    if filters.said_from is not None:
        passing &= pool.said_at >= filters.said_from.timestamp()
    if filters.said_to is not None:
        passing &= pool.said_at <= filters.said_to.timestamp()
    return passing


def _most(asked: Asked, options: Auto) -> int:
    return asked.top_k or options.turns


def _is_result(unit: Unit | None, asked: Asked) -> bool:
    """Tell whether the tables know a unit as visible and the filters let it pass."""
    return unit is not None and unit.visible and asked.filters.passes(unit)


async def _cosines(asked: Asked, sources: Sources, pool: Pool, places: Sequence[int]) -> Mapping[int, float]:
    """Return the cosines of candidates; those that only words found are not in the pool."""
    cosines = {n: float(pool.cosine[n]) for n in places}
    unknown = {pool.ids[n]: n for n, cosine in cosines.items() if np.isnan(cosine)}
    if unknown:
        with sources.stage("search"):
            vectors = await sources.store.vectors(unknown)
        cosines |= {n: float(vectors[turn] @ asked.vector) for turn, n in unknown.items() if turn in vectors}
    return cosines


def _beside(unit: Unit, cosine: float, scores: Mapping[UUID, float]) -> Scored:
    """Return a derived unit with the score of one of its turns; one without a candidate turn comes last."""
    if not scores:
        return Scored(unit, cosine, {"cosine": cosine})
    least = min(scores.values())
    turns = sorted((scores.get(turn, least), turn) for turn in unit.evidence) or [(least, unit.id)]
    score, turn = turns[-1] if unit.kind == "fact" else median_low(turns)
    return Scored(unit, score, {"cosine": cosine, "beside": str(turn)})
