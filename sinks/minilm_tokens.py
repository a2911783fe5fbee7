"""From the model's states to token vectors: 128 directions of 384, punctuation left out.

The basis is that of the largest second moments of the model's token states, over 4,000 turns made of example
sentences of WordNet 3.0 (Princeton University): general English, and none of the conversations that Lamina is
measured with. `lamina bench basis` makes it.
"""

import re
from collections.abc import Sequence
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from lamina.streams.codec import Matrix
from lamina.streams.late_interaction import QuestionTokens, TokenVectors, quantised

TOKEN_WIDTH = 128

_BASIS = "minilm_basis.npy"
_PUNCTUATION = re.compile(r"(?:##)?[\W_]+")


class TokenSpace:
    """Projects states; safe across threads."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._basis = _basis()
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        self._says = np.ones(max(vocabulary.values()) + 1, np.bool_)
        """By word piece: whether it is more than punctuation."""
        self._says[[n for piece, n in vocabulary.items() if _PUNCTUATION.fullmatch(piece)]] = False

    def of_turn(self, ids: Sequence[int], states: Matrix) -> TokenVectors:
        """Return the tokens of a turn.

        Args:
            ids: its word pieces.
            states: (len(ids), 384), not normalised.
        """
        pieces, vectors = self._said(ids, states)
        return TokenVectors(np.unique(pieces), quantised(vectors))

    def of_question(self, ids: Sequence[int], states: Matrix) -> QuestionTokens:
        """Return the tokens of a question; the arguments are those of `of_turn`."""
        return QuestionTokens(*self._said(ids, states))

    def _said(self, ids: Sequence[int], states: Matrix) -> tuple[NDArray[np.uint16], Matrix]:
        pieces = np.array(ids, np.uint16)
        says = self._says[pieces]
        projected = states[says] @ self._basis
        norms = np.linalg.norm(projected, axis=1, keepdims=True)
        return pieces[says], (projected / np.maximum(norms, 1e-12)).astype(np.float32, copy=False)


def _basis() -> Matrix:
    with as_file(files("lamina.sinks").joinpath(_BASIS)) as path:
        basis: Matrix = np.load(path).astype(np.float32)
    return basis
