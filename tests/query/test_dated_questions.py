"""Questions that name a time, over HTTP and real parts: `auto` prefers it, `adaptive` is bound by it."""

from math import exp
from typing import Any

import pytest
import pytest_asyncio

from lamina.streams.recall.auto.fusion import shipped

from .odd_kit import real_world

pytestmark = pytest.mark.asyncio(loop_scope="module")

HIKE = "I went hiking in the hills with my sister Lena."
APRIL, WEEK, SOON, AUTUMN = "2023-04-20", "2023-05-04", "2023-05-10", "2023-09-20"
"""Thursday 4 May is in the week of 3 May, 10 May two days after it."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http(tmp_path_factory, weights_cache):
    """A caller of a service that was told of the same hike four times, and of other things between."""
    async with real_world(tmp_path_factory.mktemp("dated"), weights_cache) as world:
        await world.told(
            *((day, "ada", HIKE) for day in (APRIL, WEEK, SOON, AUTUMN)),
            ("2023-06-01", "ada", "The roof of the shed leaks again."),
            ("2023-07-01", "ada", "I bought a new lamp for the desk."),
            ("2023-08-01", "ada", "The dentist says that all is well."),
        )
        async with world.caller() as caller:
            yield caller


async def found(http, query: str, strategy: str = "auto", **changes) -> dict[str, dict[str, Any]]:
    """Return the reasons for each hike that is found, by its day, best first."""
    body = {"query": query, "user_id": "ada", "strategy": strategy, "include": ["why"], **changes}
    answer = await http.post("/v1/memories/search", json=body)
    assert answer.status_code == 200, answer.text
    results = [result for result in answer.json()["results"] if result["text"] == HIKE]
    return {result["said_at"][:10]: result["why"] for result in results}


@pytest.mark.parametrize(
    ("time", "first"),
    [
        ("before May 2023", APRIL),
        ("in the week of 3 May 2023", WEEK),
        ("on 10 May 2023", SOON),
        ("between 3 May 2023 and 5 May 2023", WEEK),
        ("in April", APRIL),
        ("since June 2023", AUTUMN),
        ("the week before 9 May 2023", WEEK),
        ("2023-05-04", WEEK),
    ],
)
async def test_auto_puts_the_time_that_is_named_first(http, time, first):
    hikes = await found(http, f"Where did I go hiking with Lena {time}?")
    assert next(iter(hikes)) == first
    assert len(hikes) == 4, "it prefers, and leaves nothing out"


async def test_the_terms_of_time_are_those_of_the_formula(http):
    hikes = await found(http, "Where did I go hiking with Lena in the week of 3 May 2023?")
    weights = shipped()["tokens"]
    within = {day: why["date_within"] for day, why in hikes.items()}
    assert within == pytest.approx({WEEK: weights["date_within"], SOON: 0, AUTUMN: 0, APRIL: 0})
    # the range ends on 8 May at midnight: 10 May is two days after it, 20 September 135
    after = {day: why["date_after"] / weights["date_after"] for day, why in hikes.items()}
    assert after == pytest.approx({WEEK: 0, SOON: exp(-2 / 7), AUTUMN: exp(-135 / 7), APRIL: 0})
    undated = await found(http, "Where did I go hiking with Lena since the trip?")
    assert {why["date_within"] for why in undated.values()} == {0}
    assert {why["date_after"] for why in undated.values()} == {0}


async def test_last_spring_counts_from_the_newest_turn_or_from_as_of(http):
    spring = "Where did I go hiking with Lena last spring?"
    assert list(await found(http, spring))[-1] == AUTUMN
    month = await found(http, "Where did I go hiking with Lena last month?", as_of="2023-05-31")
    assert next(iter(month)) == APRIL
    assert month.keys() == {APRIL, WEEK, SOON}


@pytest.mark.parametrize(
    ("time", "days"),
    [
        ("before May 2023", {APRIL}),
        ("in the week of 3 May 2023", {WEEK}),
        ("last spring", {APRIL, WEEK, SOON}),
        ("after 3 May 2023", {WEEK, SOON, AUTUMN}),
        ("until the end of May 2023", {APRIL, WEEK, SOON}),
    ],
)
async def test_adaptive_leaves_out_what_was_said_at_another_time(http, time, days):
    query = f"How many times, and why, did I go hiking {time}?"
    # last spring counts from when it is asked: there is no newest turn in SimpleMem
    hikes = await found(http, query, "adaptive", as_of="2023-09-30")
    assert hikes.keys() == days
    assert {why["bound"] for why in hikes.values()} == {"time"}
    free = {"adaptive": {"constraints": False}}
    assert len(await found(http, query, "adaptive", as_of="2023-09-30", options=free)) == 4


async def test_adaptive_lets_go_of_a_time_in_which_nothing_was_said(http):
    query = "How many times, and why, did I go hiking in June 2019?"
    hikes = await found(http, query, "adaptive")
    assert {why["bound"] for why in hikes.values()} == {"nothing"}
    assert len(hikes) == 4
