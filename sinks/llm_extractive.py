"""The extractive engine: consolidation by rules, for use without a language model.

It calls nothing and cannot fail: the same turns give the same plan on every machine. `engine` on all it
writes says so. It works in a thread, since a long thread takes it a tenth of a second.
"""

import asyncio
from collections.abc import Callable, Sequence

from lamina.streams.episodes import episode_of, merged_episode
from lamina.streams.facts import facts_across
from lamina.streams.records import EpisodeDraft, Plan, Unit


class ExtractiveEngine:
    """The `Consolidator` port by rules: quoted episodes, and facts that turns state plainly.

    `EpisodeDraft`s rest on all given turns, facts on the turns that state them. A cluster that carries no
    sentence gives an empty plan.
    """

    name = "extractive"

    async def create(self, turns: Sequence[Unit]) -> Plan:
        """Return one episode of the cluster and the facts of its turns."""
        return await asyncio.to_thread(self._plan, turns, lambda: episode_of(turns))

    async def merge(self, heads: Sequence[Unit], turns: Sequence[Unit], new: Sequence[Unit]) -> Plan:
        """Return one episode over all turns, and the facts of the new turns only."""
        return await asyncio.to_thread(self._plan, new, lambda: merged_episode(heads, turns, new))

    def _plan(self, new: Sequence[Unit], write: Callable[[], EpisodeDraft | None]) -> Plan:
        episode = write()
        if episode is None:
            return Plan(engine=self.name)
        return Plan(engine=self.name, episodes=(episode,), facts=facts_across(new))
