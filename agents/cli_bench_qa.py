"""`lamina bench qa` and `lamina bench niah`: what is answered from memory, and whether a needle is found."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from lamina.agents.cli_bench_doors import NO_JUDGE, Wanted, opened
from lamina.agents.cli_bench_page import Html, write_page
from lamina.agents.cli_common import print_table, progress_on, run, settings_of
from lamina.bench import niah as needles
from lamina.bench import qa as answers
from lamina.bench.niah_haystack import DISTRACTORS, MOST_DISTRACTORS
from lamina.bench.niah_page import niah_page
from lamina.bench.niah_report import Report as NiahReport
from lamina.bench.page import Page
from lamina.bench.qa_page import qa_page
from lamina.bench.qa_report import Report as QaReport
from lamina.bench.qa_ways import BUDGET, DEEP, HISTORY, RECALLED, WAYS
from lamina.streams.settings import Settings


def _in_a_folder(file: Path | None) -> Path | None:
    """Refuse, before anything is measured, a file that could not be written after it.

    Raises:
        BadParameter: its folder does not exist.
    """
    if file is not None and not file.absolute().parent.is_dir():
        raise typer.BadParameter(f"{file.absolute().parent} is not a folder: create it first")
    return file


class Store(StrEnum):
    """Where vectors are kept: this process's memory, or Qdrant Edge in a process of its own."""

    MEMORY = "memory"
    EDGE = "edge"


Ways = Annotated[
    str,
    typer.Option(help=f"Which, by comma: {', '.join(WAYS)}. `{DEEP}` needs a chat model, and asks it often."),
]
Budget = Annotated[int, typer.Option(min=1, help="Tokens of the block that is read (UTF-8 bytes ÷ 4).")]
Extractive = Annotated[
    bool, typer.Option("--extractive", help="Answer by rules though a model is configured.")
]
Stored = Annotated[Store, typer.Option("--store", help="Vector store of the memories.")]
Json = Annotated[
    Path | None,
    typer.Option("--json", dir_okay=False, callback=_in_a_folder, help="Write every figure to this file."),
]


def register(bench: typer.Typer) -> None:
    """Add the commands to `lamina bench`."""
    bench.command()(qa)
    bench.command()(niah)


def qa(
    data: Annotated[
        Path,
        typer.Option(
            help="LoCoMo (a folder of *.json, or locomo10.json) or a LongMemEval file.", exists=True
        ),
    ],
    strategies: Ways = ",".join(RECALLED),
    budget: Budget = BUDGET,
    runs: Annotated[int, typer.Option(min=1, help="Times that every question is asked.")] = 1,
    judge: Annotated[
        str,
        typer.Option(
            help=f"Chat model that judges; default: LAMINA_LLM_MODEL, if set. `{NO_JUDGE}`: no judge."
        ),
    ] = "",
    extractive: Extractive = False,  # noqa: FBT002
    store: Stored = Store.MEMORY,
    json: Json = None,
    html: Html = None,
    answers_to: Annotated[
        Path | None,
        typer.Option(
            "--answers",
            dir_okay=False,
            callback=_in_a_folder,
            help="Write every answer beside the gold one to this file (JSON lines).",
        ),
    ] = None,
) -> None:
    """Show how well questions are answered from what each strategy recalls: by words, and by a judge."""
    # No cache: a question embedded for one strategy must cost the next one its time as well.
    settings = settings_of().model_copy(update={"embed_cache_texts": 0})
    chosen = _chosen(strategies, settings)

    async def measure() -> QaReport:
        wanted = Wanted(budget, judge, extractive=extractive, deep=DEEP in chosen)
        async with opened(settings, wanted) as doors:
            edge = store is Store.EDGE
            bench = answers.Bench(settings, doors.embedder, edge, doors.desk, doors.judge, runs, doors.models)
            with progress_on(Console(stderr=True), transient=True) as progress:
                return await answers.measure_qa(data, chosen, bench, progress)

    report = run(measure())
    _show(report, qa_page, json, html)
    if answers_to is not None:
        answers_to.write_bytes(b"".join(orjson.dumps(each.json()) + b"\n" for each in report.asked))


def niah(
    turns: Annotated[str, typer.Option(help="Lengths of the histories, by comma.")] = ",".join(
        map(str, needles.TURNS)
    ),
    runs: Annotated[int, typer.Option(min=1, help="Histories of each length.")] = needles.RUNS,
    strategies: Ways = ",".join((*HISTORY, *RECALLED)),
    budget: Budget = BUDGET,
    distractors: Annotated[
        int, typer.Option(min=0, max=MOST_DISTRACTORS, help="Facts like the needle; 0 is the paper's task.")
    ] = DISTRACTORS,
    seed: Annotated[int, typer.Option(help="Of the choice of words.")] = 0,
    extractive: Extractive = False,  # noqa: FBT002
    store: Stored = Store.MEMORY,
    json: Json = None,
    html: Html = None,
) -> None:
    """Show whether a fact said once in a long history reaches the reader: needle in a haystack."""
    settings = settings_of().model_copy(update={"embed_cache_texts": 0})
    chosen = _chosen(strategies, settings)
    lengths = _lengths(turns)

    async def measure() -> NiahReport:
        wanted = Wanted(budget, NO_JUDGE, extractive=extractive, deep=DEEP in chosen)
        async with opened(settings, wanted) as doors:
            edge = store is Store.EDGE
            bench = needles.Bench(settings, doors.embedder, edge, doors.desk, runs, distractors, seed)
            with progress_on(Console(stderr=True), transient=True) as progress:
                return await needles.measure_niah(lengths, chosen, bench, progress)

    report = run(measure())
    _show(report, niah_page, json, html)


def _show(
    report: QaReport | NiahReport,
    page_of: Callable[[dict[str, Any]], Page],
    json: Path | None,
    html: Path | None,
) -> None:
    """Print a report, and write its figures and its page where files are named."""
    print_table(report.tables())
    figures = report.json()
    if json is not None:
        json.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
    if html is not None:
        write_page(page_of(figures), html)


def _chosen(names: str, settings: Settings) -> Sequence[str]:
    """Return the named ways in the order in which they are shown.

    Raises:
        BadParameter: one is unknown, or needs a chat model that is not configured.
    """
    if unknown := set(names.split(",")) - set(WAYS):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: choose from {', '.join(WAYS)}")
    chosen = [name for name in WAYS if name in names.split(",")]
    if DEEP in chosen and not settings.llm_model:
        raise typer.BadParameter(f"{DEEP} reads with a chat model: set LAMINA_LLM_MODEL, or leave it out")
    return chosen


def _lengths(turns: str) -> Sequence[int]:
    """Read the lengths, each once, in order of size.

    Raises:
        BadParameter: one is no whole number of turns.
    """
    try:
        lengths = sorted({int(each) for each in turns.split(",")})
    except ValueError:
        raise typer.BadParameter(f"{turns}: whole numbers by comma are expected, as in 20,200,1000") from None
    return lengths
