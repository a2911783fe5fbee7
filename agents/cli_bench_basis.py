"""`lamina bench basis`: make the directions that token vectors are kept in."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from lamina.agents.cli_common import run, say, settings_of
from lamina.agents.folders import folders_of
from lamina.bench.token_basis import fit
from lamina.sinks.embed_onnx import open_onnx_embedder
from lamina.sinks.prometheus import PrometheusMetrics


def register(bench: typer.Typer) -> None:
    """Add the command to `lamina bench`."""
    bench.command()(basis)


def basis(
    wordnet: Annotated[Path, typer.Option(help="Folder of WordNet's data files (Debian: wordnet-base).")],
    out: Annotated[Path, typer.Option(help="File to write: 384 × 128 float16, as NumPy keeps arrays.")],
) -> None:
    """Fit the basis of token vectors. Another basis needs a fresh store and fresh weights of `auto`."""

    async def main() -> None:
        settings = settings_of(None)
        embedder = await open_onnx_embedder(settings, folders_of(settings).cache, PrometheusMetrics())
        try:
            np.save(out, await fit(wordnet, embedder))
        finally:
            await embedder.close()

    run(main())
    say(f"wrote {out}")
