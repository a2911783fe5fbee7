"""Topology-aware recall (All-Mem §3.4): visible anchors, links to what is archived, then ranking.

1. Anchors (eq. 7): the k = 10 visible units nearest to the question.
2. Expansion (eq. 8): along typed links, at most H_q = 4 hops, to at most L = 40 candidates with the anchors
   (`expansion`). Archived units come in here, and only here: they are marked (`why["archived"]`, `visible`).
3. Selection: the candidates by cosine with the question, the K = 16 best, each with its evidence.

The parameters are those of app. D.2. An archived unit has no vector in the store, so it is embedded from its
text when it comes in: a few milliseconds each. Units are found whatever their kind; where the paper's unit
holds its own raw evidence, ours names the turns. App. E's ablations are switches: without visibility (anchors
among archived units too, which embeds them all: for benchmarks), recovery links (version, sibling), type
priority, or expansion. Split, Merge and Update are switched where they are done, in consolidation.
"""

from collections.abc import Sequence

import numpy as np

from lamina.streams.recall.expansion import PRIORITY, RECOVERY, Reached, Walk
from lamina.streams.recall.found import TIERS, Asked, Found, Sources, archived, place, said
from lamina.streams.recall.loading import Scored, evidenced, kinds_of, nearest
from lamina.streams.recall.options import Topology
from lamina.streams.records import Unit


async def topology(asked: Asked, sources: Sources, options: Topology) -> list[Found]:
    """Find what a question asks for and what links lead to from there; best first, ties by kind, then id.

    `why` of each: `cosine`, `hops` (0: an anchor), `by` and `from` (the last link's type and source), and
    `archived` (1) for a unit that is no longer visible.

    Args:
        asked: the question; every candidate satisfies its filters.
        sources: the ports; the embedder for archived units only.
        options: parameters and ablation switches.

    Raises:
        StoreUnavailable: the store does not answer.
        TablesUnavailable: the tables do not answer.
        EmbedderUnavailable: an archived unit came in, and the embedder does not answer.
    """
    kinds = kinds_of(asked, TIERS)
    anchors = await nearest(asked, sources, kinds, options.anchors)
    if not options.visibility:
        anchors = sorted([*anchors, *await _hidden(asked, sources)], key=lambda one: place(*one))
    anchors = anchors[: options.anchors]
    walk = Walk(
        asked.namespace,
        sources.tables,
        hops=options.hops if options.expansion else 0,
        most=options.candidates,
        types=tuple(kind for kind in PRIORITY if options.recovery or kind not in RECOVERY),
        priority=options.priority,
        eligible=lambda unit: (unit.visible or archived(unit)) and asked.filters.passes(unit),
    )
    with sources.stage("expand"):
        reached = await walk.expand([unit for unit, _ in anchors])
    cosines = {unit.id: cosine for unit, cosine in anchors}
    others = [one.unit for one in reached if one.unit.id not in cosines]
    with sources.stage("rank"):
        cosines |= dict(
            zip((unit.id for unit in others), await _cosines(others, asked, sources), strict=True)
        )
        scored = [Scored(one.unit, cosines[one.unit.id], _why(one, cosines[one.unit.id])) for one in reached]
        scored.sort(key=lambda one: place(one.unit, one.score))
    most = options.results if asked.top_k is None else asked.top_k
    return await evidenced(asked, sources, scored[:most])


def _why(one: Reached, cosine: float) -> dict[str, float | str]:
    why: dict[str, float | str] = {"cosine": cosine, "hops": one.hops}
    if one.by is not None:
        why |= {"by": one.by, "from": str(one.source)}
    if not one.unit.visible:
        why["archived"] = 1
    return why


async def _cosines(units: Sequence[Unit], asked: Asked, sources: Sources) -> list[float]:
    """Return cosines with the question; what the store does not hold is embedded from its text."""
    if not units:
        return []
    vectors = await sources.store.vectors([unit.id for unit in units])
    missing = [unit for unit in units if unit.id not in vectors]
    if missing:
        rows = await sources.embedder.embed([said(unit) for unit in missing])
        vectors |= dict(zip((unit.id for unit in missing), rows, strict=True))
    return [float(np.dot(vectors[unit.id], asked.vector)) for unit in units]


async def _hidden(asked: Asked, sources: Sources) -> list[tuple[Unit, float]]:
    """Return every archived unit that satisfies the filters, with its cosine: reads the whole namespace."""
    with sources.stage("load"):
        graph = await sources.tables.graph(asked.namespace)
        ids = [unit for unit, visible in graph.visible.items() if not visible and unit not in graph.withheld]
        units = await sources.tables.units(asked.namespace, ids) if ids else {}
    hidden = [unit for unit in units.values() if archived(unit) and asked.filters.passes(unit)]
    return list(zip(hidden, await _cosines(hidden, asked, sources), strict=True))
