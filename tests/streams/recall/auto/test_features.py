"""Every feature by hand, over small pools."""

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest

from lamina.streams.recall.auto.features import FEATURES, features, match_of
from lamina.streams.recall.auto.traits import Traits

from .pool_kit import DAY, NOON, NOTHING, a_pool, column, with_tokens, z

# Two question tokens, the first twice as rare; a session of two turns and one of one.
TOKENS = with_tokens(
    [[0.2, 0.8, 0.5], [0.5, 0.2, 0.2]],
    idf=[2.0, 1.0],
    session=np.array([7, 7, 9], np.int32),
    ordinal=np.array([3, 4, 0], np.int32),
)


def of_words(*scores, **fields):
    """Return turns that only BM25 tells apart, so that `first` is the z-score of it."""
    return a_pool(len(scores), words=list(scores), **fields)


def test_late_interaction_weighs_each_token_by_its_idf():
    alone = [(2 * 0.2 + 0.5) / 3, (2 * 0.8 + 0.2) / 3, (2 * 0.5 + 0.2) / 3]
    assert column("late_interaction", TOKENS) == pytest.approx(z(*alone), abs=1e-5)


def test_a_pair_has_the_better_match_of_each_token():
    pair = [(2 * 0.2 + 0.5) / 3, (2 * 0.8 + 0.5) / 3, (2 * 0.5 + 0.2) / 3]
    assert column("late_interaction_pair", TOKENS) == pytest.approx(z(*pair), abs=1e-5)


def test_a_session_has_the_best_match_of_each_token_in_it():
    best = [(2 * 0.8 + 0.5) / 3, (2 * 0.8 + 0.5) / 3, (2 * 0.5 + 0.2) / 3]
    assert column("session_late_interaction", TOKENS) == pytest.approx(z(*best), abs=1e-5)


def test_without_token_vectors_the_cosine_takes_their_place():
    pool = replace(TOKENS, similarity=None, cosine=np.array([0.3, 0.1, 0.2], np.float32))
    assert column("dense_match", pool) == pytest.approx(z(0.3, 0.1, 0.2), abs=1e-5)
    assert column("dense_match_pair", pool) == pytest.approx(z(0.3, 0.3, 0.2), abs=1e-5)
    assert column("session_dense_match", pool) == pytest.approx(z(0.3, 0.3, 0.2), abs=1e-5)


def test_an_unknown_cosine_is_that_of_the_farthest_known():
    pool = a_pool(3, cosine=[0.4, np.nan, 0.2])
    assert column("dense_match", pool) == pytest.approx(z(0.4, 0.2, 0.2), abs=1e-5)


def test_words_are_scored_and_told_from_none():
    pool = of_words(0.0, 3.0, 1.0)
    assert column("words", pool) == pytest.approx(z(0, 3, 1), abs=1e-5)
    assert column("words_shared", pool) == [0, 1, 1]


def test_the_best_of_a_session_counts_for_all_its_turns():
    pool = of_words(0.0, 3.0, 1.0, session=np.array([1, 1, 2], np.int32))
    first = z(0, 3, 1)
    assert column("session_best", pool) == pytest.approx(z(first[1], first[1], first[2]), abs=1e-5)


def test_neighbours_two_turns_away_are_those_of_the_session_and_present():
    session, ordinal = np.array([1, 1, 1, 2], np.int32), np.array([5, 7, 8, 7], np.int32)
    pool = of_words(1.0, 2.0, 4.0, 9.0, session=session, ordinal=ordinal)
    first = z(1, 2, 4, 9)
    assert column("before_2", pool) == pytest.approx(z(0, first[0], 0, 0), abs=1e-5)
    assert column("after_2", pool) == pytest.approx(z(first[1], 0, 0, 0), abs=1e-5)


def test_a_rank_counts_those_that_are_better():
    assert column("rank", of_words(1.0, 5.0, 1.0, 3.0)) == pytest.approx([10 / 12, 1, 10 / 12, 10 / 11])


def test_what_a_text_is_like():
    pool = a_pool(2, info=[0.0, 7.5], traits=(Traits(ends_asking=1, asks=1), Traits()))
    assert column("is_question", pool) == [1, 0]
    assert column("information", pool) == pytest.approx([0, log(8.5)])


def test_a_turn_answers_a_good_match_that_asked():
    asked, said = Traits(asks=1), Traits()
    pool = of_words(4.0, 0.0, 4.0, 0.0, traits=(asked, said, said, asked))
    assert column("answers", pool) == pytest.approx([0, 1, 0, 0], abs=1e-5)  # its z-score is 1
    far = replace(pool, ordinal=np.array([0, 2, 3, 4], np.int32))
    assert column("answers", far) == [0, 0, 0, 0]
    poor = of_words(0.0, 4.0, traits=(asked, said))
    assert column("answers", poor) == [0, 0]


def test_the_named_speaker_is_told_from_the_others():
    pool = a_pool(3, speaker=np.array([0, 1, -1], np.int32))
    assert column("speaker", pool, replace(NOTHING, speaker=1)) == [-1, 1, -1]
    assert column("speaker", pool) == [0, 0, 0]


@pytest.mark.parametrize(
    ("name", "asks", "has", "value"),
    [
        ("when_time", "when", Traits(time_word=1), 1),
        ("when_date", "when", Traits(date=1), 1),
        ("count_time", "count", Traits(time_word=1), 1),
        ("who_capitals", "who", Traits(capitals=3), 3),
        ("what_quote", "what", Traits(quote=1), 1),
    ],
)
def test_a_kind_of_question_and_a_text_that_may_answer_it(name, asks, has, value):
    pool = a_pool(2, traits=(has, Traits()))
    assert column(name, pool, replace(NOTHING, **{asks: True})) == [value, 0]
    assert column(name, pool) == [0, 0]


def test_a_turn_is_within_the_time_that_is_named_or_so_long_after_it():
    start, end = NOON.timestamp(), NOON.timestamp() + DAY
    pool = a_pool(5, said_at=np.array([start - 1, start, end - 1, end, end + 14 * DAY]))
    named = replace(NOTHING, start=start, end=end)
    assert column("date_within", pool, named) == [0, 1, 1, 0, 0]
    assert column("date_after", pool, named) == pytest.approx([0, 0, 0, 1, exp(-2)])
    before, since = replace(NOTHING, end=end), replace(NOTHING, start=start)
    assert column("date_within", pool, before) == [1, 1, 1, 0, 0]
    assert column("date_within", pool, since) == [0, 1, 1, 1, 1]
    assert column("date_after", pool, since) == [0] * 5
    assert column("date_within", pool) == [0] * 5


def a_mixed_pool(n=40, seed=1):
    rng = np.random.default_rng(seed)
    places = rng.permutation(60)[:n]
    return with_tokens(
        rng.uniform(-1, 1, (6, n)),
        idf=rng.uniform(0.1, 5, 6),
        session=(places // 12).astype(np.int32),
        ordinal=(places % 12).astype(np.int32),
        speaker=rng.integers(-1, 2, n).astype(np.int32),
        said_at=NOON.timestamp() + places * 3600.0,
        cosine=np.where(rng.uniform(size=n) < 0.5, np.nan, rng.uniform(-1, 1, n)).astype(np.float32),
        words=np.maximum(0, rng.normal(size=n)).astype(np.float32),
        info=rng.uniform(0, 90, n).astype(np.float32),
        traits=rng.integers(0, 2, (n, len(Traits()))),
    )


def taken(pool, order):
    """Return the pool with its turns in another order."""
    arrays = ("session", "ordinal", "speaker", "said_at", "cosine", "words", "info", "traits")
    return replace(
        pool,
        ids=tuple(pool.ids[place] for place in order),
        similarity=None if pool.similarity is None else pool.similarity[:, order],
        **{name: getattr(pool, name)[order] for name in arrays},
    )


ASKED = replace(NOTHING, when=True, count=True, who=True, what=True, speaker=1, end=NOON.timestamp() + DAY)


@pytest.mark.parametrize("match", ["tokens", "dense"])
def test_the_order_of_the_candidates_means_nothing(match):
    pool = a_mixed_pool()
    pool = pool if match == "tokens" else replace(pool, similarity=None)
    order = np.random.default_rng(2).permutation(len(pool))
    assert match_of(pool) == match
    assert features(ASKED, taken(pool, order)) == pytest.approx(features(ASKED, pool)[order], abs=1e-9)


@pytest.mark.parametrize(
    "pool",
    [
        a_pool(0),
        with_tokens(np.zeros((3, 0)), [1.0, 1.0, 1.0]),
        a_pool(1),
        with_tokens([[0.3]], [1.0]),
        with_tokens(np.zeros((0, 4)), []),
        with_tokens([[0.5, 0.5, 0.5]], [0.0]),
        a_pool(3, cosine=[np.nan, np.nan, np.nan]),
        a_mixed_pool(),
        replace(a_mixed_pool(), similarity=None),
    ],
)
def test_every_pool_has_finite_features(pool):
    matrix = features(ASKED, pool)
    assert matrix.shape == (len(pool), len(FEATURES[match_of(pool)]))
    assert np.isfinite(matrix).all()
