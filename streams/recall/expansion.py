"""Budgeted expansion along typed links: the Expand(A_q; H_q, L) of All-Mem §3.4, eq. 8.

The paper fixes a priority over link types, "favoring versioning/sibling coherence", and no more. Ours:
version links, then sibling links, are followed first, as far as the hops allow; then, hop by hop, temporal
and semantic links, and again whatever version or sibling links they lead to. Among links of one type the
nearer source comes first, then the heavier link, then the smaller id, so that the same memory gives the same
candidates. Links are followed in their direction, as in eq. 3. Evidence links are not followed: evidence
comes with each result.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from lamina.streams.namespace import Namespace
from lamina.streams.ports import Tables
from lamina.streams.records import Link, LinkType, Unit

RECOVERY: tuple[LinkType, ...] = ("version", "sibling")
"""What leads back to archived evidence (All-Mem app. G)."""
PRIORITY: tuple[LinkType, ...] = (*RECOVERY, "temporal", "semantic")

_Key = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reached:
    """A candidate and how it came in: hops from its anchor, the last link's type and source."""

    unit: Unit
    hops: int
    by: LinkType | None = None
    source: UUID | None = None


@dataclass(frozen=True, slots=True)
class Walk:
    """How far links are followed, and which."""

    namespace: Namespace
    tables: Tables
    hops: int
    """H_q: most links from an anchor."""
    most: int
    """L: most candidates, the anchors among them."""
    types: tuple[LinkType, ...] = PRIORITY
    priority: bool = True
    """False: links of all types alike, hop by hop, in the order of their sources and targets."""
    eligible: Callable[[Unit], bool] = lambda _: True
    """What may be a candidate; what may not is no stepping stone either."""

    async def expand(self, anchors: Sequence[Unit]) -> list[Reached]:
        """Return the candidates, the anchors first, in the order in which they came in.

        One read of links and one of units for each group of links that are equal in priority and hops.
        """
        reached = {unit.id: Reached(unit, 0) for unit in anchors[: self.most]}
        refused: set[UUID] = set()
        waiting = await self._leaving(list(reached.values()), reached)
        while waiting and len(reached) < self.most:
            wave = min(key[:2] for key, _, _ in waiting)
            now = sorted(
                (entry for entry in waiting if entry[0][:2] == wave and entry[1].target not in reached),
                key=lambda entry: entry[0],
            )
            waiting = [entry for entry in waiting if entry[0][:2] != wave]
            targets = {link.target for _, link, _ in now} - refused
            units = await self.tables.units(self.namespace, targets) if targets else {}
            refused |= {target for target in targets if not self._may(units.get(target))}
            new: list[Reached] = []
            for _, link, hops in now:
                if link.target not in refused and link.target not in reached and len(reached) < self.most:
                    new.append(Reached(units[link.target], hops, link.type, link.source))
                    reached[link.target] = new[-1]
            waiting += await self._leaving(new, reached)
        return list(reached.values())

    def _may(self, unit: Unit | None) -> bool:
        return unit is not None and self.eligible(unit)

    async def _leaving(
        self, sources: Sequence[Reached], reached: Iterable[UUID]
    ) -> list[tuple[_Key, Link, int]]:
        """Return the links that leave candidates and may still be followed, with their place in the order."""
        near = {one.unit.id: one for one in sources if one.hops < self.hops}
        if not near or not self.types:
            return []
        order = {unit: number for number, unit in enumerate(reached)}
        links = await self.tables.links_from(self.namespace, list(near), self.types)
        return [
            (
                self._key(link, near[link.source].hops + 1, order[link.source]),
                link,
                near[link.source].hops + 1,
            )
            for link in links
            if link.target not in order
        ]

    def _key(self, link: Link, hops: int, source: int) -> _Key:
        """Return the order of a link; the first two parts are its wave."""
        if not self.priority:
            return (0, hops, source, link.target.int)
        kind = PRIORITY.index(link.type)
        return (link.type not in RECOVERY, hops, kind, source, -round(link.weight * 1e6), link.target.int)
