"""θ_sim by a namespace's own similarities (ours; RecMem fixes one value per data set).

How similar two exchanges about the same thing are depends on who talks and about what: of the seven LoCoMo
conversations, the median cosine of an exchange to what was nearest before it runs from 0.64 to 0.74, so one
fixed threshold merges half of one conversation and a fiftieth of another. Here θ_sim is the `QUANTILE` of
those cosines: about that share of exchanges stays apart in every namespace, whatever its style. It is read
before each exchange from the exchanges before it, so it depends on their order alone, never on batches.
"""

from collections.abc import Sequence

BINS = 40
"""Equal bins over [0, 1]; a quantile inside a bin is interpolated."""
QUANTILE = 0.62
"""Nearest to the fixed 0.7 on the seven LoCoMo conversations taken together (`docs/recurrence.md`)."""
LOWEST, HIGHEST = 0.55, 0.85
"""Bounds: below, two of three LoCoMo exchanges end in some thread; above, next to none does."""
START = 0.7
"""θ_sim until enough was seen."""
LEAST = 50
"""Exchanges that are enough."""


def theta_sim(similarities: Sequence[int]) -> float:
    """Return θ_sim for the next exchange.

    Args:
        similarities: `BINS` counts of earlier exchanges, or none.
    """
    seen = sum(similarities)
    if seen < LEAST:
        return START
    wanted = QUANTILE * seen
    below = 0
    for number, count in enumerate(similarities):
        if count and below + count >= wanted:
            quantile = (number + (wanted - below) / count) / BINS
            return min(HIGHEST, max(LOWEST, round(quantile, 4)))
        below += count
    return HIGHEST


def counted(similarities: Sequence[int], cosine: float) -> tuple[int, ...]:
    """Return the counts with one more exchange whose nearest earlier one, or thread, has this cosine."""
    counts = list(similarities) or [0] * BINS
    counts[min(BINS - 1, max(0, int(cosine * BINS)))] += 1
    return tuple(counts)
