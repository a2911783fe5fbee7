"""The prompted engine: consolidation and topology by a language model, grounded before it is believed.

The model is asked through `Ask`, which stores every reply before it is used; what a reply says beyond its
material is left out by `lamina.streams.grounding`, so a reply can be wrong or hostile and the plan is not.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from lamina.streams.descriptors import described
from lamina.streams.engine import Cluster, Neighbourhood, Node, Proposal, Related
from lamina.streams.errors import UnusableReply
from lamina.streams.grounding import described_in, descriptor_in, proposals_in, segments_in
from lamina.streams.grounding_episodes import episodes_in
from lamina.streams.grounding_facts import facts_in, resolved_in
from lamina.streams.grounding_shown import Shown
from lamina.streams.grounding_support import sources_of
from lamina.streams.llm import Ask
from lamina.streams.ports import Claim
from lamina.streams.prompts import (
    abstract,
    consolidate,
    describe,
    diagnose,
    episodes,
    extract_cluster,
    merge_episode,
    plan_merge,
    plan_split,
    plan_update,
    refine,
)
from lamina.streams.prompts.consolidate import Consolidated
from lamina.streams.prompts.material import MOST_TURNS, sample
from lamina.streams.records import Descriptor, EpisodeDraft, FactDraft, Plan, Unit
from lamina.streams.resolution import read

Mode = Literal["fused", "faithful", "direct"]

_LONGEST_QUERY = 1000
"""Characters of joined turns by which known facts are looked up; an embedder reads no more."""
_LONGEST_NOTE = 1000


class PromptedEngine:
    """The `Engine` port by prompts; `name` is the model's.

    `fused` asks once for episodes and the facts they omit; `faithful` asks for the episodes, then for the
    facts of each (RecMem eq. 6–9), `direct` for those of all turns with no episode shown (§4.3): episodes
    then only lead the threads. The topology methods fail closed: an unusable or unsupported reply is no
    proposal, and no plan.
    """

    def __init__(self, asks: Callable[[Claim], Ask], name: str, mode: Mode = "fused") -> None:
        self.name = name
        self._asks = asks
        self._mode = mode

    async def consolidate(self, claim: Claim, cluster: Cluster, related: Related) -> Plan:
        """Return the grounded part of what the model proposes; `note` says what was left out, or why none."""
        shown = await asyncio.to_thread(_shown, cluster)
        ask = self._asks(claim)
        if self._mode == "faithful":
            return await self._apart(ask, shown, related)
        if self._mode == "direct":
            return await self._direct(ask, shown, related)
        return await self._fused(ask, shown, related)

    async def _fused(self, ask: Ask, shown: Shown, related: Related) -> Plan:
        texts = [unit.text for unit in shown.heads or shown.turns]
        known = await related("\n".join(texts)[:_LONGEST_QUERY])
        shown = Shown(shown.turns, shown.readings, shown.heads, shown.told, known)
        reply = await ask.one(consolidate.prompt(shown.turns, shown.readings, shown.heads, known))
        return await asyncio.to_thread(_fused_plan, self.name, reply, shown)

    async def _apart(self, ask: Ask, shown: Shown, related: Related) -> Plan:
        told, why_none, dropped = await self._episodes(ask, shown)
        facts: dict[tuple[str, str, str], FactDraft] = {}
        for ordinal, episode in enumerate(told):
            known = await related(episode.text)
            about = _about(episode, shown, known)
            if not about.turns:  # a known episode that stays as it is
                continue
            prompt = refine.prompt(episode.text, about.turns, about.readings, known)
            reply = await ask.one(prompt, ordinal)
            found, dropped_facts = await asyncio.to_thread(facts_in, reply.facts, about)
            dropped += dropped_facts
            for fact in found:
                facts.setdefault((fact.subject, fact.relation, fact.object.casefold()), fact)
        resolved, _ = resolved_in((), shown)
        note = _note(told, why_none, dropped)
        return Plan(
            engine=self.name, episodes=told, facts=tuple(facts.values()), resolved=resolved, note=note
        )

    async def _direct(self, ask: Ask, shown: Shown, related: Related) -> Plan:
        told, why_none, dropped = await self._episodes(ask, shown)
        texts = "\n".join(unit.text for unit in shown.turns)[:_LONGEST_QUERY]
        shown = replace(shown, known=await related(texts))
        reply = await ask.one(extract_cluster.prompt(shown.turns, shown.readings, shown.known))
        facts, dropped_facts = await asyncio.to_thread(facts_in, reply.facts, shown)
        resolved, _ = resolved_in((), shown)
        note = _note(told, why_none, [*dropped, *dropped_facts])
        return Plan(engine=self.name, episodes=told, facts=facts, resolved=resolved, note=note)

    async def _episodes(
        self, ask: Ask, shown: Shown
    ) -> tuple[tuple[EpisodeDraft, ...], str | None, list[str]]:
        if shown.heads:
            merged = await ask.one(merge_episode.prompt(shown.turns, shown.readings, shown.heads))
            kept, dropped = await asyncio.to_thread(episodes_in, merged.episodes, shown)
            return kept, merged.why_none, dropped
        new = await ask.one(episodes.prompt(shown.turns, shown.readings))
        kept, dropped = await asyncio.to_thread(episodes_in, new.episodes, shown)
        return kept, new.why_none, dropped

    async def diagnose(self, claim: Claim, contexts: Sequence[Neighbourhood]) -> list[tuple[Proposal, ...]]:
        """Return the sound proposals of each neighbourhood; none where its reply is unusable."""
        replies = await self._asks(claim).many(
            [diagnose.prompt(context) for context in contexts], repair=False
        )
        return [
            () if isinstance(reply, Exception) else proposals_in(reply, context)[0]
            for reply, context in zip(replies, contexts, strict=True)
        ]

    async def plan_split(
        self, claim: Claim, ordinal: int, target: Node, reason: str
    ) -> tuple[str, ...] | None:
        """Return the segments, verbatim; fewer than two decline, None is unusable."""
        try:
            reply = await self._asks(claim).one(plan_split.prompt(target, reason), ordinal, repair=False)
        except UnusableReply:
            return None
        return segments_in(reply, sample(target.evidence))

    async def describe(self, claim: Claim, ordinal: int, evidence: Sequence[Unit]) -> Descriptor:
        """Return the model's descriptor where it is dated and supported, else the one by rules."""
        readings = [read(turn, _before(evidence, place)) for place, turn in enumerate(evidence)]
        try:
            reply = await self._asks(claim).one(describe.prompt(evidence, readings), ordinal, repair=False)
        except UnusableReply:
            return described(evidence)
        said = ((reading.text, turn.said_at) for reading, turn in zip(readings, evidence, strict=True))
        sources = sources_of(evidence, tuple(said))
        return described_in(reply.summary, reply.keywords, sources) or described(evidence)

    async def plan_merge(
        self, claim: Claim, ordinal: int, sources: Sequence[Node], reason: str
    ) -> Descriptor | None:
        """Return the supported descriptor of redundant units; None declines or is unusable."""
        try:
            reply = await self._asks(claim).one(plan_merge.prompt(sources, reason), ordinal, repair=False)
        except UnusableReply:
            return None
        return descriptor_in(reply.summary, reply.keywords, sources)[0] if reply.same else None

    async def plan_update(
        self, claim: Claim, ordinal: int, current: Node, superseded: Node, reason: str
    ) -> Descriptor | None:
        """Return the refreshed descriptor, supported by the current unit alone; None is unusable."""
        prompt = plan_update.prompt(current, superseded, reason)
        try:
            reply = await self._asks(claim).one(prompt, ordinal, repair=False)
        except UnusableReply:
            return None
        return descriptor_in(reply.summary, reply.keywords, [current])[0]

    async def abstract(self, claim: Claim, ordinal: int, sources: Sequence[Node]) -> Descriptor | None:
        """Return what related units have in common; None declines or is unusable."""
        try:
            reply = await self._asks(claim).one(abstract.prompt(sources), ordinal, repair=False)
        except UnusableReply:
            return None
        return (
            descriptor_in(reply.statement, reply.keywords, sources, least=0.3)[0] if reply.related else None
        )


def _before(turns: Sequence[Unit], place: int) -> tuple[Unit, ...]:
    """Return up to two turns before a place, of the same session."""
    return tuple(each for each in turns[max(0, place - 2) : place] if each.session == turns[place].session)


def _shown(cluster: Cluster) -> Shown:
    turns = tuple(sample(cluster.turns, MOST_TURNS))
    readings = tuple(read(turn, cluster.before.get(turn.id, ())) for turn in turns)
    return Shown(turns, readings, cluster.heads, cluster.told)


def _fused_plan(engine: str, reply: Consolidated, shown: Shown) -> Plan:
    told, dropped = episodes_in(reply.episodes, shown)
    facts, dropped_facts = facts_in(reply.facts, shown)
    resolved, dropped_answers = resolved_in(reply.resolved, shown)
    return Plan(
        engine=engine,
        episodes=told,
        facts=facts,
        resolved=resolved,
        note=_note(told, reply.why_none, [*dropped, *dropped_facts, *dropped_answers]),
    )


def _about(episode: EpisodeDraft, shown: Shown, known: tuple[Unit, ...]) -> Shown:
    """Return what the refiner of one episode is shown: its new turns alone."""
    rests = set(episode.evidence)
    places = [place for place, turn in enumerate(shown.turns) if turn.id in rests]
    return Shown(
        turns=tuple(shown.turns[place] for place in places),
        readings=tuple(shown.readings[place] for place in places),
        heads=shown.heads,
        told=shown.told,
        known=known,
    )


def _note(told: Sequence[EpisodeDraft], why_none: str | None, dropped: Sequence[str]) -> str | None:
    """Say why there is no episode, and what was left out."""
    declined = [] if told else [f"no episode: {' '.join((why_none or 'none was given').split())[:300]}"]
    parts = [*declined, *(f"left out: {each}" for each in dropped)]
    return "; ".join(parts)[:_LONGEST_NOTE] or None
