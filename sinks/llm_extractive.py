"""The extractive engine: consolidation by rules, for use without a language model.

It calls nothing and cannot fail: the same turns give the same plan on every machine. `engine` on all it
writes says so. It works in a thread, since a long thread takes it a tenth of a second.
"""

import asyncio
from collections.abc import Sequence

from lamina.streams.descriptors import described
from lamina.streams.engine import Cluster, Neighbourhood, Node, Proposal, Related
from lamina.streams.episodes import episode_of, merged_episode
from lamina.streams.facts import facts_across
from lamina.streams.ports import Claim
from lamina.streams.records import Descriptor, Plan, Unit
from lamina.streams.resolution import resolve
from lamina.streams.topology.rule_plans import in_common, merged, parts_of, refreshed
from lamina.streams.topology.rules import diagnose_all


class ExtractiveEngine:
    """The `Engine` port by rules: quoted episodes, and facts that turns state plainly.

    `EpisodeDraft`s rest on all given turns, facts on the turns that state them. A cluster that carries no
    sentence gives an empty plan.
    """

    name = "extractive"

    async def consolidate(self, claim: Claim, cluster: Cluster, related: Related) -> Plan:  # noqa: ARG002
        """Return one episode over all turns, the facts of the new turns only, and these resolved."""
        return await asyncio.to_thread(_plan_of, cluster, self.name)

    async def diagnose(
        self,
        claim: Claim,  # noqa: ARG002
        contexts: Sequence[Neighbourhood],
    ) -> list[tuple[Proposal, ...]]:
        """Propose what the rules of `lamina.streams.topology.rules` are certain of."""
        return await asyncio.to_thread(diagnose_all, contexts)

    async def plan_split(
        self,
        claim: Claim,  # noqa: ARG002
        ordinal: int,  # noqa: ARG002
        target: Node,
        reason: str,  # noqa: ARG002
    ) -> tuple[str, ...] | None:
        """Return the parts that share no word, verbatim."""
        return parts_of(target)[0]

    async def describe(self, claim: Claim, ordinal: int, evidence: Sequence[Unit]) -> Descriptor:  # noqa: ARG002
        """Return the best one or two sentences, dated, and the keywords."""
        return await asyncio.to_thread(described, evidence)

    async def plan_merge(
        self,
        claim: Claim,  # noqa: ARG002
        ordinal: int,  # noqa: ARG002
        sources: Sequence[Node],
        reason: str,  # noqa: ARG002
    ) -> Descriptor | None:
        """Return the words of the source that says most."""
        return merged(sources)

    async def plan_update(
        self,
        claim: Claim,  # noqa: ARG002
        ordinal: int,  # noqa: ARG002
        current: Node,
        superseded: Node,  # noqa: ARG002
        reason: str,  # noqa: ARG002
    ) -> Descriptor | None:
        """Return the current unit's own words, dated."""
        return refreshed(current)

    async def abstract(
        self,
        claim: Claim,  # noqa: ARG002
        ordinal: int,  # noqa: ARG002
        sources: Sequence[Node],
    ) -> Descriptor | None:
        """Return what the sources share by subject and relation, or by keywords; decline where little."""
        return in_common(sources)


def _plan_of(cluster: Cluster, engine: str) -> Plan:
    if cluster.heads:
        episode = merged_episode(cluster.heads, cluster.told, cluster.turns)
    else:
        episode = episode_of(cluster.turns)
    if episode is None:
        return Plan(engine=engine, note="no episode: the turns carry no sentence")
    resolved = (resolve(turn, cluster.before.get(turn.id, ())) for turn in cluster.turns)
    return Plan(
        engine=engine,
        episodes=(episode,),
        facts=facts_across(cluster.turns, cluster.before),
        resolved=tuple(each for each in resolved if each is not None),
    )
