"""BM25 over a handful of texts: the lexical side of a hybrid score.

Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with Lucene's IDF, which is never
negative: over the N texts, n of which hold the word w, f times in a text of length d (mean d̄), each w once,

    BM25(q, text) = Σ_w ln(1 + (N − n + ½)/(n + ½)) · f·(k1 + 1) / (f + k1·(1 − b + b·d/d̄)),  w in q.

The texts are the corpus: the IDF is that of the candidates a question was given, not of the namespace (that
needs an index). A word that every candidate holds therefore counts little, however rare it is elsewhere.
"""

from collections import Counter
from collections.abc import Sequence
from math import log1p

from lamina.streams.words import stems

K1 = 1.2
"""Saturation of a word's count; 1.2 and 0.75 are the usual values, not fitted."""
B = 0.75
"""How much a long text is held against itself."""


def bm25(question: str, texts: Sequence[str]) -> list[float]:
    """Return the score of each text against the question; 0 where no stem of a content word is shared."""
    counts = [Counter(stems(text)) for text in texts]
    known = frozenset[str]().union(*counts)
    asked = [word for word in dict.fromkeys(stems(question)) if word in known]  # of a pasted text few are
    total = sum(count.total() for count in counts)
    mean = total / len(counts) if total else 1.0
    holding = {word: sum(word in count for count in counts) for word in asked}
    idf = {word: log1p((len(texts) - n + 0.5) / (n + 0.5)) for word, n in holding.items()}
    return [
        sum(
            idf[word] * count[word] * (K1 + 1) / (count[word] + K1 * (1 - B + B * count.total() / mean))
            for word in asked
            if word in count
        )
        for count in counts
    ]
