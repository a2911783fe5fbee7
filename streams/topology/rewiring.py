"""Links after an edit: redirected, copied, pruned (All-Mem A.4, eq. 16–17).

Only semantic and sibling links are capped. Version and evidence links are never removed: they are what
keeps every archived unit reachable.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf
from uuid import UUID

from lamina.streams.records import Link, LinkType, Unit
from lamina.streams.topology.bank import Bank, Draft
from lamina.streams.topology.lineage import ancestors


def link_versions(draft: Draft, new: UUID, replaced: Collection[UUID]) -> None:
    """Link a unit to those that it replaces and to their ancestors (All-Mem eq. 12, 15; ancestors: ours)."""
    for target in ancestors(replaced, draft.bank.links.values()):
        draft.link(new, target, "version")


def redirect(draft: Draft, archived: UUID, representatives: Sequence[UUID]) -> None:
    """Point the semantic links that enter an archived unit at its nearest representative (eq. 17).

    Only links from visible units move; their out-degree never grows. Where a similarity is unknown the
    newest representative is taken and the weight stays.
    """
    for link in draft.bank.entering({archived}, "semantic"):
        if not draft.bank.visible(link.source):
            continue
        nearest = _nearest(draft.bank, link.source, representatives)
        draft.unlink(link)
        similarity = draft.bank.similarity(link.source, nearest)
        draft.link(link.source, nearest, "semantic", link.weight if similarity is None else similarity)


def copy_semantic(draft: Draft, archived: Collection[UUID], representatives: Sequence[UUID]) -> None:
    """Give representatives the semantic links that left archived units, by their own similarity, capped."""
    bank = draft.bank
    targets = dict.fromkeys(link.target for link in bank.leaving(archived, "semantic"))
    for new in representatives:
        for target in targets:
            similarity = bank.similarity(new, target)
            if target not in archived and bank.visible(target) and similarity is not None and similarity > 0:
                draft.link(new, target, "semantic", similarity)
    prune(draft, representatives, "semantic")


def link_temporal(draft: Draft, archived: UUID, siblings: Sequence[UUID]) -> None:
    """Keep a split unit's place in time: all siblings take the links that left it, one each that entered.

    The links of the unit itself stay: they say in which order things were said. Bounded by the parent's own
    (a turn has one before it and one after it); `limits.semantic` caps what a faulty bank might hold.
    """
    cap = draft.bank.limits.semantic
    for link in draft.bank.leaving({archived}, "temporal")[:cap]:
        for sibling in siblings:
            draft.link(sibling, link.target, "temporal")
    for link in draft.bank.entering({archived}, "temporal")[:cap]:
        if draft.bank.visible(link.source):
            draft.link(link.source, _nearest(draft.bank, link.source, siblings), "temporal")


def link_siblings(draft: Draft, siblings: Sequence[UUID]) -> None:
    """Link siblings with each other in both directions, each to its nearest where the cap is smaller."""
    bank = draft.bank
    for one in siblings:
        others = [other for other in siblings if other != one]
        others.sort(key=lambda other: (-(bank.similarity(one, other) or 0.0), str(other)))
        for other in others[: bank.limits.sibling]:
            draft.link(one, other, "sibling")


def prune(draft: Draft, sources: Collection[UUID], kind: LinkType) -> None:
    """Keep the strongest links of a type that leave each source, as many as its cap allows."""
    bank = draft.bank
    cap = bank.limits.sibling if kind == "sibling" else bank.limits.semantic
    for source in sources:
        for link in beyond_cap(bank.leaving({source}, kind), cap, bank.units):
            draft.unlink(link)


def beyond_cap(links: Iterable[Link], cap: int, units: Mapping[UUID, Unit]) -> list[Link]:
    """Return the links of one source that its cap has no room for: the weakest.

    Ties go to the newer target, then to the smaller id; a target that is not known goes first.
    """

    def rank(link: Link) -> tuple[float, float, str]:
        target = units.get(link.target)
        return (-link.weight, -target.said_at.timestamp() if target else inf, str(link.target))

    return sorted(links, key=rank)[cap:]


def _nearest(bank: Bank, source: UUID, representatives: Sequence[UUID]) -> UUID:
    """Return the representative most similar to a unit; ties to the newer, then to the smaller id."""

    def rank(key: UUID) -> tuple[float, float, str]:
        similarity = bank.similarity(source, key)
        return (
            1.0 if similarity is None else -similarity,
            -bank.units[key].said_at.timestamp(),
            str(key),
        )

    return min(representatives, key=rank)
