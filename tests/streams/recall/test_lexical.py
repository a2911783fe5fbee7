"""BM25 by hand."""

import pytest

from lamina.streams.recall.lexical import bm25


def test_the_scores_are_those_of_the_formula():
    """Lengths 2, 2, 3, mean 7/3: the norm of the first two is 1.2·(.25 + .75·2/(7/3)) = 1.0714.

    red, in two texts of three: ln(1 + 1.5/2.5) = .4700; apple, in one: ln(1 + 2.5/1.5) = .9808;
    a word once in a text of two: 2.2/2.0714 = 1.0621.
    """
    scores = bm25("A red apple?", ["red apple", "the red car", "blue sky sea"])
    assert scores == pytest.approx([1.5409, 0.4992, 0.0], abs=1e-4)


def test_a_word_said_twice_counts_less_than_twice_and_in_the_question_once():
    once, twice = bm25("tea tea", ["tea cup", "tea tea"])
    assert once < twice < 2 * once
    assert bm25("tea", ["tea cup", "tea tea"]) == [once, twice]


def test_stems_meet_and_stop_words_do_not():
    assert bm25("running", ["she runs", "she sits"])[0] > 0
    assert bm25("was she", ["she was", "it was"]) == [0, 0]


def test_nothing_is_scored_with_nothing():
    assert bm25("tea", []) == []
    assert bm25("", ["", "tea"]) == [0, 0]
