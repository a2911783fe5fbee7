"""The features of `auto`: one row for each candidate, computed over the pool alone, all in numpy.

Late interaction is ColBERT's (Khattab and Zaharia 2020, eq. 3), each question token weighted by its IDF:

    LI(i) = Σ_t idf(t)·M[t, i] / Σ_t idf(t),   M[t, i] = max over the tokens of turn i of cos(t, token).

Without token vectors the cosine of whole turns takes its place, with weights of its own. Z is the z-score
over the pool. `first`, a plain sum by hand, is what neighbours, sessions and ranks are read from:

    first = Z(Z(match) + ½·Z(pair) + ½·Z(BM25)).

The features are ours; docs/auto.md lists them with what each is worth.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from lamina.streams.recall.auto.pool import Pool
from lamina.streams.recall.auto.question import Question
from lamina.streams.recall.auto.traits import TRAITS

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Match = Literal["tokens", "dense"]
"""What a question and a turn are matched by: token vectors, or one vector each."""

_SHARED = (
    "session_best",
    "words_shared",
    "before_2",
    "after_2",
    "rank",
    "is_question",
    "information",
    "answers",
    "speaker",
    "when_time",
    "when_date",
    "count_time",
    "who_capitals",
    "what_quote",
    "date_within",
    "date_after",
)
FEATURES: Final[Mapping[Match, tuple[str, ...]]] = {
    "tokens": ("late_interaction", "late_interaction_pair", "session_late_interaction", *_SHARED),
    "dense": ("dense_match", "dense_match_pair", "session_dense_match", "words", *_SHARED),
}
"""The names of the columns, by what was matched."""

PAIR_SHARE = WORDS_SHARE = 0.5
"""Weights within `first`."""
RANK_SCALE = 10
"""The rank at which the `rank` feature is halved."""
WEEK_SECONDS = 7 * 24 * 3600
"""How fast `date_after` fades."""
_SESSION = 1 << 32
"""More than any ordinal: keeps sessions apart in one number."""


def match_of(pool: Pool) -> Match:
    """Return what a pool can be matched by."""
    return "dense" if pool.similarity is None else "tokens"


def features(question: Question, pool: Pool) -> Floats:
    """Return the features of each candidate.

    Returns:
        (n, len(FEATURES[match_of(pool)])), finite; a row does not depend on the order of the candidates.
    """
    if not len(pool):
        return np.zeros((0, len(FEATURES[match_of(pool)])))
    places = _Places.of(pool)
    matched, pair, session = _matches(pool, places)
    matched, pair, words = _z(matched), _z(pair), _z(pool.words)
    first = _z(matched + PAIR_SHARE * pair + WORDS_SHARE * words)
    best = places.session_max(first)[places.group]
    columns = (
        matched,
        pair,
        _z(session),
        *(() if pool.similarity is not None else (words,)),
        _z(best),
        pool.words > 0,
        _z(places.take(first, -2)),
        _z(places.take(first, 2)),
        RANK_SCALE / (_rank(first) + RANK_SCALE),
        *_of_text(question, pool, places, first),
        *_of_time(question, pool),
    )
    return np.stack(columns, axis=1, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Where the candidates stand in their sessions."""

    order: Indices
    """(n,) candidates by session and ordinal."""
    keys: NDArray[np.int64]
    """(n,) those places, ascending."""
    place: NDArray[np.int64]
    """(n,) the place of each candidate."""
    starts: Indices
    """(s,) where each session begins in `order`."""
    group: Indices
    """(n,) number of each candidate's session, 0 to s − 1."""

    @classmethod
    def of(cls, pool: Pool) -> "_Places":
        place = pool.session.astype(np.int64) * _SESSION + pool.ordinal
        order = np.argsort(place, kind="stable")
        keys = place[order]
        begins = np.diff(keys // _SESSION, prepend=keys[0] // _SESSION - 1) != 0
        group = np.empty(len(place), dtype=np.intp)
        group[order] = np.cumsum(begins) - 1
        return cls(order, keys, place, np.flatnonzero(begins), group)

    def neighbour(self, shift: int) -> tuple[Indices, NDArray[np.bool_]]:
        """Return the candidate `shift` turns on in the same session, and whether there is one, (n,) each."""
        wanted = self.place + shift
        found = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return self.order[found], self.keys[found] == wanted

    def take(self, values: Floats, shift: int) -> Floats:
        """Return the neighbour's value, 0 where there is none."""
        found, present = self.neighbour(shift)
        return np.where(present, values[found], 0.0)

    def session_max(self, values: Floats) -> Floats:
        """Return the maximum of each session over the last axis, (…, n) → (…, s)."""
        best: Floats = np.maximum.reduceat(values[..., self.order], self.starts, axis=-1)
        return best


def _matches(pool: Pool, places: _Places) -> tuple[Floats, Floats, Floats]:
    """Return how well each turn matches the question alone, with the turn before it, and in its session."""
    before, present = places.neighbour(-1)
    if pool.similarity is None:
        known = np.isfinite(pool.cosine)
        # What is not among the nearest is no nearer than the farthest of them.
        least = pool.cosine[known].min() if known.any() else 0.0
        alone = np.where(known, pool.cosine, least).astype(np.float64)
        pair = np.where(present, np.maximum(alone, alone[before]), alone)
        return alone, pair, places.session_max(alone)[places.group]
    tokens = pool.similarity.astype(np.float64)
    idf = pool.idf.astype(np.float64)
    weight = idf / max(float(idf.sum()), 1e-9)
    pairs = np.where(present, np.maximum(tokens, tokens[:, before]), tokens)
    return weight @ tokens, weight @ pairs, (weight @ places.session_max(tokens))[places.group]


def _of_text(question: Question, pool: Pool, places: _Places, first: Floats) -> list[Floats]:
    """Return the features from `is_question` to `what_quote`: what was said, by whom, and what is asked."""
    trait = dict(zip(TRAITS, pool.traits.T.astype(np.float64), strict=True))
    reply = places.take(trait["asks"], -1) * np.maximum(places.take(first, -1), 0.0)
    said = np.zeros(len(pool))
    if question.speaker is not None:
        said = np.where(pool.speaker == question.speaker, 1.0, -1.0)
    return [
        trait["ends_asking"],
        np.log1p(pool.info, dtype=np.float64),
        reply,
        said,
        question.when * trait["time_word"],
        question.when * trait["date"],
        question.count * trait["time_word"],
        question.who * trait["capitals"],
        question.what * trait["quote"],
    ]


def _of_time(question: Question, pool: Pool) -> tuple[Floats, Floats]:
    """Return `date_within` and `date_after`: said within the time that the question names, or soon after."""
    if not question.dated:
        nothing = np.zeros(len(pool))
        return nothing, nothing
    start = -np.inf if question.start is None else question.start
    end = np.inf if question.end is None else question.end
    late = pool.said_at - end
    within = (pool.said_at >= start) & (late < 0)
    after = np.where(late >= 0, np.exp(-np.maximum(late, 0.0) / WEEK_SECONDS), 0.0)
    return within.astype(np.float64), after


def _z(values: NDArray[np.floating]) -> Floats:
    """Return z-scores over the last axis; zeros where all values are the same."""
    centred = values.astype(np.float64) - values.mean(dtype=np.float64)
    spread = float(np.sqrt(centred @ centred / len(centred)))
    scores: Floats = centred / spread if spread > 1e-6 else np.zeros_like(centred)  # noqa: PLR2004 - of rounding
    return scores


def _rank(values: Floats) -> Floats:
    """Return how many candidates have a higher value, so that equals stand at the same rank."""
    ranks: Floats = np.float64(len(values)) - np.searchsorted(np.sort(values), values, side="right")
    return ranks
