"""Whether a fact that was said once, anywhere in a long history, reaches the reader: needle in a haystack.

After RLM-Memory §6.1 and §7.1: `lamina.bench.niah_haystack` makes the histories, `lamina.bench.qa_ways` is
what is set side by side. Each history is remembered once, for all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from rich.progress import Progress

from lamina.bench.construction import machine
from lamina.bench.niah_haystack import DISTRACTORS, Haystack, haystack
from lamina.bench.niah_report import WORDINGS, Looked, Report, Wording
from lamina.bench.qa_ways import WAYS, Answer, Desk
from lamina.bench.recall_memory import remembered
from lamina.bench.scores import contains
from lamina.streams.ports import Embedder
from lamina.streams.settings import Settings

TURNS = (20, 50, 100, 200, 1000)
"""Lengths of the histories: the paper's, and one that no longer fits."""
RUNS = 5
"""Histories of each length, as in the paper."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What the ways are measured with."""

    settings: Settings
    embedder: Embedder
    edge: bool
    desk: Desk
    runs: int = RUNS
    distractors: int = DISTRACTORS
    seed: int = 0


async def measure_niah(
    lengths: Sequence[int], names: Sequence[str], bench: Bench, progress: Progress
) -> Report:
    """Look for the needle of every history in the block of each way.

    Args:
        lengths: of the histories, in turns.
        names: of the ways, as in `WAYS`; `deep` where the desk has programs.
        bench: with what.
        progress: gets a bar of turns, then of questions.

    Raises:
        Misconfigured: a length or a number of distractors that no haystack has.
        EmbedderUnavailable: the engine does not answer.
        ModelUnavailable: the reader did not answer, again and again.
    """
    haystacks = [
        (length, run, haystack(length, run, bench.runs, seed=bench.seed, distractors=bench.distractors))
        for length in lengths
        for run in range(bench.runs)
    ]
    remembering = progress.add_task("remember", total=bench.runs * sum(lengths))
    asking = progress.add_task("ask", total=len(names) * len(haystacks))
    looked: list[Looked] = []
    for length, run, hay in haystacks:
        async with remembered(
            hay.conversation,
            bench.embedder,
            bench.settings,
            edge=bench.edge,
            told=lambda count: progress.advance(remembering, count),
        ) as memory:
            read = await bench.desk.reader.over(memory)
            for name in names:
                answer = await WAYS[name].over(memory, read, bench.desk)
                if bench.desk.free(name):
                    await answer(hay.asked.text)  # a first question warms a way up
                looked += [await _look(length, run, hay, name, one, answer) for one in WORDINGS]
                progress.advance(asking)
    return Report(
        looked=tuple(looked),
        ways={name: WAYS[name].says for name in names},
        lengths=tuple(lengths),
        runs=bench.runs,
        seed=bench.seed,
        distractors=bench.distractors,
        budget=bench.desk.budget,
        reader=bench.desk.reader.name,
        reader_says=bench.desk.reader.says,
        embedder=bench.embedder.name,
        store="Qdrant Edge, its own process" if bench.edge else "this process's memory",
        machine=machine(),
    )


async def _look(length: int, run: int, hay: Haystack, name: str, wording: Wording, answer: Answer) -> Looked:
    question = hay.asked if wording == "same" else hay.otherwise
    begun = perf_counter()
    given = await answer(question.text)
    seconds = perf_counter() - begun
    return Looked(
        turns=length,
        run=run,
        depth=hay.depth,
        way=name,
        wording=wording,
        question=question.text,
        needle=question.answer,
        said=given.text,
        in_block=None if given.block is None else contains(given.block, question.answer),
        rank=_rank(given.results, question.answer),
        answered=given.grounded and contains(given.text, question.answer),
        abstained=not given.grounded,
        tokens=given.tokens,
        characters=len(hay.text),
        seconds=seconds,
    )


def _rank(results: Sequence[str], needle: str) -> int | None:
    """Return the place, from 1, of the first result that holds the needle; None where none does."""
    return next((rank for rank, text in enumerate(results, 1) if contains(text, needle)), None)
