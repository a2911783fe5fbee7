"""Adaptive recall (SimpleMem §2.3): as many results as the question is complex.

Eq. 7 scores a unit by meaning, words and hard constraints,

    S(q, m) = λ1·cos(e_q, v_m) + λ2·BM25(q, S_m) + γ·I(R_m ⊨ C_meta),

eq. 8 sets the depth, k_dyn = ⌊k_base·(1 + δ·C_q)⌋ within [3, 20], and eq. 9 takes the k_dyn best. A simple
question gets high-level abstracts only, a complex one the detail too: episodes, facts, turns. No re-ranking.

The paper publishes [3, 20] and no λ, γ, k_base or δ. Ours: λ1 = λ2 = ½, with BM25 divided by the candidates'
best, since it has no upper bound; k_base = 3 and δ = 17/3, which make [3, 20] of C_q ∈ [0, 1]; C_q by rules
(`complexity`); the constraint as a filter, which is what a hard γ comes to (`constraints`). Candidates are
the 200 nearest units by cosine, and as many within the question's range of time where it names one; the IDF
of BM25 is that of these candidates (`lexical`). Where nothing satisfies names and time, the names are let go,
then the time: an empty answer would help nobody. Where the paper's bank holds abstracts of everything, ours
may hold none: then a simple question gets the best of all kinds.
"""

from collections.abc import Sequence
from dataclasses import replace

from lamina.streams.recall.complexity import Complexity, complexity, depth
from lamina.streams.recall.constraints import Constraints, constraints, telling
from lamina.streams.recall.found import TIERS, Asked, Found, Sources, place, said
from lamina.streams.recall.lexical import bm25
from lamina.streams.recall.loading import Scored, evidenced, kinds_of, nearest
from lamina.streams.recall.options import Adaptive
from lamina.streams.records import Kind, Unit

LEAST, MOST = 3, 20
"""Bounds of k_dyn (SimpleMem table 6)."""

_DERIVED_OR_NOT: tuple[Kind, ...] = tuple(TIERS)
_Candidates = Sequence[tuple[Unit, float]]


async def adaptive(asked: Asked, sources: Sources, options: Adaptive) -> list[Found]:
    """Find what answers a question, as deep as it is complex; best first, ties by kind, then id.

    `why` of each: `cosine`, `bm25` (over the candidates' best), `complexity`, `depth`, and `bound`, the
    constraints that held: `names`, `time`, `names and time`, or `nothing`.

    Args:
        asked: the question; dates in it count from `as_of`, else from when it is asked.
        sources: the ports; each of `search` and `load` is asked twice at most.
        options: parameters and ablation switches.

    Raises:
        StoreUnavailable: the store does not answer.
        TablesUnavailable: the tables do not answer.
    """
    at = asked.filters.as_of or asked.at
    kinds = kinds_of(asked, _DERIVED_OR_NOT if options.consolidation else ("turn",))
    bound = constraints(asked.text, at, ()) if options.constraints else Constraints()
    narrower = (asked.filters.within(bound.start, bound.end),) if bound.dated else ()
    candidates = await nearest(asked, sources, kinds, options.candidates, *narrower)
    with sources.stage("rank"):
        if options.constraints:
            bound = constraints(asked.text, at, {unit.speaker for unit, _ in candidates})
        asks = complexity(telling(asked.text))
        deep = depth(asks.value, options.base, options.delta, LEAST, MOST) if options.depth else options.fixed
        best = _ranked(asked.text, candidates, bound, asks, deep, options)
    return await evidenced(asked, sources, best[: asked.top_k])


def _ranked(
    question: str, candidates: _Candidates, bound: Constraints, asks: Complexity, deep: int, options: Adaptive
) -> list[Scored]:
    """Return the `deep` best candidates by eq. 7 that satisfy the constraints."""
    words = dict(zip((unit.id for unit, _ in candidates), _lexical(question, candidates), strict=True))
    kept, held = _bound_by(bound, candidates)
    if options.depth and asks.low and any(unit.kind == "abstract" for unit, _ in kept):
        kept = [(unit, cosine) for unit, cosine in kept if unit.kind == "abstract"]
    scored = [
        Scored(
            unit,
            options.cosine_weight * cosine + options.lexical_weight * words[unit.id],
            {
                "cosine": cosine,
                "bm25": words[unit.id],
                "complexity": asks.value,
                "depth": deep,
                "bound": held,
            },
        )
        for unit, cosine in kept
    ]
    return sorted(scored, key=lambda one: place(one.unit, one.score))[:deep]


def _bound_by(bound: Constraints, candidates: _Candidates) -> tuple[_Candidates, str]:
    """Return the candidates that satisfy the constraints, and which held."""
    tries = {
        "names and time": bound if bound.names and bound.dated else None,
        "time": replace(bound, names=frozenset()) if bound.dated else None,
        "names": bound if bound.names and not bound.dated else None,
    }
    for held, tried in tries.items():
        kept = [one for one in candidates if tried.met(one[0])] if tried else []
        if kept:
            return kept, held
    return candidates, "nothing"


def _lexical(question: str, candidates: _Candidates) -> list[float]:
    """Return BM25 of each candidate over the best one's, [0, 1]."""
    scores = bm25(question, [_words(unit) for unit, _ in candidates])
    best = max(scores, default=0.0)
    return [score / best for score in scores] if best else scores


def _words(unit: Unit) -> str:
    return " ".join((said(unit), unit.summary or "", *unit.keywords))
