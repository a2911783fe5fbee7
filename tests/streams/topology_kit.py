"""What the tests of the topology step share: an embedder that knows synonyms, a scripted engine, a claim."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from lamina.sinks.in_memory import HashEmbedder
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.streams.buffer import Buffered
from lamina.streams.engine import Neighbourhood, Proposal
from lamina.streams.identity import turn_id_from_message
from lamina.streams.journal import JournalEntry
from lamina.streams.namespace import namespace_of
from lamina.streams.placement import arrive
from lamina.streams.ports import Claim
from lamina.streams.records import Descriptor, Placement, Status, Turn, Unit
from lamina.streams.steps.buffer import issue_idle_buffers
from lamina.streams.steps.index import index
from lamina.streams.steps.ports import Ports

ADA = namespace_of("acme", "ada")
NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)

_SYNONYMS = {"residence": "live", "my": "i", "is": "", "hate": "like", "now": "", "moved": "live", "to": "in"}
_SYNONYMS |= {"san": "city", "francisco": "", "new": "city", "york": "", "four": "three", "ve": "have"}


class SynonymEmbedder(HashEmbedder):
    """Words that mean much the same have the same vector, as a trained embedder would have it."""

    async def embed(self, texts):
        return await super().embed([_meant(text) for text in texts])


def _meant(text: str) -> str:
    return " ".join(_SYNONYMS.get(word, word) for word in re.findall(r"\w+", text.lower()))


class Scripted(ExtractiveEngine):
    """An engine that proposes what a test tells it, and plans as the test says (else by the rules)."""

    name = "scripted"

    def __init__(self, script: Callable[[Sequence[Neighbourhood]], Sequence[Sequence[Proposal]]]) -> None:
        self.script = script
        self.asked: list[tuple[str, int]] = []
        """Purpose and ordinal of every planning call, and how many contexts were diagnosed."""
        self.contexts: list[Neighbourhood] = []
        self.plans: dict[str, object] = {}
        """Purpose → reply, or an exception to raise."""

    async def diagnose(self, claim, contexts):
        self.asked.append(("diagnose", len(contexts)))
        self.contexts = list(contexts)
        return [tuple(each) for each in self.script(contexts)]

    async def plan_split(self, claim, ordinal, target, reason):
        return await self._plan("plan_split", ordinal, super().plan_split(claim, ordinal, target, reason))

    async def describe(self, claim, ordinal, evidence):
        self.asked.append(("describe", ordinal))
        return Descriptor(summary=" ".join(turn.text for turn in evidence), keywords=("a",))

    async def plan_merge(self, claim, ordinal, sources, reason):
        return await self._plan("plan_merge", ordinal, super().plan_merge(claim, ordinal, sources, reason))

    async def plan_update(self, claim, ordinal, current, superseded, reason):
        call = super().plan_update(claim, ordinal, current, superseded, reason)
        return await self._plan("plan_update", ordinal, call)

    async def abstract(self, claim, ordinal, sources):
        return await self._plan("abstract", ordinal, super().abstract(claim, ordinal, sources))

    async def _plan(self, purpose, ordinal, by_rules):
        self.asked.append((purpose, ordinal))
        planned = await by_rules
        if purpose not in self.plans:
            return planned
        reply = self.plans[purpose]
        if isinstance(reply, Exception):
            raise reply
        return reply


def for_first(*proposals: Proposal):
    """A script: these for the first neighbourhood, none for the others."""
    return lambda contexts: [proposals if not place else () for place, _ in enumerate(contexts)]


def having(ports: Ports, *, engine=None, **settings) -> Ports:
    changed = ports.settings.model_copy(update=settings)
    return replace(ports, settings=changed, engine=engine or ports.engine)


def a_fact(number: int, text: str, subject="Ada", relation="likes", what=None, **fields) -> Unit:
    since = NOW + timedelta(days=number)
    common = {
        "id": UUID(int=number),
        "namespace": ADA,
        "kind": "fact",
        "session": "s",
        "ordinal": number,
        "text": text,
        "subject": subject,
        "relation": relation,
        "object": what or text.rsplit(maxsplit=1)[-1],
        "said_at": since,
        "valid_from": since,
        "recorded_at": NOW,
        "engine": "scripted",
        "status": Status.CONSOLIDATED,
    }
    return Unit(**common | fields)


def a_turn(number: int, text: str, **fields) -> Unit:
    common = {
        "id": UUID(int=1000 + number),
        "namespace": ADA,
        "kind": "turn",
        "session": f"session-{number}",
        "position": number,
        "speaker": "Ada",
        "text": text,
        "said_at": NOW + timedelta(days=number),
        "recorded_at": NOW,
        "status": Status.REMEMBERED,
    }
    return Unit(**common | fields)


async def written(ports: Ports, *units: Unit, links=(), threads=()) -> None:
    """Write units as if consolidation had, and copy them to the store."""
    async with ports.tables.transaction([ADA]) as tx:
        await tx.advance(ADA, len(units))
        await tx.insert_units(units)
        await tx.insert_links(links)
        await tx.save_recurrence(ADA, (), threads)
    await index([ADA], {}, ports)


async def buffered(ports: Ports, *units: Unit) -> Claim:
    """Push units to the buffer and claim the command that looks at them."""
    async with ports.tables.transaction([ADA]) as tx:
        await tx.push_buffer(ADA, [Buffered(unit.id, NOW) for unit in units])
    commands = await issue_idle_buffers(NOW + timedelta(seconds=1), ports)
    await ports.tables.admit_commands(commands)
    return await claimed(ports)


async def claimed(ports: Ports) -> Claim:
    claim = await ports.tables.claim("test", ports.clock.now(), 60)
    assert claim is not None
    return claim


async def journalled(ports: Ports) -> JournalEntry:
    """Return the newest entry."""
    entries = await ports.tables.journal(ADA)
    return entries[0]


def said(*texts: str) -> list[Placement]:
    """Ada says these, each in a session of its own, a day apart."""
    placements = []
    for number, text in enumerate(texts):
        at = NOW + timedelta(days=number)
        turn = Turn(content=text, name="Ada", message_id=str(number), run_id=f"s{number}", timestamp=at)
        key = turn_id_from_message(ADA, str(number))
        placements.append(arrive(ADA, turn, fallback_id=key, received_at=NOW))
    return placements
