"""Token vectors: their bytes, their rounding, their matches."""

import numpy as np
import pytest

from lamina.streams.errors import MalformedRecord
from lamina.streams.late_interaction import (
    TokenVectors,
    best_matches,
    quantised,
    tokens_from_bytes,
    tokens_to_bytes,
)


def some(n, width=128, seed=0):
    rows = np.random.default_rng(seed).standard_normal((n, width)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_rounding_moves_a_cosine_by_less_than_a_hundredth():
    question, turn = some(12), some(40, seed=1)
    exact = (question @ turn.T).max(axis=1, keepdims=True)
    assert best_matches(question, quantised(turn), np.array([40])) == pytest.approx(exact, abs=0.01)


def test_each_turn_has_its_own_best_match_and_one_without_tokens_has_none():
    question = np.eye(2, 3, dtype=np.float32)
    tokens = quantised(np.array([[1, 0, 0], [0, 1, 0], [0, -1, 0]], np.float32))
    matched = best_matches(question, tokens, np.array([2, 0, 1, 0]))
    assert matched == pytest.approx(np.array([[1, 0, 0, 0], [1, 0, -1, 0]]))
    assert best_matches(question[:0], tokens, np.array([3])).shape == (0, 1)
    assert best_matches(question, tokens[:0], np.array([0, 0])).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("n", [0, 1, 30])
def test_what_is_written_is_read(n):
    tokens = TokenVectors(np.arange(n, dtype=np.uint16) * 1000, quantised(some(n)))
    pieces, vectors = tokens_to_bytes(tokens)
    assert len(vectors) == 128 * n
    read = tokens_from_bytes(pieces, vectors, 128)
    assert read.pieces.tolist() == tokens.pieces.tolist()
    assert np.array_equal(read.vectors, tokens.vectors)


@pytest.mark.parametrize(("pieces", "vectors"), [(b"abc", b""), (b"ab", b"x" * 127), (b"", b"x")])
def test_what_is_no_whole_number_of_vectors_is_refused(pieces, vectors):
    with pytest.raises(MalformedRecord, match="128 int8"):
        tokens_from_bytes(pieces, vectors, 128)
