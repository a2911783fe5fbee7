"""How good a ranking is: recall, hit and NDCG at a depth, over the evidence of one question.

Every function takes distinct items, best first, and the items that should have been found. Nothing to find
counts 0: whoever leaves such questions out does so before.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from math import log2
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def distinct(items: Iterable[T], most: int | None = None) -> tuple[T, ...]:
    """Return the items at their first place, at most `most` of them."""
    return tuple(dict.fromkeys(items))[:most]


def recall(ranked: Sequence[T], evidence: Collection[T], k: int) -> float:
    """Return the fraction of the evidence among the first k."""
    return len(set(ranked[:k]) & set(evidence)) / len(evidence) if evidence else 0.0


def hit(ranked: Sequence[T], evidence: Collection[T], k: int) -> float:
    """Return 1 where any evidence is among the first k, else 0."""
    return float(not set(evidence).isdisjoint(ranked[:k]))


def recall_all(ranked: Sequence[T], evidence: Collection[T], k: int) -> float:
    """Return 1 where all the evidence is among the first k, else 0."""
    return float(bool(evidence) and set(evidence) <= set(ranked[:k]))


def ndcg(ranked: Sequence[T], evidence: Collection[T], k: int) -> float:
    """Return DCG@k with gain 1 and discount 1/log2(rank + 1), over that of the ideal ranking.

    The ideal has all the evidence first, as far as it fits into k (Järvelin and Kekäläinen 2002).
    """
    found = sum(_discount(rank) for rank, item in enumerate(ranked[:k], 1) if item in evidence)
    ideal = sum(_discount(rank) for rank in range(1, min(len(evidence), k) + 1))
    return found / ideal if ideal else 0.0


def _discount(rank: int) -> float:
    return 1 / log2(rank + 1)
