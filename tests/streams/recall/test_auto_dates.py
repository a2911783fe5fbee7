"""Dates in a question through the whole of `auto`, on an example worked by hand.

Four turns say the same, so that nothing but their time tells them apart:

    20 April, 4 May (a Thursday), 10 May, 22 May 2023, all at midnight; another in September.

date_within is 1 within [start, end), date_after e^(−weeks since the end). The score is 2·within + after.
"""

from datetime import UTC, datetime, timedelta
from math import exp

import pytest

from lamina.streams.recall.auto.features import FEATURES
from lamina.streams.recall.auto.fusion import shipped
from lamina.streams.recall.auto.strategy import auto
from lamina.streams.recall.found import Filters
from lamina.streams.recall.options import Auto

from .recall_kit import a_unit, asked

ALONE = dict.fromkeys(FEATURES["dense"], 0.0) | {"date_within": 2.0, "date_after": 1.0}
APRIL, WEEK, SOON, LATER = (
    datetime(2023, month, day, tzinfo=UTC) for month, day in ((4, 20), (5, 4), (5, 10), (5, 22))
)
AUTUMN = datetime(2023, 9, 20, tzinfo=UTC)
ASKED = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
async def hikes(memory):
    said = (APRIL, WEEK, SOON, LATER, AUTUMN)
    await memory.keep(*((a_unit(str(when.date()), session=str(when), said_at=when), 0.5) for when in said))
    return memory


async def scores(memory, question, *, weights=ALONE, **filters):
    """Return the score of each turn by when it was said, in the order in which they were found."""
    question = asked(question, when=ASKED, filters=Filters(**filters))
    found = await auto(question, memory.sources, Auto(), weights)
    return {one.unit.said_at: one.score for one in found}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # [1 May, 8 May): 10 May is 2 days after it, 22 May two weeks, 20 September 135 days
        (
            "What did I do in the week of 3 May 2023?",
            {WEEK: 2, SOON: exp(-2 / 7), LATER: exp(-2), AUTUMN: exp(-135 / 7), APRIL: 0},
        ),
        # (…, 1 May): 4 May is 3 days after it, 10 May 9, 22 May three weeks, 20 September 142 days
        (
            "What did I do before May 2023?",
            {APRIL: 2, WEEK: exp(-3 / 7), SOON: exp(-9 / 7), LATER: exp(-3), AUTUMN: exp(-142 / 7)},
        ),
        # [9 May, …): all that come later are within, and nothing is after it
        ("What did I do after 8 May 2023?", {AUTUMN: 2, LATER: 2, SOON: 2, WEEK: 0, APRIL: 0}),
        # [1 March, 1 June), told from the newest turn, not from 2026; 20 September is 111 days after it
        ("What did I do last spring?", {LATER: 2, SOON: 2, WEEK: 2, APRIL: 2, AUTUMN: exp(-111 / 7)}),
        # no date: nothing tells them apart
        ("What did I do since the trip?", {AUTUMN: 0, LATER: 0, SOON: 0, WEEK: 0, APRIL: 0}),
        # no day of any calendar
        ("What did I do on 2023-02-31?", {AUTUMN: 0, LATER: 0, SOON: 0, WEEK: 0, APRIL: 0}),
    ],
)
async def test_the_time_that_a_question_names_orders_what_was_said(hikes, question, expected):
    found = await scores(hikes, question)
    assert found == pytest.approx(expected)
    assert list(found.values()) == sorted(found.values(), reverse=True)


async def test_as_of_is_what_relative_dates_count_from(hikes):
    """On 21 May "last month" is April: [1 April, 1 May); 4 May is 3 days after it, 10 May 9."""
    found = await scores(hikes, "What did I do last month?", as_of=LATER - timedelta(days=1))
    assert list(found) == [APRIL, WEEK, SOON]
    assert found == pytest.approx({APRIL: 2, WEEK: exp(-3 / 7), SOON: exp(-9 / 7)})


async def test_a_date_prefers_and_filters_bind(hikes):
    question = "What did I do before May 2023?"
    assert list(await scores(hikes, question, said_from=SOON)) == [SOON, LATER, AUTUMN]
    assert list(await scores(hikes, question, said_from=WEEK, said_to=SOON)) == [WEEK, SOON]


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("What did I do?", AUTUMN),
        ("What did I do in the week of 3 May 2023?", WEEK),
        ("What did I do before May 2023?", APRIL),
        ("What did I do in September 2023?", AUTUMN),
    ],
)
async def test_with_the_shipped_weights_the_named_time_comes_first(hikes, question, best):
    assert next(iter(await scores(hikes, question, weights=None))) == best
    without = {**shipped()["dense"], "date_within": 0.0, "date_after": 0.0}
    assert next(iter(await scores(hikes, question, weights=without))) == AUTUMN


async def test_a_filter_by_speaker_is_filled_however_many_others_rank_before(memory):
    """Forty exchanges: what is asked ranks before every reply, and replies alone are wanted."""
    for number in range(40):
        day = AUTUMN + timedelta(days=number)
        asks = a_unit(f"ask {number}", session=str(day), said_at=day)
        reply = a_unit(f"reply {number}", session=str(day), said_at=day, minute=1, speaker="bo")
        await memory.keep((asks, 0.9), (reply, 0.1))
    for most in (1, 5, 20):
        question = asked("?", top_k=most, filters=Filters(speaker="bo"), when=ASKED)
        found = await auto(question, memory.sources, Auto())
        assert [one.unit.speaker for one in found] == ["bo"] * most
    early = asked("?", top_k=3, filters=Filters(said_to=AUTUMN + timedelta(days=1)), when=ASKED)
    assert len(await auto(early, memory.sources, Auto())) == 3
