"""`lamina bench`: measurements that anyone can run again."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console, RenderableType

from lamina.agents.cli_bench_page import Html, write_page
from lamina.agents.cli_common import print_table, progress_on, run, settings_of
from lamina.agents.folders import folders_of
from lamina.agents.outside import open_embedder
from lamina.bench.construction import Rig, build
from lamina.bench.construction_page import construction_page
from lamina.bench.gate import gate_tables, run_gate
from lamina.bench.modes import MODES
from lamina.bench.page import Page
from lamina.bench.recall import Bench, measure_recall
from lamina.bench.recall_ablations import ROWS, with_ablations
from lamina.bench.recall_page import recall_page
from lamina.bench.recall_strategies import STRATEGIES
from lamina.bench.recurrence import as_json, as_table, recurrence_table
from lamina.bench.rehearsal import RehearsalModel
from lamina.bench.tokens import Tokenizer, open_tokenizer
from lamina.sinks.prometheus import PrometheusMetrics
from lamina.streams.gate import GatePolicy
from lamina.streams.llm import LanguageModel
from lamina.streams.ports import Embedder
from lamina.streams.settings import Settings

bench = typer.Typer(no_args_is_help=True, help="Measure; every figure is printed with what it was made from.")

Data = Annotated[
    Path, typer.Option(help="LoCoMo: a folder of conversations (*.json), or locomo10.json.", exists=True)
]


class Store(StrEnum):
    """Where a benchmark keeps vectors: Qdrant Edge in a process of its own, or this process's memory."""

    EDGE = "edge"
    MEMORY = "memory"


Measure = Callable[[], Coroutine[Any, Any, tuple[RenderableType, dict[str, Any]]]]

Json = Annotated[Path | None, typer.Option("--json", help="Write every figure to this file.")]


@bench.command()
def gate(data: Data, json: Json = None) -> None:
    """Show the gate over τ, α and E: filler gated, substance and evidence lost."""
    settings = settings_of()

    async def measure() -> tuple[RenderableType, dict[str, Any]]:
        async with _embedder(settings) as embedder:
            report = await run_gate(data, embedder, GatePolicy.of(settings))
        return gate_tables(report), report.json()

    _show(measure, json)


@bench.command()
def recurrence(data: Data, json: Json = None) -> None:
    """Show promotions, merges and commands over θ_sim and θ_count."""
    settings = settings_of()

    async def measure() -> tuple[RenderableType, dict[str, Any]]:
        async with _embedder(settings) as embedder:
            rows = await recurrence_table(data, embedder, settings)
        return as_table(rows, embedder.name), as_json(rows, embedder.name)

    _show(measure, json)


@bench.command()
def construction(
    data: Data,
    modes: Annotated[str, typer.Option(help=f"Which, by comma: {', '.join(MODES)}.")] = ",".join(MODES),
    store: Annotated[Store, typer.Option(help="Vector store of every mode.")] = Store.EDGE,
    json: Json = None,
    html: Html = None,
) -> None:
    """Show what building memory costs: units, edits, calls, tokens and seconds, mode beside mode."""
    settings = settings_of()
    chosen = [mode for mode in MODES.values() if mode.name in modes.split(",")]
    if unknown := set(modes.split(",")) - set(MODES):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: choose from {', '.join(MODES)}")

    async def measure() -> tuple[RenderableType, dict[str, Any]]:
        tokenizer = open_tokenizer(folders_of(settings).cache)
        async with _embedder(settings) as embedder, _model(settings, tokenizer) as model:
            rig = Rig(settings, embedder, model, store.value)
            with progress_on(Console(stderr=True), transient=True) as progress:
                report = await build(data, chosen, rig, tokenizer.name, progress)
        return report.tables(), report.json()

    _show(measure, json, html, construction_page)


@bench.command()
def recall(
    data: Annotated[
        Path,
        typer.Option(
            help="LoCoMo (a folder of *.json, or locomo10.json) or a LongMemEval file.", exists=True
        ),
    ],
    strategies: Annotated[str, typer.Option(help=f"Which, by comma: {', '.join(STRATEGIES)}.")] = ",".join(
        STRATEGIES
    ),
    store: Annotated[Store, typer.Option(help="Vector store of the memories.")] = Store.MEMORY,
    ablations: Annotated[  # noqa: FBT002
        bool, typer.Option("--ablations", help="Each strategy with one component changed at a time, too.")
    ] = False,
    json: Json = None,
    html: Html = None,
) -> None:
    """Show which turns (LoCoMo) or sessions (LongMemEval) each strategy finds, with its tokens and time."""
    # No cache: a question embedded for one strategy must cost the next one its time as well.
    settings = settings_of().model_copy(update={"embed_cache_texts": 0})
    chosen = [name for name in ROWS if name in strategies.split(",")]
    if unknown := set(strategies.split(",")) - set(ROWS):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: choose from {', '.join(ROWS)}")
    if ablations:
        chosen = with_ablations(chosen)

    async def measure() -> tuple[RenderableType, dict[str, Any]]:
        async with _embedder(settings) as embedder:
            with progress_on(Console(stderr=True), transient=True) as progress:
                report = await measure_recall(
                    data, chosen, Bench(settings, embedder, store is Store.EDGE), progress
                )
        return report.tables(), report.json()

    _show(measure, json, html, recall_page)


@asynccontextmanager
async def _model(settings: Settings, tokenizer: Tokenizer) -> AsyncIterator[LanguageModel]:
    """Give the configured model, else the rehearsal model."""
    if not settings.llm_model:
        yield RehearsalModel(tokenizer)
        return
    # The openai package takes 0.7 s to import, which only who configures a model shall wait for.
    from lamina.sinks.llm_openai import open_openai_model  # noqa: PLC0415

    model = open_openai_model(settings, PrometheusMetrics())
    try:
        yield model
    finally:
        await model.close()


@asynccontextmanager
async def _embedder(settings: Settings) -> AsyncIterator[Embedder]:
    embedder = await open_embedder(settings, folders_of(settings).cache, PrometheusMetrics())
    try:
        yield embedder
    finally:
        await embedder.close()


def _show(
    measure: Measure,
    json: Path | None,
    html: Path | None = None,
    page_of: Callable[[dict[str, Any]], Page] | None = None,
) -> None:
    table, figures = run(measure())
    print_table(table)
    if json is not None:
        json.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
    if html is not None and page_of is not None:
        write_page(page_of(figures), html)
