"""Chains of memory (Chain-of-Memory §3.2): what was found, joined into paths that lead through the question.

1. Pool (eq. 2): the K = 20 turns nearest to the question.
2. The L best begin a chain each, C^(0) = {m}.
3. A chain takes the candidate of the highest gating score (eq. 3), S(m) = cos(m, q)·cos(m, C^(t)), and ends
   when that falls sharply (eq. 4), S* < β·S of the node appended before it, β = 0.5.
4. A turn stands once in a chain, but may stand in several.

C^(t) is "the embedding of chain C at step t" (faithful: its turns as one text, embedded again; a model with a
short window reads its beginning only). Cheaper and ours: the mean of its turns' vectors, or the last turn's.
The paper leaves open L (ours 3), the score of an anchor, which the first step is compared with (ours cos(q,
m)), and negative cosines, the product of two of which would be a high score (ours: clamped to 0). A score of
0 ends a chain too, since 0 < β·0 never would.

The paper hands chains to a language model; a ranking has one place a turn. Ours: a turn's best score over the
chains that hold it, an anchor's being its cosine; `why` tells chain, step and predecessor, so that a reader
can put them together again. Nodes are turns, the paper's granularity; where the filters leave turns out, what
they allow. Table 3's and 4's variants and figure 3's ablations are switches.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamina.streams.codec import Matrix, Vector
from lamina.streams.ports import Embedder
from lamina.streams.recall.chain_context import Contexts
from lamina.streams.recall.found import Asked, Found, Sources, place
from lamina.streams.recall.loading import Scored, evidenced, nearest
from lamina.streams.recall.options import Chain
from lamina.streams.records import Unit


@dataclass(frozen=True, slots=True)
class Node:
    """A turn in a chain: its place in the pool, its score, and its cosine with the chain before it."""

    place: int
    score: float
    consistency: float


async def chain(asked: Asked, sources: Sources, options: Chain) -> list[Found]:
    """Find turns that lead to an answer one by one; best score first, ties by kind, then id.

    `why` of each: `cosine`; and for the best of the chains that hold it `chain` (1: the best anchor's),
    `step` (0: its anchor), `consistency` (cosine with the chain before it) and `after` (the turn before it);
    `chains` counts the chains that hold it.

    Args:
        asked: the question; every turn satisfies its filters.
        sources: the ports; the embedder once a step where the context is `text`.
        options: parameters and ablation switches.

    Raises:
        StoreUnavailable: the store does not answer.
        TablesUnavailable: the tables do not answer.
        EmbedderUnavailable: the embedder does not answer.
    """
    kinds = ("turn",) if "turn" in asked.filters.kinds else asked.filters.kinds
    pool = await nearest(asked, sources, kinds, options.pool)
    if options.chained and pool:
        with sources.stage("load"):
            vectors = await sources.store.vectors([unit.id for unit, _ in pool])
        # A point may have been archived since it was found.
        pool = [one for one in pool if one[0].id in vectors]
        units = [unit for unit, _ in pool]
        relevance = [cosine for _, cosine in pool]
        matrix = np.stack([vectors[unit.id] for unit in units]) if units else np.zeros((0, 0), np.float32)
        with sources.stage("rank"):
            chains = await grow(units, relevance, matrix, sources.embedder, options)
        scored = _scored(units, relevance, chains)
    else:
        scored = [Scored(unit, cosine, {"cosine": cosine}) for unit, cosine in pool]
    scored.sort(key=lambda one: place(one.unit, one.score))
    return await evidenced(asked, sources, scored[: asked.top_k])


async def grow(
    units: Sequence[Unit], relevance: Sequence[float], vectors: Matrix, embedder: Embedder, options: Chain
) -> list[list[Node]]:
    """Grow the chains, all by one node a step; the first is that of the best anchor.

    Args:
        units: the pool, best first.
        relevance: cosine of each with the question.
        vectors: of the pool, shape (n, dimension), rows of unit length.
        embedder: of a chain's text.
        options: parameters and switches.
    """
    chains = [[Node(place, relevance[place], 1.0)] for place in range(min(options.anchors, len(units)))]
    contexts = Contexts(units, vectors, embedder, options.context)
    growing = list(range(len(chains)))
    while growing := [number for number in growing if len(chains[number]) < len(units)]:
        rows = await contexts.of({number: [node.place for node in chains[number]] for number in growing})
        still: list[int] = []
        for number, context in zip(growing, rows, strict=True):
            one = chains[number]
            best = _successor(one, relevance, vectors @ context, options)
            if not options.truncation or (best.score > 0 and best.score >= options.beta * one[-1].score):
                one.append(best)
                still.append(number)
        growing = still
    return chains


def _successor(
    chain_: Sequence[Node], relevance: Sequence[float], consistency: Vector, options: Chain
) -> Node:
    """Return the node of the highest gating score that the chain does not hold; ties by place in the pool."""
    held = {node.place for node in chain_}
    free = [
        Node(place, gate(relevance[place], float(consistency[place]), options), float(consistency[place]))
        for place in range(len(relevance))
        if place not in held
    ]
    return max(free, key=lambda node: (node.score, -node.place))


def gate(relevance: float, consistency: float, options: Chain) -> float:
    """Return the gating score (eq. 3, table 3) of the cosines with question and chain, both clamped."""
    relevance, consistency = max(relevance, 0.0), max(consistency, 0.0)
    return {
        "product": relevance * consistency,
        "query": relevance,
        "context": consistency,
        "weighted": options.weight * relevance + (1 - options.weight) * consistency,
    }[options.gate]


def _scored(
    units: Sequence[Unit], relevance: Sequence[float], chains: Sequence[Sequence[Node]]
) -> list[Scored]:
    """Return each turn of a chain once, at its best score; of equal ones that of the earlier chain."""
    best: dict[int, Scored] = {}
    held: dict[int, int] = {}
    for number, nodes in enumerate(chains, start=1):
        for step, node in enumerate(nodes):
            held[node.place] = held.get(node.place, 0) + 1
            if node.place in best and best[node.place].score >= node.score:
                continue
            why: dict[str, float | str] = {"cosine": relevance[node.place], "chain": number, "step": step}
            if step:
                why |= {"consistency": node.consistency, "after": str(units[nodes[step - 1].place].id)}
            best[node.place] = Scored(units[node.place], node.score, why)
    return [Scored(one.unit, one.score, {**one.why, "chains": held[at]}) for at, one in best.items()]
