"""How near an answer is to the expected one, by words: exact match, contained, F1, BLEU-1 and ROUGE-L.

All five compare the same words: SQuAD's normalisation (Rajpurkar et al. 2016): lower case, punctuation taken
out, the articles a, an, the left out, white space folded. Punctuation is ASCII's and what Unicode calls so;
it is taken out, not replaced, so "2023-05-07" is one word. BLEU comes from nltk and ROUGE from Google's
rouge-score (extra `bench`); both run without any download.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from lamina.streams.errors import Misconfigured

_ARTICLES = frozenset({"a", "an", "the"})
_ASCII_PUNCTUATION = frozenset(string.punctuation)
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Scores:
    """One answer beside the expected one; every figure is from 0 to 1."""

    exact: float
    """EM: 1 where the words are the same in the same order, else 0 (SQuAD)."""
    contains: float
    """1 where the expected words stand in the answer in one run, else 0 (RLM-Memory §6.3 calls this EM)."""
    f1: float
    """Harmonic mean of the shares of shared words, counted with repetition (SQuAD)."""
    bleu1: float
    """Clipped precision of words times the brevity penalty (Papineni et al. 2002, n = 1, no smoothing)."""
    rouge_l: float
    """F-measure of the longest common subsequence of the words (Lin 2004, β = 1, no stemming)."""


def check_installed() -> None:
    """Load what scores, so that a run does not fail after its work is done.

    Raises:
        Misconfigured: the extra `bench` is not installed.
    """
    _library()


def words_of(text: str) -> list[str]:
    """Return the normalised words of a text, in order."""
    kept = "".join(char for char in text.casefold() if not _is_punctuation(char))
    return [word for word in _WORD.findall(kept) if word not in _ARTICLES]


def score(said: str, expected: str) -> Scores:
    """Compare an answer with the expected one; where either has no words, every figure is 0.

    Raises:
        Misconfigured: the extra `bench` is not installed.
    """
    own, wanted = words_of(said), words_of(expected)
    if not own or not wanted:
        return Scores(0.0, 0.0, 0.0, 0.0, 0.0)
    bleu, rouge = _library()
    return Scores(
        exact=float(own == wanted),
        contains=float(stands_in(wanted, own)),
        f1=_f1(own, wanted),
        bleu1=bleu(own, wanted),
        rouge_l=rouge(said, expected),
    )


def contains(text: str, wanted: str) -> bool:
    """Tell whether the words of `wanted`, at least one, stand in a text in one run."""
    return stands_in(words_of(wanted), words_of(text))


def stands_in(wanted: list[str], words: list[str]) -> bool:
    """Tell whether some words, at least one, stand among others in one run: whole words, unlike `in`."""
    return bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(words)} "


def _is_punctuation(char: str) -> bool:
    return char in _ASCII_PUNCTUATION or unicodedata.category(char).startswith("P")


def _f1(own: list[str], wanted: list[str]) -> float:
    shared = (Counter(own) & Counter(wanted)).total()
    return 2 * shared / (len(own) + len(wanted))


class _Words:
    """Our normalisation as rouge-score's tokenizer."""

    @staticmethod
    def tokenize(text: str) -> list[str]:
        return words_of(text)


@cache
def _library() -> tuple[Callable[[list[str], list[str]], float], Callable[[str, str], float]]:
    """Return BLEU-1 of words and ROUGE-L of texts."""
    try:
        from nltk.translate.bleu_score import sentence_bleu  # noqa: PLC0415  # an extra: only scoring needs it
        from rouge_score.rouge_scorer import RougeScorer  # noqa: PLC0415
    except ImportError as exc:
        raise Misconfigured(f"{exc.name} is not installed: pip install 'lamina[bench]'") from exc
    scorer = RougeScorer(["rougeL"], tokenizer=_Words())

    def bleu(own: list[str], wanted: list[str]) -> float:
        return float(sentence_bleu([wanted], own, weights=(1.0,)))

    def rouge(said: str, expected: str) -> float:
        return float(scorer.score(expected, said)["rougeL"].fmeasure)

    return bleu, rouge
