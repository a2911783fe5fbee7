"""What every command shares: the console, the settings, and how a fault ends the program."""

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lamina.query.client import ServiceError
from lamina.sinks.environment import settings_from
from lamina.streams.errors import LaminaError
from lamina.streams.settings import Settings

console = Console()

TABLE_WIDTH = 140
"""Columns of a table that is not printed to a terminal."""

T = TypeVar("T")


def say(text: str, *, style: str = "") -> None:
    """Print a line as it is: brackets are no markup, and a long line is not broken."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def print_table(table: RenderableType) -> None:
    """Print a table; a file or pipe has no width of its own, so there it is not squeezed into 80 columns."""
    (console if console.is_terminal else Console(width=TABLE_WIDTH)).print(table)


def progress_on(console: Console, *, transient: bool = False) -> Progress:
    """Return a progress bar with its count and time; a transient one is gone when it is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=transient)


def settings_of(data_dir: Path | None = None, port: int | None = None) -> Settings:
    """Read the settings from the environment, then from the command's options; a fault ends the program."""
    folder = None if data_dir is None else str(data_dir)
    try:
        return settings_from(os.environ, data_dir=folder, http_port=port)
    except LaminaError as fault:
        _fail(fault)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end; a fault is printed as its one sentence, without a traceback."""
    try:
        return asyncio.run(coroutine)
    except (LaminaError, ServiceError) as fault:
        _fail(fault)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _fail(fault: Exception) -> NoReturn:
    Console(stderr=True).print(f"lamina: {fault}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(1)
