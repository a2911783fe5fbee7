"""`lamina bench latency`: a folder of 100,000 turns, a query service on it, and a client that waits."""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, get_args

import orjson
import typer
from rich.console import Console
from rich.progress import Progress

from lamina.agents.cli_bench_page import Html, write_page
from lamina.agents.cli_common import print_table, progress_on, run, settings_of
from lamina.agents.folders import Folders, folders_of, held
from lamina.agents.http_server import bind, serving
from lamina.agents.outside import api_of, open_embedder, outside
from lamina.bench.construction import machine
from lamina.bench.latency import Row, Taken, embedder_rate, measure, measure_floor
from lamina.bench.latency_fill import Layout, fill
from lamina.bench.latency_page import latency_page
from lamina.bench.latency_report import Report
from lamina.bench.latency_texts import questions
from lamina.sinks.prometheus import PrometheusMetrics
from lamina.streams.errors import Fatal, Misconfigured
from lamina.streams.recall.options import Strategy
from lamina.streams.settings import Settings

CLIENTS = 10
"""Clients of the rows that measure the rate."""
LEAST_UNITS = 1_000

_FILLED = "latency.json"
_STRATEGIES: tuple[str, ...] = get_args(Strategy)


def register(bench: typer.Typer) -> None:
    """Add the command to `lamina bench`."""
    bench.command()(latency)


def latency(
    units: Annotated[int, typer.Option(min=LEAST_UNITS, help="Turns in the store.")] = 100_000,
    strategies: Annotated[str, typer.Option(help=f"Which, by comma: {', '.join(_STRATEGIES)}.")] = ",".join(
        _STRATEGIES
    ),
    requests: Annotated[int, typer.Option(min=1, help="Measured requests of each row.")] = 1_000,
    keep: Annotated[
        Path | None, typer.Option(help="Fill this folder, or use what an earlier run filled.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write every figure to this file.")] = None,
    html: Html = None,
) -> None:
    """Show how long a search takes through HTTP at 100,000 turns, by strategy, namespace and stage."""
    if unknown := set(strategies.split(",")) - set(_STRATEGIES):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: choose from {', '.join(_STRATEGIES)}")
    chosen = [name for name in _STRATEGIES if name in strategies.split(",")]
    with TemporaryDirectory(prefix="lamina-latency-", ignore_cleanup_errors=True) as fresh:
        # No cache: a question embedded for one strategy must cost the next one its time as well.
        own = {"embed_cache_texts": 0, "database": "", "store": "", "broker": "", "api_keys": {}}
        settings = settings_of(keep or Path(fresh)).model_copy(update=own)
        report = run(_measured(settings, Layout.of(units), chosen, requests))
    print_table(report.tables())
    if json is not None:
        json.write_bytes(orjson.dumps(report.json(), option=orjson.OPT_INDENT_2))
    if html is not None:
        write_page(latency_page(report.json()), html)


async def _measured(settings: Settings, layout: Layout, strategies: Sequence[str], requests: int) -> Report:
    folders = folders_of(settings)
    with progress_on(Console(stderr=True), transient=True) as progress:
        await _filled(settings, folders, layout, progress)
        asked = questions(requests)
        embedder = await open_embedder(settings, folders.cache, PrometheusMetrics())
        try:
            rate = await embedder_rate(embedder, asked)
        finally:
            await embedder.close()
        rows = [
            Row(strategy, size, layout.users(size), clients, asked)
            for clients in (1, CLIENTS)
            for size in (layout.small, layout.large)
            for strategy in strategies
        ]
        bar = progress.add_task("ask", total=len(rows) * requests)
        async with _service(settings) as url:
            taken: list[Taken] = [await measure_floor(url, requests)]
            for row in rows:
                taken.append(await measure(url, row))
                progress.advance(bar, requests)
    return Report(tuple(taken), layout.units, embedder.name, rate, "SQLite, Qdrant Edge", machine())


async def _filled(settings: Settings, folders: Folders, layout: Layout, progress: Progress) -> None:
    """Fill the folder, unless an earlier run did.

    Raises:
        Misconfigured: it holds something else.
    """
    mark = folders.data / _FILLED
    wanted = {"large": layout.large, "small": layout.small, "smalls": layout.smalls}
    with suppress(FileNotFoundError):
        if orjson.loads(mark.read_bytes()) == wanted:
            return
        raise Misconfigured(f"{folders.data} was filled with other --units: choose another --keep")
    with held(folders):
        if folders.database_file.exists():
            raise Misconfigured(f"{folders.data} holds a system already: choose an empty folder with --keep")
        bar = progress.add_task("fill", total=layout.units)
        async with outside(settings, folders, bootstrap=None, stop=_ignored) as doors:
            await fill(layout, doors.ports, lambda count: progress.advance(bar, count))
        mark.write_bytes(orjson.dumps(wanted))


@asynccontextmanager
async def _service(settings: Settings) -> AsyncIterator[str]:
    """Serve the folder's memory from a process of its own until the block ends; gives the URL.

    Raises:
        Misconfigured: the process ended before it served; it has printed why.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(settings, theirs), name="lamina-query", daemon=True)
    process.start()
    theirs.close()
    try:
        try:
            url: str = await asyncio.to_thread(ours.recv)
        except EOFError:
            raise Misconfigured("the query service did not start: its message stands above") from None
        yield url
    finally:
        ours.close()
        await asyncio.to_thread(process.join)


def _serve(settings: Settings, parent: Connection) -> None:
    asyncio.run(_serve_until_told(settings, parent))


async def _serve_until_told(settings: Settings, parent: Connection) -> None:
    """Open the folder as `lamina up` does, without broker and workers, and serve until the pipe closes."""
    folders = folders_of(settings)
    async with AsyncExitStack() as stack:
        stack.enter_context(held(folders))
        listener = bind("127.0.0.1", 0)
        stack.callback(listener.close)
        doors = await stack.enter_async_context(outside(settings, folders, bootstrap=None, stop=_ignored))
        parent.send(await stack.enter_async_context(serving(api_of(doors), listener)))
        with suppress(EOFError):
            await asyncio.to_thread(parent.recv)


def _ignored(_: Fatal) -> None:
    """Go on: what fails shows in the figures' place as an error."""
