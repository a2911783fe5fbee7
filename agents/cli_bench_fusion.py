"""`lamina bench fusion`: fit the weights of the strategy `auto`, and show what they are worth."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console

from lamina.agents.cli_common import print_table, progress_on, run, say, settings_of
from lamina.agents.folders import folders_of
from lamina.agents.outside import open_embedder
from lamina.bench.construction import machine
from lamina.bench.fusion import COMPONENTS, validate
from lamina.bench.fusion_folds import FOLDS_FILE, write_folds
from lamina.bench.fusion_pools import Cases, pooled
from lamina.bench.fusion_report import WEIGHTS_FILE, FusionReport
from lamina.sinks.prometheus import PrometheusMetrics
from lamina.streams.recall.auto.features import FEATURES
from lamina.streams.settings import Settings


def register(bench: typer.Typer) -> None:
    """Add the command to `lamina bench`."""
    bench.command()(fusion)


def fusion(
    data: Annotated[Path, typer.Option(help="LoCoMo: a folder of conversations, or one file.", exists=True)],
    ablation: Annotated[bool, typer.Option(help="Also remove each feature in turn.")] = True,  # noqa: FBT002
    json: Annotated[Path | None, typer.Option("--json", help="Write every figure to this file.")] = None,
    write: Annotated[  # noqa: FBT002
        bool,
        typer.Option("--write", help="Write the weights, and those of each fold, into this installation."),
    ] = False,
) -> None:
    """Fit `auto` on all conversations but one, rank that one, and so on; then fit on all."""
    settings = settings_of()
    with progress_on(Console(stderr=True), transient=True) as progress:
        remembering = progress.add_task("remember", total=None)

        def told(name: str, turns: int, total: int) -> None:
            progress.update(remembering, description=f"remember {name}", total=total, advance=turns)

        cases = run(_pooled(data, settings, told))
        fits = sum(1 + ablation * (len(FEATURES[match]) + len(COMPONENTS)) for match in cases.matches)
        fitting = progress.add_task("fit", total=fits)
        report = FusionReport(
            cases=cases,
            validated=tuple(
                validate(cases, match, ablate=ablation, told=lambda _: progress.advance(fitting))
                for match in cases.matches
            ),
            machine=machine(),
        )
    print_table(report.tables())
    if json is not None:
        json.write_bytes(orjson.dumps(report.json(), option=orjson.OPT_INDENT_2))
    if write:
        report.write_weights()
        write_folds(report.validated)
        say(f"wrote {WEIGHTS_FILE} and {FOLDS_FILE}")


async def _pooled(data: Path, settings: Settings, told: Callable[[str, int, int], None]) -> Cases:
    embedder = await open_embedder(settings, folders_of(settings).cache, PrometheusMetrics())
    try:
        return await pooled(data, embedder, settings, told)
    finally:
        await embedder.close()
