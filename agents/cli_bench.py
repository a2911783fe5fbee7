"""`lamina bench`: measurements that anyone can run again."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console, RenderableType

from lamina.agents.cli_common import console, run, settings_of
from lamina.agents.folders import folders_of
from lamina.agents.outside import open_embedder
from lamina.bench.gate import gate_tables, run_gate
from lamina.bench.recurrence import as_json, as_table, recurrence_table
from lamina.sinks.prometheus import PrometheusMetrics
from lamina.streams.gate import GatePolicy
from lamina.streams.ports import Embedder
from lamina.streams.settings import Settings

bench = typer.Typer(no_args_is_help=True, help="Measure; every figure is printed with what it was made from.")

Data = Annotated[Path, typer.Option(help="Folder of LoCoMo conversations (*.json).", exists=True)]
WIDTH = 140
"""Columns of a table that is not printed to a terminal."""

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


@asynccontextmanager
async def _embedder(settings: Settings) -> AsyncIterator[Embedder]:
    embedder = await open_embedder(settings, folders_of(settings).cache, PrometheusMetrics())
    try:
        yield embedder
    finally:
        await embedder.close()


def _show(measure: Measure, json: Path | None) -> None:
    table, figures = run(measure())
    # A file or pipe has no width of its own: these tables must not be squeezed into the default 80 columns.
    (console if console.is_terminal else Console(width=WIDTH)).print(table)
    if json is not None:
        json.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
