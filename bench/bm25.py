"""BM25, the lexical baseline: every text of a corpus is scored against a question.

Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), eq. 3.15, with the IDF
ln(1 + (N - n + ½) / (n + ½)) that Lucene uses, which is never negative. Words are the stems of
`lamina.streams.words`, stop words left out. Ours, and not a library: it is one matrix product.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lamina.streams.recall.lexical import K1, B
from lamina.streams.words import stems


class BM25:
    """An index over texts that do not change."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(stems(text)) for text in texts]
        lengths = np.array([count.total() for count in counts], dtype=np.float64)
        usual = lengths.mean() if lengths.any() else 1.0
        norms = K1 * (1 - B + B * lengths / usual)
        self._places = {word: place for place, word in enumerate(sorted(set().union(*counts)))}
        self._weights = np.zeros((len(self._places), len(texts)), dtype=np.float32)
        for text, count in enumerate(counts):
            for word, seen in count.items():
                self._weights[self._places[word], text] = seen * (K1 + 1) / (seen + norms[text])
        holding = (self._weights > 0).sum(axis=1)
        self._idf = np.log1p((len(texts) - holding + 0.5) / (holding + 0.5))

    def scores(self, question: str) -> NDArray[np.float64]:
        """Return the score of every text, (n,); 0 where no word is shared."""
        asked = [place for word in stems(question) if (place := self._places.get(word)) is not None]
        scores: NDArray[np.float64] = self._idf[asked] @ self._weights[asked]
        return scores
