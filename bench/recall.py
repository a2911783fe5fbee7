"""Which turns recall finds: every strategy over the same memories of LoCoMo, question by question.

Each conversation is remembered once, by the pipeline's own steps and the extractive engine; no language
model is called. What is counted is defined in `lamina.bench.recall_report`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from rich.progress import Progress

from lamina.bench.construction import machine
from lamina.bench.locomo import Conversation, LocomoQuestion, load_locomo
from lamina.bench.ranking import distinct
from lamina.bench.recall_memory import Memory, remembered
from lamina.bench.recall_report import DEPTH, Asked, Report
from lamina.bench.recall_strategies import STRATEGIES, Ask
from lamina.streams.ports import Embedder
from lamina.streams.recall.context import pack
from lamina.streams.recall.found import Found
from lamina.streams.settings import Settings

WARMING = 3
"""Questions asked before the clock counts, of each strategy and conversation."""
UNLIMITED = 1_000_000
"""Tokens that no results come near."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What the strategies are measured with."""

    settings: Settings
    embedder: Embedder
    """Without a cache: a question that was embedded before would cost the next strategy nothing."""
    edge: bool


async def measure_recall(data: Path, names: Sequence[str], bench: Bench, progress: Progress) -> Report:
    """Ask every question of every conversation with each strategy.

    Args:
        data: folder of LoCoMo's JSON files.
        names: of the strategies, as in `STRATEGIES`.
        bench: with what.
        progress: gets a bar of turns, then of questions.

    Raises:
        Misconfigured: the folder holds no LoCoMo conversation.
        EmbedderUnavailable: the engine does not answer.
    """
    conversations = load_locomo(data)
    remembering = progress.add_task("remember", total=sum(len(each.turns) for each in conversations))
    asking = progress.add_task("ask", total=len(names) * sum(len(each.questions) for each in conversations))
    asked: list[Asked] = []
    for conversation in conversations:
        async with remembered(
            conversation,
            bench.embedder,
            bench.settings,
            edge=bench.edge,
            told=lambda turns: progress.advance(remembering, turns),
        ) as memory:
            for name in names:
                asked += await _ask_all(conversation, name, memory, told=lambda: progress.advance(asking))
    return Report(
        asked=tuple(asked),
        strategies={name: STRATEGIES[name].says for name in names},
        conversations=tuple(each.id for each in conversations),
        turns=sum(len(each.turns) for each in conversations),
        dropped_evidence=sum(each.dropped_evidence for each in conversations),
        embedder=bench.embedder.name,
        store="Qdrant Edge, its own process" if bench.edge else "this process's memory",
        machine=machine(),
    )


async def _ask_all(
    conversation: Conversation, name: str, memory: Memory, told: Callable[[], None]
) -> list[Asked]:
    ask = await STRATEGIES[name].over(memory)
    for question in conversation.questions[:WARMING]:
        await ask(question.text)
    asked: list[Asked] = []
    for question in conversation.questions:
        asked.append(await _ask(conversation.id, name, question, ask, memory))
        told()
    return asked


async def _ask(conversation: str, strategy: str, question: LocomoQuestion, ask: Ask, memory: Memory) -> Asked:
    begun = perf_counter()
    found = await ask(question.text)
    seconds = perf_counter() - begun
    return Asked(
        conversation=conversation,
        strategy=strategy,
        question=question,
        ranked=turns_of(found, memory),
        tokens=pack(found, UNLIMITED).tokens,
        seconds=seconds,
    )


def turns_of(found: Sequence[Found], memory: Memory) -> tuple[str, ...]:
    """Return the first `DEPTH` distinct turns that results stand for, by the data set's names.

    A turn stands for itself: the other turn of its exchange is shown to the reader, but was not what was
    found. Another unit stands for its evidence turns, in time order.
    """
    turns = (
        memory.names[turn.id]
        for one in found
        for turn in ((one.unit,) if one.unit.kind == "turn" else one.turns)
        if turn.id in memory.names
    )
    return distinct(turns, DEPTH)
