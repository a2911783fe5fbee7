"""Which neighbourhoods show a sign of drift."""

from lamina.streams.engine import Neighbourhood, Node
from lamina.streams.topology.drift import Sensitivity, signals

from .bank_kit import a_fact, a_turn, a_unit, direction

TOKYO = a_fact("f1", "Nora lives in Tokyo.")
OSAKA = a_fact("f2", "Nora lives in Osaka.", about=("Nora", "lives_in", "Osaka"), day=1)
TEA = a_fact("f3", "Nora likes tea.", about=("Nora", "likes", "tea"))
COFFEE = a_fact("f4", "Nora likes coffee.", about=("Nora", "likes", "coffee"))
FIRST, SECOND, THIRD = (a_turn(f"t{n}", "…", day=n) for n in range(3))


def near(target, *anchors, evidence=()):
    return Neighbourhood(Node(target, tuple(evidence)), tuple(Node(anchor, ()) for anchor in anchors))


def test_a_near_duplicate():
    vectors = {TEA.id: direction(1), COFFEE.id: direction(1, 0.1)}
    (signal,) = signals(near(TEA, COFFEE), vectors, Sensitivity(value=1.1))
    assert signal.name == "near_duplicate"
    assert signal.units == (TEA.id, COFFEE.id)
    assert signal.reason == "near duplicate 1.00"


def test_another_value_of_a_relation_that_holds_one_signals_at_any_distance():
    (signal,) = signals(near(OSAKA, TOKYO), {OSAKA.id: direction(1), TOKYO.id: direction(0, 1)})
    assert signal.name == "other_value"


def test_another_value_of_any_other_relation_signals_when_it_is_near():
    apart = {TEA.id: direction(1), COFFEE.id: direction(0, 1)}
    assert signals(near(TEA, COFFEE), apart) == ()
    close = {TEA.id: direction(1), COFFEE.id: direction(1, 1)}
    assert [each.name for each in signals(near(TEA, COFFEE), close)] == ["other_value"]


def test_units_of_different_layers_give_no_signal():
    episode = a_unit("e", "episode", "Nora lives in Tokyo.")
    assert signals(near(TOKYO, episode), {TOKYO.id: direction(1), episode.id: direction(1)}) == ()


def test_an_episode_of_turns_that_have_nothing_in_common():
    episode = a_unit("e", "episode", "…", FIRST.id, SECOND.id, THIRD.id)
    turns = (FIRST, SECOND, THIRD)
    apart = {turn.id: direction(*[0] * n, 1) for n, turn in enumerate(turns)}
    (signal,) = signals(near(episode, evidence=turns), apart)
    assert (signal.name, signal.figure) == ("scattered", 0)
    alike = {turn.id: direction(1, 0.2 * n) for n, turn in enumerate(turns)}
    assert signals(near(episode, evidence=turns), alike) == ()
    assert signals(near(episode, evidence=turns[:1]), apart) == ()
    fact = a_fact("f", "…", FIRST.id, SECOND.id)
    assert signals(near(fact, evidence=turns), apart) == ()


def test_what_has_no_vector_gives_no_signal():
    assert signals(near(OSAKA, TOKYO, evidence=(FIRST, SECOND)), {}) == ()
