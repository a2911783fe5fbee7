from time import process_time

import numpy as np
import pytest

from lamina.streams.gate import (
    GatePolicy,
    Verdict,
    dense_similarity,
    is_phatic,
    judge,
    judge_windows,
    lexical_similarity,
    score,
)
from lamina.streams.phatic import answers, echoes
from lamina.streams.settings import Settings

POLICY = GatePolicy(alpha=0.25, tau=0.35)
BEFORE = ["I adopted a dog from the shelter last week.", "Oh nice."]


@pytest.mark.parametrize(
    "text",
    [
        "Wow, cool!",
        "Hey Emma!",
        "Good morning, Nora! What can I do for you?",
        "How was it?",
        "Thanks so much, you're the best!",
        "You've got this! Keep going, I believe in you!",
        "That's amazing, Caroline! So proud of you!",
        "Happy to help!",
        "You're welcome! Anything else?",
        "Haha, I will!",
        "ok",
        "No worries. Take care and have a great day!",
        "I bet it was awesome. What happened next?",
        "Let's keep going and chase our dreams!",
        "Danke schön!",
        "Bom dia, Nora!",
        "谢谢！",
        "👍",
        "...",
        "",
    ],
)
def test_a_turn_that_carries_nothing_is_phatic(text):
    assert is_phatic(text)


@pytest.mark.parametrize(
    "text",
    [
        "Wow, my sister had a baby!",
        "Thanks! See you at 7.",
        "Great, let's meet on Friday.",
        "Cool, I'll take the train.",
        "I'm pregnant!",
        "I quit.",
        "I got the job!",
        "I love you",
        "I'm tired",
        "I won't come.",
        "She died.",
        "We got back together.",
        "I'm vegan",
        "I like jazz",
        "Paris.",
        "Max!",
        "Is Max your dog?",
        "Congrats on the baby!",
        "Thanks, my number is 42.",
        "Beautiful! [photo: a red car]",
        "Looks like rain",
        "I need help.",
        "我对青霉素过敏",
        "Ich wohne in Hamburg",
    ],
)
def test_a_turn_with_a_name_number_time_or_own_matter_is_not_phatic(text):
    assert not is_phatic(text)


@pytest.mark.parametrize(
    "text",
    ["Wow, a dog from the shelter, that's wonderful!", "What's the dog like?", "Thanks for adopting a dog!"],
)
def test_commentary_in_the_words_of_the_turns_before_echoes(text):
    assert echoes(text, BEFORE)
    assert not is_phatic(text)


@pytest.mark.parametrize(
    "text",
    [
        "My dog is from the shelter, too.",
        "That's wonderful, my neighbour breeds poodles!",
        "We have a dog from the shelter.",
        "Did you take the dog to Doctor Salgueiro?",
        "The dog barked through the whole night shift.",
        "Been volunteering at the shelter.",
        "A dog! [photo: a brown dog]",
    ],
)
def test_own_news_is_no_echo(text):
    assert not echoes(text, BEFORE)


def test_an_echo_is_new_where_nobody_said_it_before():
    assert not echoes("Adopting shelter dogs sounds amazing!", [])


def test_every_phatic_turn_also_echoes():
    for text in ("Wow, cool!", "How was it?", "Thanks, Max!", "Let's keep going!"):
        assert is_phatic(text)
        assert echoes(text, BEFORE)


def test_a_bare_answer_to_a_question_is_kept():
    assert judge("Yes, I did.", ["Did you see the doctor?"], POLICY).reason == "answer"
    assert judge("Yes, Lisbon!", ["Was it Lisbon or Porto?"], POLICY).keep
    assert judge("It was amazing!", ["How was the concert?"], POLICY).keep
    assert not judge("Yes, I did.", ["Nice that you saw it."], POLICY).keep


def test_courtesy_after_a_question_is_no_answer():
    assert not answers("You're welcome! Anything else?", ["Thanks! You sure?"])
    assert not judge("Hi Nora! How was your week?", ["Hi! Are you there?"], POLICY).keep


def test_salience_admits_before_any_other_rule():
    repeated = "I'm allergic to penicillin"
    verdict = judge(repeated, [repeated, repeated], POLICY)
    assert verdict.keep
    assert verdict.reason == "salient"
    assert verdict.score < POLICY.tau


def test_what_was_just_said_again_is_redundant():
    text = "the sourdough starter needs rye flour"
    assert judge(text, [text], POLICY) == Verdict(
        keep=False, reason="redundant", score=pytest.approx(0, abs=1e-6)
    )


def test_news_is_informative():
    verdict = judge("I signed up for the Hamburg half marathon", BEFORE, POLICY)
    assert verdict.keep
    assert verdict.reason == "informative"


def test_the_first_turn_of_a_session_is_new_by_definition():
    assert score("rye flour and water", [], 0.25) == pytest.approx(0.75)
    assert judge("rye flour and water", [], POLICY).keep


def test_score_is_equation_1():
    # one new entity (lisbon; beatriz is known) of three content words, cosine 0.4
    value = score("Beatriz visits Lisbon", ["I like Beatriz"], 0.5, lambda _now, _before: 0.4)
    assert value == pytest.approx(0.5 * 1 / 3 + 0.5 * 0.6)


@pytest.mark.parametrize("alpha", [0, 0.5, 1])
@pytest.mark.parametrize("text", ["", "Paris London Rome Berlin 1 2 3", "it is", "我住在北京"])
def test_score_stays_between_0_and_1(text, alpha):
    assert 0 <= score(text, BEFORE, alpha) <= 1
    assert 0 <= score(text, BEFORE, alpha, lambda _now, _before: -1.0) <= 1


def test_only_the_window_counts():
    text = "the sourdough starter needs rye flour"
    fillers = ["trams are loud", "the view is wide", "rain fell"]
    assert not judge(text, [text], GatePolicy(0.25, 0.35, window=2)).keep
    assert judge(text, [text, *fillers], GatePolicy(0.25, 0.35, window=4)).keep


def test_a_verdict_is_a_function_of_its_arguments():
    first = [judge(text, BEFORE, POLICY) for text in ("Wow!", "My dog is ill.", "We met Ben.")]
    again = [judge(text, BEFORE, POLICY) for text in ("Wow!", "My dog is ill.", "We met Ben.")]
    assert first == again


def test_similarity_of_nothing_said_is_1():
    assert lexical_similarity(["it is what it is"], ["tomatoes"]) == 1


def test_dense_similarity_compares_with_the_mean_of_the_turns_before():
    vectors = {"a": np.array([1, 0], np.float32), "b": np.array([0, 1], np.float32)}
    similarity = dense_similarity(vectors)
    assert similarity(["a"], ["a", "b"]) == pytest.approx(0.5**0.5)
    assert judge("a", ["b"], POLICY, similarity).score == pytest.approx(0.75)
    with pytest.raises(KeyError):
        similarity(["c"], ["a"])


def test_windows_judge_every_turn_once_in_order():
    turns = [f"number {n} tells of topic{n} and thing{n}" for n in range(23)]
    verdicts = judge_windows(turns, GatePolicy(0.5, 0.35))
    assert len(verdicts) == 23
    assert all(verdict.keep for verdict in verdicts)
    assert judge_windows([], POLICY) == []


def test_a_turn_is_kept_where_any_window_that_holds_it_is_kept():
    same = "the sourdough starter needs rye flour"
    turns = [same] * 25 + ["Beatriz moved to Lisbon on 3 May with Knut"] * 2
    verdicts = judge_windows(turns, GatePolicy(0.25, 0.2))
    assert [verdict.keep for verdict in verdicts] == [True] * 10 + [False] * 7 + [True] * 10
    assert verdicts[12].reason == "redundant"


def test_the_policy_comes_from_the_settings():
    settings = Settings(gate_alpha=0.1, gate_tau=0.2, gate_window=7)
    assert GatePolicy.of(settings) == GatePolicy(0.1, 0.2, 7)


@pytest.mark.parametrize("text", ["wow " * 60_000, "Wow! " * 50_000, "x" * 250_000, "Thanks, Max! " * 19_000])
def test_the_largest_turn_is_judged_in_seconds(text):
    begun = process_time()
    judge(text, [text[:100_000]], POLICY)
    assert process_time() - begun < 15
