"""Groups of related units that one abstract may stand for (SimpleMem §2.2, eq. 5).

SimpleMem publishes two triggers: that all pairwise affinities of a dense cluster exceed τ (§2.2), and that
its average pairwise similarity does (§3.1). Both are here. β and the unit of Δt are not published: 0.7 and
days are ours, as is how groups are found (greedily, strongest pair first) and what may join one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import exp
from typing import Literal
from uuid import UUID

from lamina.streams.codec import Vector
from lamina.streams.records import Unit
from lamina.streams.topology.values import opposed
from lamina.streams.vector_table import DECIMALS

SMALLEST = 3
"""Fewest units of a group: two that say the same are a merge (ours)."""
LARGEST = 12
"""Most units of a group: bounds the prompt (ours)."""
SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Affinity:
    """ω = β·cos + (1 − β)·e^(−λ·|Δt|), Δt in days, and the threshold τ; defaults as in the settings."""

    trigger: Literal["pairwise", "mean"] = "pairwise"
    threshold: float = 0.85
    beta: float = 0.7
    decay: float = 0.1

    def of(self, one: Unit, other: Unit, cosine: float) -> float:
        """Return what the trigger compares: the affinity (eq. 5), or for `mean` the similarity alone."""
        if self.trigger == "mean":
            return round(cosine, DECIMALS)
        days = abs((one.recent_at - other.recent_at).total_seconds()) / SECONDS_PER_DAY
        return round(self.beta * cosine + (1 - self.beta) * exp(-self.decay * days), DECIMALS)


@dataclass(frozen=True, slots=True)
class Group:
    """Related visible units, oldest first, and why they are one group."""

    units: tuple[UUID, ...]
    weakest: float
    """Smallest figure of any pair."""
    mean: float
    trigger: Literal["pairwise", "mean"]

    @property
    def reason(self) -> str:
        """Return the sentence for the journal."""
        if self.trigger == "pairwise":
            return f"{len(self.units)} units with affinity of each pair ≥ {self.weakest:.2f}"
        return f"{len(self.units)} units with mean similarity {self.mean:.2f}"


def groups(units: Iterable[Unit], vectors: Mapping[UUID, Vector], affinity: Affinity) -> list[Group]:
    """Find disjoint groups of at least three related units, strongest first.

    Args:
        units: visible ones; invisible ones, and those without a vector, are left out.
        vectors: by unit id, unit length.
        affinity: the trigger and its threshold.

    A group is of one kind; facts in it are about one subject, and none excludes another.
    """
    known = {unit.id: unit for unit in units if unit.visible and unit.id in vectors}
    figures = {
        frozenset((one.id, other.id)): affinity.of(one, other, float(vectors[one.id] @ vectors[other.id]))
        for one, other in combinations(known.values(), 2)
        if _may_join(one, other)
    }

    def figure(one: UUID, other: UUID) -> float | None:
        return figures.get(frozenset((one, other)))

    pairs = [
        (value, one, other)
        for one, other in combinations(sorted(known, key=str), 2)
        if (value := figure(one, other)) is not None and value >= affinity.threshold
    ]
    pairs.sort(key=lambda item: (-item[0], str(item[1]), str(item[2])))
    taken: set[UUID] = set()
    found: list[Group] = []
    for _, one, other in pairs:
        if one in taken or other in taken:
            continue
        members = _grow([one, other], [key for key in known if key not in taken], figure, affinity)
        if len(members) >= SMALLEST:
            taken.update(members)
            found.append(_group(members, known, figures, affinity))
    return found


def _grow(
    members: list[UUID],
    candidates: list[UUID],
    figure: Callable[[UUID, UUID], float | None],
    affinity: Affinity,
) -> list[UUID]:
    """Add the unit most alike to the members, as long as the trigger still holds."""
    total = figure(members[0], members[1]) or 0.0
    while len(members) < LARGEST:
        best: tuple[float, str, UUID] | None = None
        size = len(members)
        for key in candidates:
            if key in members:
                continue
            each = [value for member in members if (value := figure(key, member)) is not None]
            if len(each) < size:
                continue
            pairs = size * (size + 1) // 2
            holds = min(each) if affinity.trigger == "pairwise" else (total + sum(each)) / pairs
            if holds >= affinity.threshold:
                rank = (-sum(each), str(key), key)
                best = rank if best is None or rank[:2] < best[:2] else best
        if best is None:
            break
        total -= best[0]
        members = [*members, best[2]]
    return members


def _group(
    members: list[UUID],
    known: Mapping[UUID, Unit],
    figures: Mapping[frozenset[UUID], float],
    affinity: Affinity,
) -> Group:
    ordered = sorted(members, key=lambda key: (known[key].said_at, str(key)))
    values = [figures[frozenset(pair)] for pair in combinations(ordered, 2)]
    return Group(tuple(ordered), min(values), sum(values) / len(values), affinity.trigger)


def _may_join(one: Unit, other: Unit) -> bool:
    if one.kind != other.kind or opposed(one, other):
        return False
    return one.kind != "fact" or (one.subject or "").casefold() == (other.subject or "").casefold()
