"""Version links: a new version is linked to each ancestor, so that long histories stay shallow.

All-Mem links a representative to what it replaces (eq. 12); twelve successive merges would then leave the
first source eleven hops deep. Ours links it to the ancestors of its sources too: to all of them where they
are few, else to `ANCESTORS`, the newest half and an even sample of the older ones, so that four hops reach
a chain of a thousand versions to its end (Cov(4), app. G).
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from uuid import UUID

from lamina.streams.records import Link

ANCESTORS = 64
"""Most ancestors a new version is linked to beyond those that it replaces itself (ours)."""


def ancestors(units: Collection[UUID], links: Iterable[Link], most: int = ANCESTORS) -> list[UUID]:
    """Return the units and all that version links lead to from them, later versions before earlier ones.

    Args:
        units: what a new version replaces; always returned, first, in the given order.
        links: links of any type; those of type `version` that leave the units and their ancestors are
            followed. Where each version was linked to its ancestors by this function, the links of the
            units and of their direct ancestors are enough.
        most: of the further ancestors, how many are returned: half the newest, half spread over the rest.
    """
    targets: dict[UUID, set[UUID]] = {}
    for link in links:
        if link.type == "version":
            targets.setdefault(link.source, set()).add(link.target)
    first = list(dict.fromkeys(units))
    later = [unit for unit in _generations(first, targets) if unit not in first]
    near = most // 2
    older, room = later[near:], most - near
    if len(older) > room:
        older = [older[place * len(older) // room] for place in range(room)]
    return first + later[:near] + older


def _generations(units: Collection[UUID], targets: dict[UUID, set[UUID]]) -> list[UUID]:
    """Order everything reachable so that a unit follows all its successors."""
    sorter: TopologicalSorter[UUID] = TopologicalSorter()
    seen, waiting = set(units), list(units)
    while waiting:
        source = waiting.pop()
        sorter.add(source)
        for target in targets.get(source, ()):
            sorter.add(target, source)
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    with suppress(CycleError):  # no edit makes a cycle; what stands on one is still linked, last
        sorter.prepare()
    ordered: list[UUID] = []
    while ready := sorted(sorter.get_ready(), key=str):
        ordered += ready
        sorter.done(*ready)
    return ordered + sorted(seen.difference(ordered), key=str)
