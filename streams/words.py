"""Words of a text: tokens, stems, stop words and hashed lexical vectors.

One way to cut text into words for the gate and for whoever counts words. It works for any language:
scripts that put no spaces between words (Chinese, Japanese, Thai, …) are cut into overlapping pairs of
characters, and only words in Latin letters are stemmed, with the English Snowball stemmer.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from math import log
from zlib import crc32

import numpy as np
import Stemmer

from lamina.streams.codec import Vector

BUCKETS = 1024
"""Length of a lexical vector. Two of the ~60 distinct stems of ten turns rarely share one of 1,024."""

_STOP_WORDS_TEXT = """
a about above after again all also am an and any are aren't as at be because been before being below
between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during
each few for from further had hadn't has hasn't have haven't having he he'd he'll he's her here here's
hers herself him himself his how how's i i'd i'll i'm i've if in into is isn't it it'd it'll it's its
itself just let let's me more most my myself no nor not of off on once only or other our ours ourselves
out over own same she she'd she'll she's should shouldn't so some such than that that'd that'll that's
the their theirs them themselves then there there's these they they'd they'll they're they've this those
through to too under until up us very was wasn't we we'd we'll we're we've were weren't what what's when
when's where where's which while who who's whom why why's will with won't would wouldn't you you'd
you'll you're you've your yours yourself yourselves 's 'm 're 've 'll 'd
"""
STOP_WORDS: frozenset[str] = frozenset(_STOP_WORDS_TEXT.split())
"""English function words: pronouns, articles, auxiliaries, prepositions, conjunctions, question words."""

# A word is letters and digits of any script, with inner apostrophes, hyphens left as borders.
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")

# Scripts written without spaces: Thai, Lao, Burmese, Khmer, kana, Han (with extensions and the
# compatibility block). Korean puts spaces between words and needs no pairs.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)

_LATIN = re.compile(r"[a-z]+(?:'[a-z]+)*")


def normalise(text: str) -> str:
    """Return the text with compatibility forms (NFKC) and typographic apostrophes made plain; case stays."""
    return unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")


def tokens(text: str) -> list[str]:
    """Return the words in order, case-folded; a run of an unspaced script gives its pairs of characters.

    A run of one character is that character. Combining marks of unspaced scripts stay in the run.
    """
    folded = normalise(text).casefold()
    found: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(folded):
        found += _WORD.findall(folded, end, run.start())
        found += _pairs(run.group())
        end = run.end()
    found += _WORD.findall(folded, end)
    return found


def _pairs(run: str) -> Iterable[str]:
    if len(run) == 1:
        return [run]
    return [run[i : i + 2] for i in range(len(run) - 1)]


def content(text: str) -> list[str]:
    """Return the words that are not stop words, in order, with repetitions."""
    return [word for word in tokens(text) if word not in STOP_WORDS]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the English Snowball stem of a lower-case Latin word without its 's; other words unchanged."""
    if not _LATIN.fullmatch(word):
        return word
    # A stemmer object is not safe to share between threads; the cache makes building one rare.
    return str(Stemmer.Stemmer("english", 0).stemWord(word.removesuffix("'s")))


@lru_cache(maxsize=256)
def stems(text: str) -> tuple[str, ...]:
    """Return the stems of the content words, in order, with repetitions.

    The last 256 texts are kept: a session's turns are read again for each turn that follows.
    """
    return tuple(stem(word) for word in content(text))


def lexical_vector(text: str, buckets: int = BUCKETS) -> Vector:
    """Return the hashed bag of stems of a text; see `hashed_vector`."""
    return hashed_vector(stems(text), buckets)


def hashed_vector(words: Iterable[str], buckets: int = BUCKETS) -> Vector:
    """Return a hashed bag of words: shape (buckets,), float32, unit length, zero where there are none.

    A word seen n times weighs 1 + ln n and falls into bucket crc32(word) mod `buckets`: the same in every
    process and on every machine.
    """
    vector = np.zeros(buckets, dtype=np.float32)
    for word, count in Counter(words).items():
        vector[crc32(word.encode()) % buckets] += 1 + log(count)
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length else vector
