"""The shelf: words and tokens of a namespace, checked against sums by hand and against doing it plainly."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from math import log
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.streams.late_interaction import QuestionTokens, TokenVectors, quantised
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Before, Leaf, PoolQuery, Query
from lamina.streams.recall.auto.traits import TRAITS
from lamina.streams.recall.lexical import bm25
from lamina.streams.shelf import Entry, Shelf

ANA = Namespace("acme/ana")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NO_TRAITS = (0,) * len(TRAITS)


def a_query(*words, tokens=None, **changes):
    nearest = Query(ANA, np.zeros(2, np.float32), ("turn",), 10, **changes.pop("nearest", {}))
    return PoolQuery(nearest, words, tokens, **{"words": 100, "around": 1, **changes})


def put(
    shelf, number, words, *, session="s", ordinal=None, speaker="ana", minute=0, tokens=None, before=None
):
    said_at = (NOON + timedelta(minutes=minute)).timestamp()
    leaf = a_leaf(number if ordinal is None else ordinal, words, tokens, before)
    shelf.put([Entry(UUID(int=number), session, speaker, said_at, leaf)])


def a_leaf(ordinal, words, tokens=None, before=None):
    seen = Counter(words.split())
    return Leaf(ordinal, tuple(seen), tuple(seen.values()), NO_TRAITS, tokens, before)


def by_id(pool, column):
    return dict(zip((turn.int for turn in pool.ids), column.tolist(), strict=True))


def east(*degrees):
    """Token vectors at angles, (n, 2)."""
    return np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1).astype(np.float32)


def tokens(pieces, *degrees):
    return TokenVectors(np.array(pieces, np.uint16), quantised(east(*degrees)))


def test_words_are_scored_as_bm25_does_with_the_namespace_as_its_corpus():
    shelf = Shelf()
    texts = ["tea cup", "tea tea pot garden", "garden gate", "gate"]
    for number, text in enumerate(texts):
        put(shelf, number, text, session=str(number))
    pool = shelf.pool([], a_query("tea", "gate", "unheard"))
    expected = bm25("tea gate unheard", texts)
    assert by_id(pool, pool.words) == pytest.approx(dict(enumerate(expected)), abs=1e-6)


def test_information_is_the_sum_of_idf_over_distinct_stems():
    shelf = Shelf()
    for number, text in enumerate(["tea tea pot", "tea"]):
        put(shelf, number, text)
    pool = shelf.pool([(UUID(int=0), 0.5)], a_query())
    tea, pot = log(1 + 0.5 / 2.5), log(1 + 1.5 / 1.5)
    assert by_id(pool, pool.info) == pytest.approx({0: tea + pot, 1: tea}, abs=1e-6)


def test_the_pool_is_the_nearest_the_best_by_words_and_their_neighbours():
    shelf = Shelf()
    for number in range(10):
        put(shelf, number, "tea" if number == 7 else "x", session="a" if number < 5 else "b")
    pool = shelf.pool([(UUID(int=4), 0.9)], a_query("tea"))
    assert sorted(by_id(pool, pool.ordinal)) == [3, 4, 6, 7, 8]  # 5 is of another session than 4
    assert by_id(pool, np.isnan(pool.cosine)) == {3: True, 4: False, 6: True, 7: True, 8: True}
    sessions = by_id(pool, pool.session)
    assert sessions[3] == sessions[4] != sessions[6] == sessions[8]
    assert sorted(by_id(shelf.pool([(UUID(int=4), 0.9)], a_query(around=0)), pool.ordinal[:1])) == [4]
    assert len(shelf.pool([(UUID(int=4), 0.9)], a_query(around=2))) == 3


def test_only_the_best_by_words_are_taken_ties_by_arrival():
    shelf = Shelf()
    for number in range(6):
        put(shelf, number, "tea tea" if number == 5 else "tea cup", session=str(number))
    pool = shelf.pool([], a_query("tea", words=3))
    assert {turn.int for turn in pool.ids} == {0, 1, 5}


def test_a_similarity_is_the_best_match_of_each_question_token():
    shelf = Shelf()
    put(shelf, 1, "a", tokens=tokens([3, 9], 0, 90))
    put(shelf, 2, "b", tokens=tokens([9], 60))
    put(shelf, 3, "c")
    asked = QuestionTokens(np.array([9, 3, 5], np.uint16), east(30, 0, 90))
    pool = shelf.pool([(UUID(int=n), 0.1) for n in (1, 2, 3)], a_query(tokens=asked))
    cosines = {1: [30, 0, 0], 2: [30, 60, 30]}
    for number, column in zip((1, 2, 3), pool.similarity.T, strict=True):
        expected = np.cos(np.radians(cosines[number])) if number in cosines else np.zeros(3)
        assert column == pytest.approx(expected, abs=0.01)
    holding = {9: 2, 3: 1, 5: 0}
    assert pool.idf == pytest.approx([log(1 + (3 - n + 0.5) / (n + 0.5)) for n in holding.values()], abs=1e-6)


def test_without_tokens_on_either_side_there_are_no_similarities():
    shelf = Shelf()
    put(shelf, 1, "a")
    asked = QuestionTokens(np.array([1], np.uint16), east(0))
    assert shelf.pool([(UUID(int=1), 0.1)], a_query(tokens=asked)).similarity is None
    put(shelf, 2, "b", tokens=tokens([1], 0))
    assert shelf.pool([(UUID(int=1), 0.1)], a_query()).similarity is None
    assert shelf.pool([(UUID(int=1), 0.1)], a_query(tokens=asked)).similarity.shape == (1, 2)


def test_filters_hold_for_words_and_what_was_said_later_is_no_neighbour():
    shelf = Shelf()
    for number in range(6):
        put(shelf, number, "tea", speaker="ana" if number % 2 else "ben", minute=number)
    put(shelf, 9, "tea", session="other")

    def held(around=0, **nearest):
        return {turn.int for turn in shelf.pool([], a_query("tea", around=around, nearest=nearest)).ids}

    assert held(speakers=("ben",)) == {0, 2, 4}
    assert held(speakers=("nobody",)) == set()
    assert held(sessions=("other",)) == {9}
    assert held(said_from=NOON + timedelta(minutes=3)) == {3, 4, 5}
    assert held(said_to=NOON + timedelta(minutes=1)) == {0, 1, 9}
    late = {"said_from": NOON + timedelta(minutes=3), "said_to": NOON + timedelta(minutes=4)}
    assert held(around=1, **late) == {2, 3, 4}


def test_a_gated_turn_is_there_beside_the_turn_after_it_and_never_found_by_itself():
    shelf = Shelf()
    gated = Before(UUID(int=50), "ben", NOON, a_leaf(0, "tea", tokens([4], 0)))
    put(shelf, 1, "cup", ordinal=1, tokens=tokens([4], 90), before=gated)
    put(shelf, 2, "tea", ordinal=2, tokens=tokens([5], 90))
    asked = QuestionTokens(np.array([4], np.uint16), east(0))
    pool = shelf.pool([], a_query("tea", tokens=asked))
    assert by_id(pool, pool.context) == {1: False, 2: False}  # 1 is the neighbour of 2
    pool = shelf.pool([], a_query("cup", tokens=asked))
    assert by_id(pool, pool.context) == {1: False, 2: False, 50: True}
    assert pool.similarity is not None
    assert by_id(pool, pool.similarity[0]) == pytest.approx({1: 0, 2: 0, 50: 1}, abs=0.01)
    assert pool.idf == pytest.approx([log(1 + 1.5 / 2.5)], abs=1e-6)
    put(shelf, 50, "tea", ordinal=0)  # admitted after all
    shelf.remove([UUID(int=1)])
    assert by_id(shelf.pool([], a_query("tea")), np.zeros(2)).keys() == {2, 50}
    shelf.remove([UUID(int=50)])
    put(shelf, 1, "cup", ordinal=1, before=gated)
    shelf.remove([UUID(int=1)])
    assert shelf.ids == {UUID(int=2)}


def test_an_empty_shelf_gives_an_empty_pool():
    pool = Shelf().pool([(UUID(int=1), 0.9)], a_query("tea"))
    assert len(pool) == 0
    assert pool.speakers == ()


def plain(shelf_turns, asked):
    """Fill a fresh shelf with what is left and ask it."""
    shelf = Shelf()
    for number, words, with_tokens in shelf_turns:
        put(shelf, number, words, tokens=tokens([number % 5], 10 * number) if with_tokens else None)
    return columns(shelf.pool([], asked))


def columns(pool):
    similarity = np.zeros((0, len(pool))) if pool.similarity is None else pool.similarity
    rows = zip(pool.words, pool.info, similarity.T, strict=True)
    found = {
        turn.int: (float(w), float(i), s.tolist()) for turn, (w, i, s) in zip(pool.ids, rows, strict=True)
    }
    return found, pool.idf.tolist()


WORDS = st.lists(st.sampled_from(["tea", "pot", "cup", "gate", "rose"]), max_size=4).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 11), st.none() | st.tuples(WORDS, st.booleans())), max_size=200),
)
def test_what_was_put_and_taken_off_leaves_no_trace(steps):
    asked = a_query("tea", "rose", tokens=QuestionTokens(np.array([1, 2], np.uint16), east(20, 70)), around=0)
    shelf, left = Shelf(), dict[int, tuple[int, str, bool]]()
    for number, step in steps:
        if step is None:
            shelf.remove([UUID(int=number)])
            left.pop(number, None)
        else:
            words, with_tokens = step
            put(shelf, number, words, tokens=tokens([number % 5], 10 * number) if with_tokens else None)
            left[number] = (number, words, with_tokens)
        shelf = shelf.tidied()
    assert len(shelf) == len(left)
    (found, idf), (expected, expected_idf) = columns(shelf.pool([], asked)), plain(left.values(), asked)
    assert found.keys() == expected.keys()
    if any(with_tokens for _, _, with_tokens in left.values()):
        assert idf == pytest.approx(expected_idf, abs=1e-5)
        for number, (words, info, similarity) in expected.items():
            assert found[number][0] == pytest.approx(words, abs=1e-5)
            assert found[number][1] == pytest.approx(info, abs=1e-5)
            assert found[number][2] == pytest.approx(similarity, abs=1e-6)
