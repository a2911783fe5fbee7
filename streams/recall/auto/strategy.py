"""auto: candidates by vector and by words, ranked by late interaction and what a reader would look at.

 question ─▶ pool: 100 nearest, 100 best by BM25, their neighbours ─▶ features ─▶ Σ weight·feature ─▶ turns
          └▶ nearest derived units ─▶ each beside the turns it rests on

Ours; `docs/auto.md` says what each feature is worth. A derived unit ranks by the turns it rests on: a fact
with the best of them, since it says the same; an episode or abstract with the middle one, since it says the
rest too.
"""

from collections.abc import Mapping, Sequence
from statistics import median_low
from uuid import UUID

import numpy as np

from lamina.streams.recall.auto.fusion import Ranked, rank
from lamina.streams.recall.auto.gather import gather
from lamina.streams.recall.auto.pool import Pool
from lamina.streams.recall.found import Asked, Found, Sources, place
from lamina.streams.recall.loading import Scored, evidenced, kinds_of, nearest
from lamina.streams.recall.options import Auto
from lamina.streams.records import Unit


async def auto(asked: Asked, sources: Sources, options: Auto) -> list[Found]:
    """Find what answers a question; best first, ties by kind, then id.

    `why` of a turn: `cosine`, and the term of each feature; the terms sum to `score`. Of another unit:
    `cosine` and `beside`, the id of the turn whose score it has.

    Args:
        asked: the question; dates in it count from `as_of`, else from when it is asked.
        sources: the ports.
        options: how much is looked at and returned.

    Raises:
        StoreUnavailable: the store does not answer.
        TablesUnavailable: the tables do not answer.
    """
    pool = await gather(asked, sources, options)
    with sources.stage("rank"):
        ranked = rank(asked.text, asked.filters.as_of or asked.at, pool)
    scored: list[Scored] = []
    if "turn" in asked.filters.kinds:
        scored += await _turns(asked, sources, pool, ranked, options)
    derived = await nearest(asked, sources, kinds_of(asked, ("fact", "episode", "abstract")), options.derived)
    known = dict(zip(pool.ids, ranked.scores.tolist(), strict=True))
    scored += [_beside(unit, cosine, known) for unit, cosine in derived]
    scored.sort(key=lambda one: place(one.unit, one.score))
    return await evidenced(asked, sources, scored[: asked.top_k])


async def _turns(asked: Asked, sources: Sources, pool: Pool, ranked: Ranked, options: Auto) -> list[Scored]:
    """Return the best turns that the tables know as visible and the filters let pass."""
    # Neighbours may be gated by a filter, and a point may be stale: ask for a few more than are wanted.
    wanted = min(options.turns, asked.top_k or options.turns)
    best = ranked.order[: 2 * wanted].tolist()
    with sources.stage("load"):
        units = await sources.tables.units(asked.namespace, [pool.ids[n] for n in best])
    kept: list[tuple[int, Unit]] = []
    for n in best:
        unit = units.get(pool.ids[n])
        if unit is not None and unit.visible and asked.filters.passes(unit):
            kept.append((n, unit))
    kept = kept[:wanted]
    cosines = await _cosines(asked, sources, pool, [n for n, _ in kept])
    return [
        Scored(unit, float(ranked.scores[n]), {**ranked.why(n), "cosine": cosines[n]}) for n, unit in kept
    ]


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
