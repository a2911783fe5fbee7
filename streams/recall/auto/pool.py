"""The candidates of one question, as the features read them: arrays, one entry for each turn."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import overload
from uuid import UUID

import numpy as np
from numpy.typing import NDArray


class Ids(Sequence[UUID]):
    """Ids in one array of bytes, since of hundreds a question needs but a few as such."""

    def __init__(self, keys: NDArray[np.void]) -> None:
        """Take (n,) keys of 16 bytes each, as `UUID.bytes` gives them."""
        self.keys = keys

    @classmethod
    def of(cls, ids: Iterable[UUID]) -> "Ids":
        """Return ids as such an array."""
        return (
            ids if isinstance(ids, Ids) else cls(np.frombuffer(b"".join(each.bytes for each in ids), "V16"))
        )

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, place: int) -> UUID: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[UUID]: ...

    def __getitem__(self, place: int | slice) -> UUID | Sequence[UUID]:
        if isinstance(place, slice):
            return Ids(self.keys[place])
        return UUID(bytes=self.keys[place].tobytes())


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The candidates of one question: the nearest by vector, the best by BM25, and their neighbours.

    n is the number of candidates, t that of the question's tokens. Order means nothing; no turn comes twice.
    Neighbours, sessions and ranks are those of the pool: a turn that is not in it does not count.
    """

    ids: Sequence[UUID]
    """The n turns."""
    session: NDArray[np.int32]
    """(n,) number of the turn's session: equal where the session is."""
    ordinal: NDArray[np.int32]
    """(n,) place in the session, with gaps where turns were gated."""
    speaker: NDArray[np.int32]
    """(n,) place of the turn's speaker in `speakers`; −1 where it is not among them."""
    said_at: NDArray[np.float64]
    """(n,) Unix seconds."""
    cosine: NDArray[np.float32]
    """(n,) cosine of the question's vector and the turn's, NaN where unknown."""
    words: NDArray[np.float32]
    """(n,) BM25 over the namespace of `speaker: text`, 0 where no stem is shared."""
    info: NDArray[np.float32]
    """(n,) Σ idf, in the namespace, of the turn's distinct stems."""
    traits: NDArray[np.uint8]
    """(n, len(TRAITS)) as `lamina.streams.recall.auto.traits` gave them when the turn was indexed."""
    similarity: NDArray[np.float32] | None
    """(t, n) max over the turn's tokens of cos(question token, turn token); None without token vectors."""
    idf: NDArray[np.float32]
    """(t,) idf of the question's tokens in the namespace, above 0; (0,) without token vectors."""
    speakers: tuple[str, ...]
    """Who speaks in the namespace, as far as known."""
    latest: float
    """When the newest turn of the namespace was said, Unix seconds."""
    derived: tuple[tuple[UUID, float], ...] = ()
    """The nearest units of other kinds with their cosines, best first, as the query asked for them."""
    context: NDArray[np.bool_] | None = None
    """(n,) True for a turn that is there only for its neighbours: gated, so never found. None: no turn is."""

    def __len__(self) -> int:
        return len(self.ids)
