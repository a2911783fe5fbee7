"""Arrays that grow, and rows of unequal length side by side in one of them."""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

N = TypeVar("N", bound=np.generic)

_FIRST = 16


class Grown(Generic[N]):
    """An array that grows at its end, by doubling: shape (n,), or (n, width)."""

    def __init__(self, dtype: type[N], width: int | None = None) -> None:
        self._all: NDArray[N] = np.zeros(_FIRST if width is None else (_FIRST, width), dtype)
        self._count = 0

    @property
    def values(self) -> NDArray[N]:
        """Return what was appended: a view, which writing through changes and appending may leave behind."""
        return self._all[: self._count]

    def extend(self, values: Any) -> None:
        """Append several values, or rows of `width` values: an array, or what makes one."""
        if not len(values):
            return
        wanted = self._count + len(values)
        if wanted > len(self._all):
            grown = np.zeros((max(wanted, 2 * len(self._all)), *self._all.shape[1:]), self._all.dtype)
            grown[: self._count] = self.values
            self._all = grown
        self._all[self._count : wanted] = values
        self._count = wanted


class Ragged(Generic[N]):
    """Rows of any length, one after the other: entries are numbers, or vectors of `width` numbers."""

    def __init__(self, dtype: type[N], width: int | None = None) -> None:
        self.width = width or 1
        self._entries: Grown[N] = Grown(dtype, width)
        self._starts: Grown[np.int64] = Grown(np.int64)
        self._counts: Grown[np.int64] = Grown(np.int64)

    @property
    def values(self) -> NDArray[N]:
        """Return the entries of all rows: a view."""
        return self._entries.values

    @property
    def counts(self) -> NDArray[np.int64]:
        """Return how many entries each row has: a view."""
        return self._counts.values

    @property
    def bytes(self) -> int:
        """Return the size of the entries."""
        return self._entries.values.nbytes

    def extend(self, rows: Sequence[Any]) -> None:
        """Append rows: arrays, or sequences of numbers where entries are numbers."""
        if not rows:
            return
        counts = [len(row) for row in rows]
        self._starts.extend(len(self.values) + np.cumsum([0, *counts[:-1]]))
        self._counts.extend(counts)
        if isinstance(rows[0], np.ndarray):
            self._entries.extend(np.concatenate(rows))
        else:
            self._entries.extend([value for row in rows for value in row])

    def owner(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the row of each entry, given the entries' places in `values`."""
        # Empty rows share their start with the next one, which searching from the right passes over.
        return np.searchsorted(self._starts.values, places, side="right") - 1

    def row(self, place: int) -> NDArray[N]:
        """Return one row, as a view."""
        start = int(self._starts.values[place])
        return self.values[start : start + int(self.counts[place])]

    def gather(self, places: NDArray[np.intp] | Sequence[int]) -> tuple[NDArray[N], NDArray[np.int64]]:
        """Return the entries of some rows, one row after the other, and how many each has."""
        starts, counts = self._starts.values[places], self.counts[places]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.values[np.repeat(starts, counts) + within], counts
