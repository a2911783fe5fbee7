"""The extractive engine: consolidation by rules, for use without a language model.

It calls nothing and cannot fail: the same turns give the same plan on every machine. `engine` on all it
writes says so. It works in a thread, since a long thread takes it a tenth of a second.
"""

import asyncio
from collections.abc import Sequence

from lamina.streams.engine import Cluster, Neighbourhood, Node, Proposal, Related
from lamina.streams.episodes import episode_of, merged_episode
from lamina.streams.facts import facts_across
from lamina.streams.ports import Claim
from lamina.streams.records import Descriptor, Plan, Unit


class ExtractiveEngine:
    """The `Engine` port by rules: quoted episodes, and facts that turns state plainly.

    `EpisodeDraft`s rest on all given turns, facts on the turns that state them. A cluster that carries no
    sentence gives an empty plan.
    """

    name = "extractive"

    async def consolidate(self, claim: Claim, cluster: Cluster, related: Related) -> Plan:  # noqa: ARG002
        """Return one episode over all turns, and the facts of the new turns only."""
        return await asyncio.to_thread(self._plan, cluster)

    async def diagnose(
        self,
        claim: Claim,  # noqa: ARG002
        contexts: Sequence[Neighbourhood],
    ) -> list[tuple[Proposal, ...]]:
        """Propose nothing."""
        return [() for _ in contexts]

    async def plan_split(
        self,
        claim: Claim,  # noqa: ARG002
        ordinal: int,  # noqa: ARG002
        target: Node,  # noqa: ARG002
        reason: str,  # noqa: ARG002
    ) -> tuple[str, ...] | None:
        """Decline."""
        return ()

    async def describe(self, claim: Claim, ordinal: int, evidence: Sequence[Unit]) -> Descriptor:  # noqa: ARG002
        """Return the raw text."""
        return Descriptor(summary=" ".join(turn.text for turn in evidence))

    async def plan_merge(
        self,
        claim: Claim,  # noqa: ARG002
        ordinal: int,  # noqa: ARG002
        sources: Sequence[Node],  # noqa: ARG002
        reason: str,  # noqa: ARG002
    ) -> Descriptor | None:
        """Decline."""
        return None

    async def plan_update(
        self,
        claim: Claim,  # noqa: ARG002
        ordinal: int,  # noqa: ARG002
        current: Node,  # noqa: ARG002
        superseded: Node,  # noqa: ARG002
        reason: str,  # noqa: ARG002
    ) -> Descriptor | None:
        """Decline."""
        return None

    async def abstract(self, claim: Claim, ordinal: int, sources: Sequence[Node]) -> Descriptor | None:  # noqa: ARG002
        """Decline."""
        return None

    def _plan(self, cluster: Cluster) -> Plan:
        if cluster.heads:
            episode = merged_episode(cluster.heads, cluster.told, cluster.turns)
        else:
            episode = episode_of(cluster.turns)
        if episode is None:
            return Plan(engine=self.name)
        return Plan(engine=self.name, episodes=(episode,), facts=facts_across(cluster.turns))
