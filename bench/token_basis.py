"""How `sinks/minilm_basis.npy` is made: the directions that token vectors are kept in.

Every conversation that Lamina is measured with is left out of it: the text is WordNet's example sentences.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from lamina.sinks.embed_onnx import OnnxEmbedder
from lamina.streams.errors import Misconfigured

WIDTH = 128
PAIRS = 4_000
SEED = 7

_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
_EXAMPLE = re.compile(r'"([^"]{15,})"')
_NAMES = (
    "Ana Ben Carla David Eva Felix Gina Hugo Iris Jonas Karen Leo Maya Nina Omar Paul Rita Sam Tina Victor"
)


async def fit(wordnet: Path, embedder: OnnxEmbedder) -> NDArray[np.float16]:
    """Return the first `WIDTH` eigenvectors of the tokens' second moments, (384, WIDTH), best first.

    Args:
        wordnet: folder with WordNet's `data.*` files (Debian's package wordnet-base).
        embedder: the model; its precision matters little.

    Raises:
        Misconfigured: the folder does not hold enough example sentences.
        EmbedderUnavailable: the engine does not answer.
    """
    moments = np.zeros((embedder.dimension, embedder.dimension))
    async for states in embedder.token_states(list(_pairs(_examples(wordnet)))):
        unit = states / np.linalg.norm(states, axis=1, keepdims=True)
        moments += unit.T @ unit
    _, vectors = np.linalg.eigh(moments)
    return vectors[:, ::-1][:, :WIDTH].astype(np.float16)


def _examples(wordnet: Path) -> list[str]:
    found: list[str] = []
    for name in _FILES:
        path = wordnet / name
        if not path.is_file():
            raise Misconfigured(f"{path} is missing: name the folder of WordNet's data files")
        lines = path.read_text(encoding="latin-1").splitlines()
        found += [each for line in lines if "|" in line for each in _EXAMPLE.findall(line.split("|", 1)[1])]
    if len(found) < 3 * PAIRS:
        raise Misconfigured(f"{wordnet} holds {len(found)} example sentences; {3 * PAIRS} are needed")
    Random(SEED).shuffle(found)  # noqa: S311  # a sample that can be drawn again
    return found


def _pairs(examples: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Give turns as they are embedded: who said it, after the turn before."""
    draw, names = Random(SEED), _NAMES.split()  # noqa: S311  # the same
    for n in range(PAIRS):
        before, speaker = draw.sample(names, 2)
        yield (
            f"{before}: {examples[3 * n]}",
            f"{speaker}: {examples[3 * n + 1]}. {examples[3 * n + 2]}",
        )
