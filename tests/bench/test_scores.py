"""Answers beside expected ones: every figure by hand."""

import sys
from math import exp

import pytest

from lamina.bench import scores
from lamina.bench.scores import Scores, contains, score, words_of
from lamina.streams.errors import Misconfigured


def test_words_are_squads():
    assert words_of("The  Answer is: “Bo's”, on 2023-05-07!") == ["answer", "is", "bos", "on", "20230507"]
    assert words_of("a an the …") == []
    assert words_of("猫が好き。") == ["猫が好き"]


def test_the_same_words_are_exact_whatever_their_dress():
    assert score("The 7 May, 2023.", "7 may 2023") == Scores(1.0, 1.0, 1.0, 1.0, 1.0)


def test_an_answer_that_says_more():
    # own: bo said on 7 may 2023 (6), wanted: 7 may 2023 (3); 3 shared, in order, no brevity penalty
    found = score("Bo said: on 7 May 2023", "7 May 2023")
    assert (found.exact, found.contains) == (0.0, 1.0)
    assert found.f1 == pytest.approx(2 * 3 / 9)
    assert found.bleu1 == pytest.approx(3 / 6)
    assert found.rouge_l == pytest.approx(2 * (3 / 6) * (3 / 3) / (3 / 6 + 3 / 3))


def test_an_answer_that_says_less_pays_for_its_brevity():
    # own: red kite (2), wanted: red kite over hill (4)
    found = score("a red kite", "a red kite over the hill")
    assert (found.exact, found.contains) == (0.0, 0.0)
    assert found.f1 == pytest.approx(2 * 2 / 6)
    assert found.bleu1 == pytest.approx(exp(1 - 4 / 2) * 2 / 2)


def test_words_in_another_order_share_a_shorter_subsequence():
    # own: hill red kite, wanted: red kite hill; the longest common subsequence is "red kite"
    found = score("hill red kite", "red kite hill")
    assert (found.exact, found.contains, found.f1, found.bleu1) == (0.0, 0.0, 1.0, 1.0)
    assert found.rouge_l == pytest.approx(2 / 3)


def test_repeated_words_count_as_often_as_expected():
    # own: very very very good (4), wanted: very good (2); shared 2, clipped precision 2/4
    found = score("very very very good", "very good")
    assert found.f1 == pytest.approx(2 * 2 / 6)
    assert found.bleu1 == pytest.approx(2 / 4)


def test_nothing_shared_and_nothing_said_score_nothing():
    nothing = Scores(0.0, 0.0, 0.0, 0.0, 0.0)
    assert score("blue", "red") == score("", "red") == score("blue", "the") == nothing


def test_contained_means_whole_words_in_one_run():
    assert contains("The code is 7419, she said", "7419")
    assert not contains("The code is 17419", "7419")
    assert not contains("red and blue", "red blue")
    assert not contains("anything", "the")


def test_without_the_extra_the_fault_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    scores._library.cache_clear()
    with pytest.raises(Misconfigured, match=r"lamina\[bench\]"):
        scores.check_installed()
