"""The ways from a question to its answer that `qa` and `niah` set side by side, by name.

Most fill a block that a reader then answers from: with the whole history, with its end, or with what a
strategy recalls. `deep` reads the history itself, with a chat model.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from lamina.bench.qa_reader import Read, Reader
from lamina.bench.recall_memory import Memory
from lamina.bench.recall_strategies import STRATEGIES, Strategy
from lamina.sinks.system_clock import SystemClock
from lamina.streams.llm import Ask
from lamina.streams.recall.context import Packed, Packing, pack, tokens_of
from lamina.streams.recall.deep.budget import Budget
from lamina.streams.recall.deep.doors import Doors, Question, Reading
from lamina.streams.recall.deep.events import Answered as Final
from lamina.streams.recall.deep.sandbox import Sandbox
from lamina.streams.recall.deep.strategy import deep
from lamina.streams.recall.found import Found
from lamina.streams.recall.standing import standing
from lamina.streams.records import Unit
from lamina.streams.settings import Settings

TRUNCATED_CHARACTERS = 16_000
"""Of the end of a history that a truncated one keeps (RLM-Memory §7.1)."""
UNLIMITED = 10_000_000
"""Tokens that no history comes near."""
BUDGET = 1000
"""Tokens of the block that a strategy fills: the default of `POST /v1/context`."""
DEEP = "deep"


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, and what it was read from."""

    text: str
    grounded: bool
    """False where memory was said to hold no answer."""
    block: str | None
    """What the reader was shown; None where it read the history itself."""
    tokens: int
    """Of the block; of `deep`, of all its prompts and replies."""
    results: tuple[str, ...] = ()
    """What was recalled, best first, each with the turns that it shows; empty where nothing is ranked."""


Answer = Callable[[str], Awaitable[Answered]]
"""Answers one question from one memory."""


@dataclass(frozen=True, slots=True)
class Programs:
    """What `deep` needs more than a memory."""

    ask: Ask
    sandbox: Sandbox
    settings: Settings


@dataclass(frozen=True, slots=True)
class Desk:
    """What every way of a run has in common."""

    reader: Reader
    budget: int = BUDGET
    """Tokens of the block that a strategy fills, four UTF-8 bytes each."""
    programs: Programs | None = None
    """Of `deep`; without them it cannot be chosen."""

    def at_once(self, way: str) -> int:
        """Return how many questions may be on their way at the same time."""
        if way == DEEP and self.programs is not None:
            return min(self.reader.at_once, self.programs.settings.deep_at_once)
        return self.reader.at_once

    def free(self, way: str) -> bool:
        """Tell whether a question costs nothing but time: then some are asked to warm up."""
        return self.reader.free and way != DEEP


@dataclass(frozen=True, slots=True)
class Way:
    """A way of answering."""

    says: str
    over: Callable[[Memory, Read, Desk], Awaitable[Answer]]
    """Prepares it over a memory, given the reader prepared over the same; this time is not counted."""


async def _full(memory: Memory, read: Read, desk: Desk) -> Answer:
    return _said(memory.turns, read, desk.reader.packing)


async def _truncated(memory: Memory, read: Read, desk: Desk) -> Answer:
    room = TRUNCATED_CHARACTERS
    kept: list[Unit] = []
    for turn in reversed(memory.turns):
        room -= len(turn.spoken) + 1
        if room < 0:
            break
        kept.append(turn)
    return _said(kept[::-1], read, desk.reader.packing)


def _said(turns: Sequence[Unit], read: Read, packing: Packing) -> Answer:
    """Show the same turns whatever is asked; their tokens are those of the plain lines, without citations."""
    found = [Found(turn, 0.0, "subconscious", (turn,)) for turn in turns]
    plain = tokens_of("\n".join(turn.spoken for turn in turns))
    packed = replace(pack(found, UNLIMITED, packing), tokens=plain)

    async def answer(question: str) -> Answered:
        return await _read(question, found, packed, read)

    return answer


def _recalled(strategy: Strategy) -> Way:
    async def over(memory: Memory, read: Read, desk: Desk) -> Answer:
        ask = await strategy.over(memory)

        async def answer(question: str) -> Answered:
            found = await ask(question)
            told = await standing(found, memory.namespace, memory.tables, None)
            answered = await _read(question, found, pack(found, desk.budget, desk.reader.packing, told), read)
            return replace(answered, results=tuple(map(_shown, found)))

        return answer

    return Way(strategy.says, over)


def _shown(one: Found) -> str:
    units = one.turns if one.unit.kind == "turn" else (one.unit,)
    return "\n".join(unit.text for unit in units)


async def _read(question: str, found: Sequence[Found], packed: Packed, read: Read) -> Answered:
    given = await read(question, found, packed)
    return Answered(given.text, given.grounded, packed.text, packed.tokens)


async def _deep(memory: Memory, _: Read, desk: Desk) -> Answer:
    assert desk.programs is not None  # noqa: S101 - who offers `deep` has looked
    programs, settings = desk.programs, desk.programs.settings
    doors = Doors(memory.tables, programs.ask, programs.sandbox, SystemClock(), asyncio.timeout)
    budget = Budget(settings.deep_programs, settings.deep_calls, settings.deep_tokens, settings.deep_seconds)
    reading = Reading(settings.deep_turns, settings.deep_characters, settings.deep_sub_query_characters)

    async def answer(question: str) -> Answered:
        asked = Question(question, memory.namespace, memory.asked_at)
        async with aclosing(deep(asked, doors, budget, reading)) as events:
            async for event in events:
                last = event
        assert isinstance(last, Final)  # noqa: S101 - what `deep` promises
        return Answered(last.text, last.grounded, None, last.tokens)

    return answer


RECALLED: Mapping[str, Way] = {name: _recalled(strategy) for name, strategy in STRATEGIES.items()}
"""Everything that `lamina bench recall` compares, each filling the block."""
HISTORY: Mapping[str, Way] = {
    "full": Way("the whole history in the block, whatever its length", _full),
    "truncated": Way(f"the last {TRUNCATED_CHARACTERS:,} characters of it, whole turns", _truncated),
}
WAYS: Mapping[str, Way] = {
    **HISTORY,
    **RECALLED,
    DEEP: Way("RLM-Memory §4: the model reads the history by programs of its own", _deep),
}
"""All, in the order in which they are shown."""
