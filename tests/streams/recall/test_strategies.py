"""What every strategy promises, whatever it finds."""

from datetime import timedelta
from typing import get_args

import pytest

from lamina.streams.namespace import namespace_of
from lamina.streams.recall.found import Filters
from lamina.streams.recall.options import Options, Strategy
from lamina.streams.recall.strategies import recall
from lamina.streams.recall.tiers import Budget
from lamina.streams.records import Status

from .recall_kit import ADA, NOON, a_unit, archived, asked, names

STRATEGIES = get_args(Strategy)
pytestmark = pytest.mark.parametrize("strategy", STRATEGIES)


async def find(memory, strategy, text="?", **fields):
    return await recall(strategy, asked(text, **fields), memory.sources, budget=Budget(), options=Options())


async def test_an_empty_memory_gives_nothing(memory, strategy):
    assert await find(memory, strategy) == []
    assert await find(memory, strategy, namespace=namespace_of("t", "nobody")) == []


async def test_results_are_best_first_with_their_evidence_and_reasons(memory, strategy):
    said = [a_unit(f"turn {n}", minute=n, session=f"s{n}") for n in range(5)]
    fact = a_unit("fact", kind="fact", evidence=(said[1].id, said[0].id))
    await memory.keep((fact, 0.95), *((turn, 0.9 - n / 10) for n, turn in enumerate(said)))
    found = await find(memory, strategy)
    scores = [one.score for one in found]
    assert found
    assert scores == sorted(scores, reverse=True)
    assert len({one.unit.id for one in found}) == len(found)
    for one in found:
        assert one.cosine == pytest.approx(one.why["cosine"])
        expected = ["turn 0", "turn 1"] if one.unit.kind == "fact" else [one.unit.text]
        assert [turn.text for turn in one.turns] == expected
    assert names(await find(memory, strategy, top_k=2)) == names(found)[:2]


async def test_the_same_memory_gives_the_same_results_and_ties_go_by_id(memory, strategy):
    turns = [a_unit(f"turn {n}", session=f"s{n}") for n in range(3)]
    await memory.keep(*((turn, 0.5) for turn in turns))
    found = await find(memory, strategy)
    anchors = [one.unit.id for one in found]
    assert anchors == sorted(turn.id for turn in turns)
    assert names(await find(memory, strategy)) == names(found)


async def test_nothing_archived_forgotten_gated_or_foreign_is_found(memory, strategy):
    """Also where the store still holds a point, and where a link leads there."""
    foreign = a_unit("foreign", namespace=namespace_of("u", "ada"))
    gated = a_unit("gated", status=Status.GATED, visible=False, minute=8, session="z")
    failed = a_unit("failed", status=Status.FAILED, visible=False, minute=9, session="z")
    stale = archived("archived", kind="fact")
    await memory.keep((foreign, 0.9), (gated, None), (failed, None), (stale, 0.9), (a_unit("said"), 0.5))
    await memory.point((a_unit("forgotten"), 0.95), (foreign.model_copy(update={"namespace": ADA}), 0.9))
    await memory.link(
        *(("said", "semantic", name) for name in ("foreign", "gated", "failed", "forgotten")),
        ("said", "version", "foreign"),
    )
    assert names(await find(memory, strategy)) == ["said"]


async def test_filters_hold_for_every_result(memory, strategy):
    await memory.keep(
        (a_unit("one"), 0.5),
        (a_unit("two", session="z", minute=10, speaker="bo"), 0.4),
        (a_unit("fact", kind="fact", session="f", minute=20), 0.3),
    )
    await memory.link(("one", "semantic", "two"), ("two", "semantic", "fact"), ("two", "temporal", "one"))

    async def ones(**filters):
        return names(await find(memory, strategy, filters=Filters(**filters)))

    assert await ones(kinds=("turn",)) == ["one", "two"]
    assert await ones(kinds=("fact",)) == ["fact"]
    assert await ones(kinds=()) == []
    assert await ones(session="z") == ["two"]
    assert await ones(speaker="bo") == ["two"]
    assert await ones(kinds=("turn",), said_from=NOON + timedelta(minutes=10)) == ["two"]
    assert await ones(said_to=NOON) == ["one"]
    assert await ones(session="nowhere") == []


async def test_as_of_hides_what_was_said_or_held_only_later(memory, strategy):
    early, later = a_unit("early"), a_unit("later", session="z", minute=90)
    await memory.keep(
        (early, 0.5),
        (later, 0.9),
        (a_unit("future fact", kind="fact", valid_from=NOON + timedelta(days=9), evidence=(early.id,)), 0.8),
        (a_unit("episode on later", kind="episode", evidence=(early.id, later.id)), 0.6),
    )
    await memory.link(("early", "semantic", "later"), ("early", "semantic", "future fact"))
    then = Filters(as_of=NOON + timedelta(minutes=30))
    assert names(await find(memory, strategy, filters=then)) == ["early"]
