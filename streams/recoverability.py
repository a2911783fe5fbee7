"""Hop-bounded recoverability: how far every archived unit is from a visible one (All-Mem eq. 3, app. G)."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from lamina.streams.records import Kind, LinkType

HOPS = (1, 2, 3, 4)
"""The hop budgets H that are reported; All-Mem's is 4."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The units of a namespace by id with their visibility, and its links."""

    visible: Mapping[UUID, bool]
    kinds: Mapping[UUID, Kind]
    links: tuple[tuple[UUID, UUID, LinkType], ...]
    withheld: frozenset[UUID] = frozenset()
    """Turns that never became visible (gated, unfinished, failed): nobody archived them."""


@dataclass(frozen=True, slots=True)
class Recoverability:
    """How the archived units of a graph are reached from its visible ones."""

    hops: Mapping[UUID, int]
    """h(v) of every archived unit that is reachable (eq. 21)."""
    unreachable: tuple[UUID, ...]
    """Archived units that no path leads to (h = ∞), by id. There must be none."""
    orphans: tuple[tuple[UUID, UUID, LinkType], ...]
    """Links with an end outside the graph."""

    @property
    def archived(self) -> int:
        """Return the number of archived units."""
        return len(self.hops) + len(self.unreachable)

    def coverage(self, hops: int) -> float:
        """Return Cov(H): the fraction of archived units within H hops (eq. 22); 1 where none is archived."""
        if not self.archived:
            return 1.0
        return sum(distance <= hops for distance in self.hops.values()) / self.archived


def recoverability(graph: Graph) -> Recoverability:
    """Measure every archived unit's distance from the visible surface, along directed links of all types.

    One breadth-first search from all visible units at once: O(units + links).
    """
    targets: dict[UUID, list[UUID]] = {}
    orphans: list[tuple[UUID, UUID, LinkType]] = []
    for link in graph.links:
        source, target, _ = link
        if source in graph.visible and target in graph.visible:
            targets.setdefault(source, []).append(target)
        else:
            orphans.append(link)
    distance = {unit: 0 for unit, visible in graph.visible.items() if visible}
    front = list(distance)
    hops = 0
    while front:
        hops += 1
        reached = {target for unit in front for target in targets.get(unit, ()) if target not in distance}
        distance |= dict.fromkeys(reached, hops)
        front = list(reached)
    hidden = (unit for unit, visible in graph.visible.items() if not visible and unit not in graph.withheld)
    archived = sorted(hidden, key=str)
    return Recoverability(
        hops={unit: distance[unit] for unit in archived if unit in distance},
        unreachable=tuple(unit for unit in archived if unit not in distance),
        orphans=tuple(sorted(orphans, key=lambda link: (str(link[0]), str(link[1]), link[2]))),
    )
