"""The vector of a chain as it stands: the C^(t) of Chain-of-Memory eq. 3, faithful or cheaper."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lamina.streams.codec import Matrix, Vector
from lamina.streams.ports import Embedder
from lamina.streams.recall.found import said
from lamina.streams.recall.options import Context
from lamina.streams.records import Unit

_SAME = 0.9999
"""Cosine from which a longer text was read as the shorter one: rounding within a batch stays above it."""


@dataclass(slots=True)
class Contexts:
    """Gives the vectors of chains step by step.

    A model with a short window reads a long chain's beginning only. From the step on at which a turn more
    makes no difference, that chain is not embedded again: the same vectors for fewer calls.
    """

    units: Sequence[Unit]
    """The pool."""
    vectors: Matrix
    """Of the pool, shape (n, dimension), rows of unit length."""
    embedder: Embedder
    kind: Context
    _read: dict[int, Vector] = field(default_factory=dict)
    _full: set[int] = field(default_factory=set)

    async def of(self, chains: Mapping[int, Sequence[int]]) -> Matrix:
        """Return a row of unit length for each chain, given by its number as places in the pool.

        Raises:
            EmbedderUnavailable: the kind is `text`, and the embedder does not answer.
        """
        if self.kind == "last":
            last: Matrix = self.vectors[[places[-1] for places in chains.values()]]
            return last
        if self.kind == "mean":
            means = np.stack([self.vectors[list(places)].mean(axis=0) for places in chains.values()])
            lengths = np.linalg.norm(means, axis=1, keepdims=True)
            mean: Matrix = (means / np.where(lengths > 0, lengths, 1)).astype(np.float32)
            return mean
        return await self._texts(chains)

    async def _texts(self, chains: Mapping[int, Sequence[int]]) -> Matrix:
        longer = {number: places for number, places in chains.items() if number not in self._full}
        if longer:
            texts = ["\n".join(said(self.units[place]) for place in places) for places in longer.values()]
            for number, row in zip(longer, await self.embedder.embed(texts), strict=True):
                former = self._read.get(number)
                if former is not None and float(former @ row) >= _SAME:
                    self._full.add(number)
                self._read[number] = row
        return np.stack([self._read[number] for number in chains])
