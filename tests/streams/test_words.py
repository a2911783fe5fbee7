from time import process_time

import numpy as np
import pytest

from lamina.streams.words import (
    BUCKETS,
    STOP_WORDS,
    content,
    lexical_vector,
    stem,
    stems,
    tokens,
)


def test_tokens_are_case_folded_words_and_numbers_with_inner_apostrophes():
    assert tokens("Don’t PANIC: it's 42, naïve Straße!") == [
        "don't",
        "panic",
        "it's",
        "42",
        "naïve",
        "strasse",
    ]


def test_unspaced_scripts_become_overlapping_pairs():
    assert tokens("我住在北京 and 東京") == ["我住", "住在", "在北", "北京", "and", "東京"]
    assert tokens("猫") == ["猫"]
    assert tokens("서울에 살아요") == ["서울에", "살아요"]


def test_compatibility_forms_are_one_word():
    assert tokens("Ｌｉｓｂｏｎ ﬁsh") == tokens("lisbon fish")


def test_content_leaves_out_function_words_alone():
    assert content("I was at the dentist with an infected molar") == ["dentist", "infected", "molar"]
    assert "not" in STOP_WORDS


def test_stems_join_the_forms_of_a_word_and_leave_other_scripts():
    assert stem("running") == stem("runs") == "run"
    assert stem("sister's") == stem("sister")
    assert stem("уехал") == "уехал"
    assert stems("The tomatoes are growing") == ("tomato", "grow")


def test_vectors_are_float32_of_unit_length():
    vector = lexical_vector("the sourdough starter needs rye flour")
    assert vector.dtype == np.float32
    assert vector.shape == (BUCKETS,)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


def test_vectors_are_the_same_in_every_process():
    assert np.flatnonzero(lexical_vector("penicillin")).tolist() == [60]


def lexical_cosine(left, right):
    return float(lexical_vector(left) @ lexical_vector(right))


def test_a_text_without_content_words_has_the_zero_vector():
    assert not lexical_vector("it is what it is").any()
    assert lexical_cosine("", "tomatoes") == 0


def test_similar_texts_are_closer_than_unrelated_ones():
    text = "my long run was ten kilometres"
    assert lexical_cosine(text, "I ran a long run of 12 kilometres") > lexical_cosine(
        text, "rye flour and water"
    )
    assert lexical_cosine(text, text) == pytest.approx(1, abs=1e-6)


def test_the_largest_turn_is_cut_in_well_under_a_second():
    begun = process_time()
    tokens("word " * 50_000)
    tokens("字" * 85_000)
    tokens("x" * 256_000)
    assert process_time() - begun < 2
