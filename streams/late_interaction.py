"""Late interaction: a question's tokens against a turn's, each with its best match (ColBERT, 2020).

A turn is kept as one small vector for each of its word pieces, read in the light of the turn before it;
pieces of punctuation are left out. Vectors are of unit length, 110 to 1: rounding them to int8 costs no
recall that could be measured (`docs/embedding.md`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lamina.streams.codec import Matrix
from lamina.streams.errors import MalformedRecord

SCALE = 110
"""What 1 becomes: the largest for which a vector store's text can hold a number in one character."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenVectors:
    """The tokens of a turn."""

    pieces: NDArray[np.uint16]
    """(k,) its distinct word pieces by their numbers in the vocabulary, ascending."""
    vectors: NDArray[np.int8]
    """(n, width) a vector for each token, `SCALE` times unit length; n may be 0."""


@dataclass(frozen=True, slots=True, eq=False)
class QuestionTokens:
    """The tokens of a question."""

    pieces: NDArray[np.uint16]
    """(t,) word piece of each token."""
    vectors: Matrix
    """(t, width), rows of unit length."""


def quantised(vectors: Matrix) -> NDArray[np.int8]:
    """Return vectors of unit length as int8, shape kept."""
    return np.rint(vectors * SCALE).astype(np.int8)


def best_matches(question: Matrix, tokens: NDArray[np.int8], counts: NDArray[np.int64]) -> Matrix:
    """Return the cosine of each question token with its best match in each turn: (t, n), 0 without tokens.

    Args:
        question: (t, width), rows of unit length.
        tokens: the tokens of all turns, one after the other.
        counts: (n,) how many of them each turn has.
    """
    best = np.zeros((len(question), len(counts)), np.float32)
    held = np.flatnonzero(counts)
    if len(held) and len(question):
        cosines = (question / np.float32(SCALE)) @ tokens.astype(np.float32).T
        starts = np.concatenate([[0], np.cumsum(counts[held])[:-1]])
        best[:, held] = np.maximum.reduceat(cosines, starts, axis=1)
    return best


def tokens_to_bytes(tokens: TokenVectors) -> tuple[bytes, bytes]:
    """Return the pieces as little-endian uint16 and the vectors as int8."""
    return tokens.pieces.astype("<u2", copy=False).tobytes(), tokens.vectors.tobytes()


def tokens_from_bytes(pieces: bytes, vectors: bytes, width: int) -> TokenVectors:
    """Read what `tokens_to_bytes` wrote.

    Raises:
        MalformedRecord: not whole numbers, or not whole vectors of `width` numbers.
    """
    if len(pieces) % 2 or width < 1 or len(vectors) % width:
        raise MalformedRecord(
            f"{len(vectors)} bytes are no token vectors of {width} int8, or {len(pieces)} no uint16 pieces"
        )
    return TokenVectors(
        pieces=np.frombuffer(pieces, "<u2").astype(np.uint16, copy=False),
        vectors=np.frombuffer(vectors, np.int8).reshape(-1, width),
    )
