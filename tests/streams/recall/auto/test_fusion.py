"""The score is a sum that a reader can add up; the weights are those of the file."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from lamina.streams.recall.auto.features import FEATURES
from lamina.streams.recall.auto.fusion import fuse, rank, shipped

from .pool_kit import DAY, NOON, a_pool, with_tokens


@pytest.mark.parametrize("match", ["tokens", "dense"])
def test_the_terms_of_a_candidate_sum_to_its_score(match):
    pool = with_tokens([[0.1, 0.7, 0.4], [0.6, 0.2, 0.1]], [1.0, 3.0], words=[0.0, 2.0, 1.0])
    pool = pool if match == "tokens" else replace(pool, similarity=None)
    ranked = rank("When did Ada run on 15 October 2023?", NOON, pool)
    for place in range(len(pool)):
        why = ranked.why(place)
        assert tuple(why) == FEATURES[match]
        assert sum(why.values()) == pytest.approx(ranked.scores[place])
    assert ranked.scores[ranked.order].tolist() == sorted(ranked.scores, reverse=True)


def test_every_feature_is_weighed():
    assert {match: set(weights) for match, weights in shipped().items()} == {
        match: set(names) for match, names in FEATURES.items()
    }


def test_a_score_by_hand():
    pool = a_pool(2)
    ranked = fuse(np.array([[1.0, 2.0], [3.0, 0.0]]), ("rank", "words"), {"words": 0.5, "rank": 2.0}, pool)
    assert ranked.scores.tolist() == [3.0, 6.0]
    assert ranked.why(0) == {"rank": 2.0, "words": 1.0}
    assert ranked.order.tolist() == [1, 0]
    with pytest.raises(KeyError):
        fuse(np.zeros((2, 1)), ("rank",), {}, pool)


def test_equal_scores_go_to_the_later_said_then_to_the_lower_id():
    said = np.array([0.0, 1.0, 1.0]) + NOON.timestamp()
    pool = a_pool(3, said_at=said, ids=(UUID(int=1), UUID(int=3), UUID(int=2)))
    assert fuse(np.zeros((3, 1)), ("rank",), {"rank": 1.0}, pool).order.tolist() == [2, 1, 0]


def test_a_turn_of_context_lends_to_its_neighbours_and_is_not_found():
    words, context = [9.0, 1.0, 1.0, 0.0], np.array([True, False, False, False])
    pool = a_pool(4, words=words, context=context, session=np.array([0, 0, 1, 1], np.int32))
    ranked = rank("bees", NOON, pool)
    assert sorted(ranked.order.tolist()) == [1, 2, 3]
    assert ranked.order[0] == 1  # its session holds the best match
    assert len(ranked.scores) == 4


def test_nothing_to_rank_and_one_turn():
    assert rank("bees", NOON, a_pool(0)).order.tolist() == []
    assert rank("", NOON, a_pool(1)).order.tolist() == [0]


def test_dates_count_from_the_newest_turn_of_a_conversation_that_has_ended():
    """ "In May" of a conversation that ended in 2023 is May 2023, whenever it is asked."""
    may = datetime(2023, 5, 10, tzinfo=UTC).timestamp()
    pool = a_pool(2, said_at=np.array([may, may - 60 * DAY]), latest=NOON.timestamp())
    for at in (NOON, NOON + timedelta(days=900)):
        assert rank("What did she paint in May?", at, pool).why(0)["date_within"] > 0
    as_of = datetime(2023, 3, 1, tzinfo=UTC)
    assert rank("What did she paint in May?", as_of, pool).why(0)["date_within"] == 0
