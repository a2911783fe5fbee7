"""The engine port: what writes memory, by prompts to a model or by rules, and what it is shown."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol
from uuid import UUID

from lamina.streams.ports import Claim
from lamina.streams.records import Descriptor, Plan, Unit


@dataclass(frozen=True, slots=True)
class Cluster:
    """What one `promote` or `merge` command consolidates."""

    turns: tuple[Unit, ...]
    """The turns of its exchanges, in time order: what is new."""
    before: Mapping[UUID, tuple[Unit, ...]] = field(default_factory=dict)
    """For each of them, up to two turns before it in its session (SimpleMem: the scope of coreference)."""
    heads: tuple[Unit, ...] = ()
    """The visible episodes of the thread; empty: none was written yet."""
    told: tuple[Unit, ...] = ()
    """The turns that the heads rest on, in time order."""


@dataclass(frozen=True, slots=True)
class Node:
    """A unit as topology sees it: its descriptor and its raw evidence, in time order (All-Mem eq. 1)."""

    unit: Unit
    evidence: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The local context of one buffered unit: the target and its visible anchors (All-Mem §3.3)."""

    target: Node
    anchors: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """An edit that a diagnosis proposes (All-Mem eq. 5)."""

    operator: Literal["split", "merge", "update"]
    targets: tuple[UUID, ...]
    """Split: one unit; merge: two to four; update: (current, superseded)."""
    reason: str
    confidence: float


Related = Callable[[str], Awaitable[tuple[Unit, ...]]]
"""Known visible facts nearest to a text (RecMem eq. 8)."""


class Engine(Protocol):
    """What writes memory: by prompts to a model, or by rules. `name` stands on every unit it wrote.

    Every method may be called again for the same claim, and then pays for no reply that was stored. Where a
    model is asked, all raise `ModelUnavailable` and `BudgetSpent`. `consolidate` raises `UnusableReply` where
    the reply cannot be read; the topology methods fail closed instead: they return nothing.
    """

    name: str

    async def consolidate(self, claim: Claim, cluster: Cluster, related: Related) -> Plan:
        """Propose the thread's episodes (a next version where it has heads), facts and resolved turns."""

    async def diagnose(self, claim: Claim, contexts: Sequence[Neighbourhood]) -> list[tuple[Proposal, ...]]:
        """Propose edits for each neighbourhood, at once (All-Mem eq. 6)."""

    async def plan_split(
        self, claim: Claim, ordinal: int, target: Node, reason: str
    ) -> tuple[str, ...] | None:
        """Return verbatim segments of the target's evidence; fewer than two decline, None is unusable."""

    async def describe(self, claim: Claim, ordinal: int, evidence: Sequence[Unit]) -> Descriptor:
        """Describe turns, or parts of them; falls back to the raw text (All-Mem app. C.1)."""

    async def plan_merge(
        self, claim: Claim, ordinal: int, sources: Sequence[Node], reason: str
    ) -> Descriptor | None:
        """Return one descriptor for redundant units; None declines or is unusable."""

    async def plan_update(
        self, claim: Claim, ordinal: int, current: Node, superseded: Node, reason: str
    ) -> Descriptor | None:
        """Return the refreshed descriptor of the current unit; None is unusable."""

    async def abstract(self, claim: Claim, ordinal: int, sources: Sequence[Node]) -> Descriptor | None:
        """Return what related units have in common (SimpleMem §2.2); None declines or is unusable."""
