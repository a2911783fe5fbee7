"""How well questions are answered from memory: recalled, packed into a budget, answered, and scored.

Each conversation is remembered once, by the pipeline's own steps and the extractive engine; every question is
then asked in every way (`lamina.bench.qa_ways`). What is counted is defined in `lamina.bench.qa_report`.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from rich.progress import Progress

from lamina.bench.asking import BenchAsk
from lamina.bench.construction import machine
from lamina.bench.conversation import Conversation, Question
from lamina.bench.dataset import load
from lamina.bench.judge import judged, unanswerable
from lamina.bench.qa_report import Report
from lamina.bench.qa_rows import Asked
from lamina.bench.qa_ways import WAYS, Answer, Desk
from lamina.bench.recall_memory import remembered
from lamina.bench.scores import Scores, check_installed, contains, score
from lamina.streams.llm import Ask
from lamina.streams.ports import Embedder
from lamina.streams.settings import Settings

WARMING = 3
"""Questions asked before the clock counts, in each way of each conversation; none where a model is paid."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Who judges the answers."""

    name: str
    ask: Ask


@dataclass(frozen=True, slots=True)
class Bench:
    """What the ways are measured with."""

    settings: Settings
    embedder: Embedder
    """Without a cache: a question that was embedded before would cost the next strategy nothing."""
    edge: bool
    desk: Desk
    judge: Judge | None = None
    runs: int = 1
    """Times every question is asked; memory is made once."""
    models: Sequence[BenchAsk] = ()
    """Whose cost is reported: of those that read and judge."""


async def measure_qa(data: Path, names: Sequence[str], bench: Bench, progress: Progress) -> Report:
    """Ask every question of every conversation in each way, and score the answers.

    Args:
        data: LoCoMo or LongMemEval, as `lamina.bench.dataset.load` reads it.
        names: of the ways, as in `WAYS`; `deep` where the desk has programs.
        bench: with what.
        progress: gets a bar of turns, then of questions.

    Raises:
        Misconfigured: the path holds no such data, or the extra `bench` is not installed.
        EmbedderUnavailable: the engine does not answer.
        ModelUnavailable: the reader or the judge did not answer, again and again.
    """
    check_installed()
    dataset = load(data)
    turns = sum(len(each.turns) for each in dataset.conversations)
    questions = sum(len(each.questions) for each in dataset.conversations)
    remembering = progress.add_task("remember", total=turns)
    asking = progress.add_task("ask", total=len(names) * bench.runs * questions)
    asked: list[Asked] = []
    for conversation in dataset.conversations:
        async with remembered(
            conversation,
            bench.embedder,
            bench.settings,
            edge=bench.edge,
            told=lambda count: progress.advance(remembering, count),
        ) as memory:
            read = await bench.desk.reader.over(memory)
            for name in names:
                answer = await WAYS[name].over(memory, read, bench.desk)
                one = _One(conversation, name, answer, bench, lambda: progress.advance(asking))
                asked += await one.ask_all()
    return Report(
        asked=tuple(asked),
        dataset=dataset.name,
        strategies={name: WAYS[name].says for name in names},
        conversations=tuple(each.id for each in dataset.conversations),
        turns=turns,
        budget=bench.desk.budget,
        runs=bench.runs,
        reader=bench.desk.reader.name,
        reader_says=bench.desk.reader.says,
        at_once=bench.desk.reader.at_once,
        judge=bench.judge.name if bench.judge else None,
        embedder=bench.embedder.name,
        store="Qdrant Edge, its own process" if bench.edge else "this process's memory",
        machine=machine(),
        cost={ask.name: ask.cost for ask in bench.models},
    )


@dataclass(frozen=True, slots=True)
class _One:
    """One way over one conversation."""

    conversation: Conversation
    way: str
    answer: Answer
    bench: Bench
    told: Callable[[], None]

    async def ask_all(self) -> list[Asked]:
        """Ask every question in every run, as many at once as may be."""
        if self.bench.desk.free(self.way):
            for question in self.conversation.questions[:WARMING]:
                await self.answer(question.text)
        slots = asyncio.Semaphore(self.bench.desk.at_once(self.way))

        async def one(question: Question, run: int) -> Asked:
            async with slots:
                return await self._ask(question, run)

        try:
            async with asyncio.TaskGroup() as group:
                asked = [
                    group.create_task(one(question, run))
                    for run in range(self.bench.runs)
                    for question in self.conversation.questions
                ]
        except ExceptionGroup as faults:
            # The first fault has ended the others: none of them shall read a memory that is closed.
            raise faults.exceptions[0] from faults
        return [task.result() for task in asked]

    async def _ask(self, question: Question, run: int) -> Asked:
        begun = perf_counter()
        given = await self.answer(question.text)
        seconds = perf_counter() - begun
        judge = self.bench.judge
        right = (
            await judged(question, given.text, abstained=not given.grounded, ask=judge.ask) if judge else None
        )
        self.told()
        return Asked(
            conversation=self.conversation.id,
            strategy=self.way,
            run=run,
            question=question,
            said=given.text,
            abstained=not given.grounded,
            in_block=_in_block(question, given.block),
            scores=scored(question, given.text, abstained=not given.grounded),
            right=right,
            unjudged=judge is not None and right is None,
            tokens=given.tokens,
            seconds=seconds,
        )


def scored(question: Question, said: str, *, abstained: bool) -> Scores:
    """Score an answer; where the question has none, abstaining is all there is to score (LoCoMo's way)."""
    if unanswerable(question):
        right = float(abstained)
        return Scores(right, right, right, right, right)
    return Scores(0.0, 0.0, 0.0, 0.0, 0.0) if abstained else score(said, question.answer)


def _in_block(question: Question, block: str | None) -> bool | None:
    """Tell whether the gold answer stands in the block, where there are both."""
    if block is None or unanswerable(question):
        return None
    return contains(block, question.answer)
