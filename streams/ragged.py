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

    def append(self, value: Any) -> None:
        """Append one value, or one row of `width` values."""
        self._reserve(1)
        self._all[self._count] = value
        self._count += 1

    def extend(self, values: NDArray[N]) -> None:
        """Append several."""
        self._reserve(len(values))
        self._all[self._count : self._count + len(values)] = values
        self._count += len(values)

    def _reserve(self, more: int) -> None:
        wanted = self._count + more
        if wanted > len(self._all):
            grown = np.zeros((max(wanted, 2 * len(self._all)), *self._all.shape[1:]), self._all.dtype)
            grown[: self._count] = self.values
            self._all = grown


class Ragged(Generic[N]):
    """Rows of any length, one after the other: entries are numbers, or vectors of `width` numbers."""

    def __init__(self, dtype: type[N], width: int | None = None) -> None:
        self.width = width or 1
        self._entries: Grown[N] = Grown(dtype, width)
        self._starts: Grown[np.int64] = Grown(np.int64)
        self._counts: Grown[np.int64] = Grown(np.int64)

    @property
    def entries(self) -> int:
        """Return the number of entries over all rows."""
        return len(self._entries.values)

    @property
    def bytes(self) -> int:
        """Return the size of the entries."""
        return self._entries.values.nbytes

    def append(self, row: NDArray[N]) -> None:
        """Append a row."""
        self._starts.append(self.entries)
        self._counts.append(len(row))
        self._entries.extend(row)

    def row(self, place: int) -> NDArray[N]:
        """Return one row, as a view."""
        start = int(self._starts.values[place])
        return self._entries.values[start : start + int(self._counts.values[place])]

    def gather(self, places: NDArray[np.intp] | Sequence[int]) -> tuple[NDArray[N], NDArray[np.int64]]:
        """Return the entries of some rows, one row after the other, and how many each has."""
        starts, counts = self._starts.values[places], self._counts.values[places]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._entries.values[np.repeat(starts, counts) + within], counts
