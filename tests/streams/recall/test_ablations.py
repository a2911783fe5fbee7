"""What the strategies find with a component switched off, by a request's options."""

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from lamina.streams.late_interaction import QuestionTokens
from lamina.streams.recall.auto.strategy import auto
from lamina.streams.recall.options import Auto, Options, Tiers
from lamina.streams.recall.strategies import recall
from lamina.streams.recall.tiers import Budget

from .recall_kit import a_unit, asked, names


@pytest.fixture
async def layers(memory):
    """A turn of each of two sessions, an episode and a fact."""
    first, second = a_unit("first", session="a"), a_unit("second", session="b", minute=5)
    await memory.keep(
        (first, 0.9),
        (second, 0.5),
        (a_unit("episode", kind="episode", evidence=(first.id, second.id)), 0.8),
        (a_unit("fact", kind="fact", evidence=(second.id,)), 0.7),
    )
    return memory


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Tiers(), ["first", "episode", "fact", "second"]),
        (Tiers(exchanges=0), ["episode", "fact"]),
        (Tiers(episodes=0), ["first", "fact", "second"]),
        (Tiers(facts=0), ["first", "episode", "second"]),
        (Tiers(exchanges=1), ["first", "episode", "fact"]),
        (Tiers(exchanges=0, episodes=0, facts=0), []),
    ],
)
async def test_tiers_without_a_tier_keeps_the_budgets_of_the_others(layers, options, expected):
    """RecMem §4.3: "we maintain the retrieval budget for the non-ablated modules"."""
    found = await recall("tiers", asked(), layers.sources, budget=Budget(), options=Options(tiers=options))
    assert names(found) == expected


async def test_a_tier_that_is_left_out_does_not_fill_up_the_results(layers):
    options = Options(tiers=Tiers(exchanges=0))
    found = await recall("tiers", asked(top_k=9), layers.sources, budget=Budget(), options=options)
    assert names(found) == ["episode", "fact"]


def test_a_budget_below_nothing_is_refused():
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        Tiers(exchanges=-1)


async def found_by_auto(memory, text, **options):
    return await auto(asked(text), memory.sources, Auto(**options))


@pytest.fixture
async def talk(memory):
    """One turn is near, one shares a word, one stands beside the near one; a fact rests on the first."""
    near = a_unit("the hive hums", session="a", minute=1)
    await memory.keep(
        (near, 0.9),
        (a_unit("so it does", session="a", minute=2), -0.2),
        (a_unit("violin strings", session="b", minute=9), -0.1),
        (a_unit("bees live there", kind="fact", evidence=(near.id,)), 0.6),
    )
    return memory


ONE = {"nearest": 1}
"""With one candidate by vector, the others must come in by what is switched."""


async def test_auto_gathers_by_vector_words_neighbours_and_layers(talk):
    assert set(names(await found_by_auto(talk, "Which violin?", **ONE))) == {
        "the hive hums",
        "so it does",
        "violin strings",
        "bees live there",
    }


@pytest.mark.parametrize(
    ("options", "missing"),
    [({"words": 0}, "violin strings"), ({"around": 0}, "so it does"), ({"derived": 0}, "bees live there")],
)
async def test_auto_without_a_source_of_candidates(talk, options, missing):
    everything = set(names(await found_by_auto(talk, "Which violin?", **ONE)))
    assert set(names(await found_by_auto(talk, "Which violin?", **ONE, **options))) == everything - {missing}


async def test_auto_without_words_counts_them_nowhere(talk):
    terms = [one.why for one in await found_by_auto(talk, "Which violin?", words=0, derived=0)]
    assert {each["words"] for each in terms} == {each["words_shared"] for each in terms} == {0.0}


async def test_auto_without_late_interaction_ranks_by_whole_turns(talk):
    tokens = QuestionTokens(np.array([1, 2], np.uint16), np.eye(3, dtype=np.float32)[:2])
    question = replace(asked("Which violin?"), tokens=tokens)
    found = await auto(question, talk.sources, Auto(late_interaction=False))
    assert "dense_match" in found[0].why
    assert "late_interaction" not in found[0].why
