"""`--html`: the option that writes a benchmark's results page, checked before anything is measured."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from lamina.bench.page import Page, render


def _writable(file: Path | None) -> Path | None:
    """Refuse what would only fail after the benchmark has run.

    Raises:
        BadParameter: the file's folder does not exist or takes no files, or matplotlib is not installed.
    """
    if file is None:
        return None
    folder = file.absolute().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"{folder} is not a folder: create it first")
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"{folder} cannot be written to: choose another folder")
    if find_spec("matplotlib") is None:
        raise typer.BadParameter("the page's plots need matplotlib: pip install 'lamina[bench]'")
    return file


Html = Annotated[
    Path | None,
    typer.Option(
        "--html",
        dir_okay=False,
        writable=True,
        callback=_writable,
        help="Write a page with tables and plots to this file.",
    ),
]


def write_page(page: Page, file: Path) -> None:
    """Write a results page to a file, over what is there."""
    file.write_text(render(page), encoding="utf-8")
