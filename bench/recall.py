"""What recall finds: every strategy over the same memories of a data set, question by question.

Each conversation is remembered once, by the pipeline's own steps and the extractive engine; no language
model is called. An ablation of how memory is built has a memory of its own. What is counted is defined in
`lamina.bench.recall_report` for LoCoMo, whose evidence is turns, and in `lamina.bench.recall_sessions` for
LongMemEval, whose evidence is sessions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import perf_counter

from rich.progress import Progress

from lamina.bench.construction import machine
from lamina.bench.conversation import Conversation, Dataset, Level, Question
from lamina.bench.dataset import load
from lamina.bench.longmemeval import ABSTENTION
from lamina.bench.ranking import distinct
from lamina.bench.recall_ablations import BASES, ROWS
from lamina.bench.recall_memory import Memory, remembered
from lamina.bench.recall_report import DEPTH, Asked, Report
from lamina.bench.recall_sessions import SessionReport
from lamina.bench.recall_strategies import Ask
from lamina.streams.ports import Embedder
from lamina.streams.recall.context import pack
from lamina.streams.recall.found import Found
from lamina.streams.records import Unit
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


async def measure_recall(
    data: Path, names: Sequence[str], bench: Bench, progress: Progress
) -> Report | SessionReport:
    """Ask every question of every conversation with each strategy.

    Args:
        data: LoCoMo, as a folder or a file, or a file of LongMemEval.
        names: of the rows, as in `ROWS`.
        bench: with what.
        progress: gets a bar of turns, then of questions.

    Raises:
        Misconfigured: it is neither.
        EmbedderUnavailable: the engine does not answer.
    """
    dataset = load(data)
    conversations = _asked_of(dataset)
    groups = _by_memory(names)
    remembering = progress.add_task(
        "remember", total=len(groups) * sum(len(each.turns) for each in conversations)
    )
    asking = progress.add_task("ask", total=len(names) * sum(len(each.questions) for each in conversations))
    asked: list[Asked] = []
    for conversation, group in product(conversations, groups):
        async with remembered(
            conversation,
            bench.embedder,
            bench.settings.model_copy(update=dict(ROWS[group[0]].built)),
            edge=bench.edge,
            told=lambda turns: progress.advance(remembering, turns),
        ) as memory:
            for name in group:
                asked += await _ask_all(
                    conversation, name, memory, dataset.level, told=lambda: progress.advance(asking)
                )
    report = SessionReport if dataset.level == "session" else Report
    return report(
        asked=tuple(asked),
        strategies={name: ROWS[name].says for name in names},
        conversations=tuple(each.id for each in conversations),
        turns=sum(len(each.turns) for each in conversations),
        dropped_evidence=sum(each.dropped_evidence for each in conversations),
        embedder=bench.embedder.name,
        store="Qdrant Edge, its own process" if bench.edge else "this process's memory",
        machine=machine(),
        bases={name: of for name, of in BASES.items() if {name, of} <= set(names)},
    )


def _by_memory(names: Sequence[str]) -> list[list[str]]:
    """Return the rows in groups that ask the same memory."""
    groups: list[list[str]] = []
    for name in names:
        same = [group for group in groups if ROWS[group[0]].built == ROWS[name].built]
        if same:
            same[0].append(name)
        else:
            groups.append([name])
    return groups


async def _ask_all(
    conversation: Conversation, name: str, memory: Memory, level: Level, told: Callable[[], None]
) -> list[Asked]:
    ask = await ROWS[name].over(memory)
    for question in conversation.questions[:WARMING]:
        await ask(question.text)
    asked: list[Asked] = []
    for question in conversation.questions:
        found, seconds = await _timed(ask, question)
        asked.append(
            Asked(
                conversation=conversation.id,
                strategy=name,
                question=question,
                ranked=turns_of(found, memory) if level == "turn" else sessions_of(found, memory),
                tokens=pack(found, UNLIMITED).tokens,
                seconds=seconds,
            )
        )
        told()
    return asked


async def _timed(ask: Ask, question: Question) -> tuple[Sequence[Found], float]:
    begun = perf_counter()
    found = await ask(question.text)
    return found, perf_counter() - begun


def turns_of(found: Sequence[Found], memory: Memory) -> tuple[str, ...]:
    """Return the first `DEPTH` distinct turns that results stand for, by the data set's names.

    A turn stands for itself: the other turn of its exchange is shown to the reader, but was not what was
    found. Another unit stands for its evidence turns, in time order.
    """
    return distinct((memory.names[turn.id] for turn in _stands_for(found, memory)), DEPTH)


def sessions_of(found: Sequence[Found], memory: Memory) -> tuple[str, ...]:
    """Return the first `DEPTH` distinct sessions of the turns that results stand for, by their names."""
    return distinct((turn.session for turn in _stands_for(found, memory)), DEPTH)


def _stands_for(found: Sequence[Found], memory: Memory) -> Iterator[Unit]:
    return (
        turn
        for one in found
        for turn in ((one.unit,) if one.unit.kind == "turn" else one.turns)
        if turn.id in memory.names
    )


def _asked_of(dataset: Dataset) -> list[Conversation]:
    """Return the conversations of which anything can be found: what was never said cannot be."""
    return [
        each
        for each in dataset.conversations
        if any(question.category != ABSTENTION for question in each.questions)
    ]
