"""A small growing matrix of vectors by id, for exact cosine search in memory."""

from uuid import UUID

import numpy as np

from lamina.streams.codec import Matrix, Vector

DECIMALS = 5
"""Similarities are rounded to this before they are ordered or compared with a threshold, so that the order
of a sum in some BLAS cannot decide between two exchanges."""


class VectorTable:
    """Vectors by id; `scores` is one matrix product over all of them."""

    def __init__(self, dimension: int) -> None:
        self._rows: Matrix = np.zeros((16, dimension), dtype=np.float32)
        self._ids: list[UUID] = []
        self._slot: dict[UUID, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def put(self, key: UUID, vector: Vector) -> None:
        """Insert or replace a vector."""
        slot = self._slot.get(key)
        if slot is None:
            slot = len(self._ids)
            if slot == len(self._rows):
                self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            self._slot[key] = slot
            self._ids.append(key)
        self._rows[slot] = vector

    def drop(self, key: UUID) -> None:
        """Remove a vector; the last one takes its slot."""
        slot = self._slot.pop(key)
        last = self._ids.pop()
        if last != key:
            self._rows[slot] = self._rows[len(self._ids)]
            self._ids[slot] = last
            self._slot[last] = slot

    def nearest(self, vector: Vector, limit: int, at_least: float = -1.0) -> list[tuple[UUID, float]]:
        """Return up to `limit` (id, cosine) with cosine >= `at_least`, best first, ties by id.

        `vector` and the rows must be of unit length.
        """
        if not self._ids or limit <= 0:
            return []
        scores = np.round(self._rows[: len(self._ids)] @ vector, DECIMALS)
        found = [(self._ids[i], float(scores[i])) for i in np.flatnonzero(scores >= at_least)]
        found.sort(key=lambda item: (-item[1], str(item[0])))
        return found[:limit]

    def highest(self, vector: Vector) -> float | None:
        """Return the cosine of the nearest row; None where there is none."""
        if not self._ids:
            return None
        return round(float(np.max(self._rows[: len(self._ids)] @ vector)), DECIMALS)


def unit_length(vector: Vector) -> Vector:
    """Return the vector scaled to length 1 (a zero vector stays zero)."""
    norm = float(np.linalg.norm(vector))
    return vector if norm == 0 else (vector / norm).astype(np.float32)
