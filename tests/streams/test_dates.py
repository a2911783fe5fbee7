from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from lamina.streams.dates import resolve_dates, spelled

WEDNESDAY = datetime(2026, 5, 6, 14, 30, tzinfo=UTC)


def meant(text, said_at=WEDNESDAY):
    return [(one.phrase, spelled(one.start, one.end)) for one in resolve_dates(text, said_at)]


def ranges(text, said_at=WEDNESDAY):
    return [spelled(one.start, one.end) for one in resolve_dates(text, said_at)]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("I ran 18 km yesterday", "2026-05-05"),
        ("we meet today", "2026-05-06"),
        ("Tonight we celebrate", "2026-05-06"),
        ("this morning I swam", "2026-05-06"),
        ("last night was loud", "2026-05-05"),
        ("see you tomorrow evening", "2026-05-07"),
        ("it was the day before yesterday", "2026-05-04"),
        ("the day after tomorrow", "2026-05-08"),
        ("last week was hard", "2026-04-27 to 2026-05-03"),
        ("this week", "2026-05-04 to 2026-05-10"),
        ("next week", "2026-05-11 to 2026-05-17"),
        ("the week before last", "2026-04-20 to 2026-04-26"),
        ("last month", "2026-04"),
        ("next month", "2026-06"),
        ("last year", "2025"),
        ("this year", "2026"),
        ("last quarter", "2026-01-01 to 2026-03-31"),
        ("last weekend", "2026-05-02 to 2026-05-03"),
        ("this past weekend", "2026-05-02 to 2026-05-03"),
        ("this weekend", "2026-05-09 to 2026-05-10"),
        ("the trip is this coming weekend", "2026-05-09 to 2026-05-10"),
        ("next weekend", "2026-05-16 to 2026-05-17"),
        ("two weekends ago", "2026-04-25 to 2026-04-26"),
        ("last Friday", "2026-05-01"),
        ("last Wednesday", "2026-04-29"),
        ("last Wed. we met", "2026-04-29"),
        ("this Friday", "2026-05-08"),
        ("next Friday", "2026-05-08"),
        ("next Monday", "2026-05-11"),
        ("I went on Friday", "2026-05-01"),
        ("the report is due on Friday", "2026-05-08"),
        ("we met on Friday last week", "2026-05-01"),
        ("ten days ago", "2026-04-26"),
        ("a couple of days ago", "2026-05-04"),
        ("a few days ago", "2026-05-01 to 2026-05-04"),
        ("two weeks ago", "2026-04-20 to 2026-04-26"),
        ("a fortnight ago", "2026-04-20 to 2026-04-26"),
        ("3 months ago", "2026-02"),
        ("twenty-five years ago", "2001"),
        ("a year and a half ago", "2024-11"),
        ("20 hours ago", "2026-05-05"),
        ("it opens in two weeks", "2026-05-18 to 2026-05-24"),
        ("in three years' time", "2029"),
        ("five days from now", "2026-05-11"),
        ("over the past two weeks", "2026-04-22 to 2026-05-06"),
        ("we met on 3 May", "2026-05-03"),
        ("we will meet on 3 May", "2027-05-03"),
        ("May 3rd, 2026", "2026-05-03"),
        ("the 3rd of May 2021", "2021-05-03"),
        ("Sept 5 2024", "2024-09-05"),
        ("3–5 May 2026", "2026-05-03 to 2026-05-05"),
        ("I was born on 29 February", "2024-02-29"),
        ("we will meet on 6 May", "2026-05-06"),
        ("we will leap on 29 February", "2028-02-29"),
        ("I left on the 5th", "2026-05-05"),
        ("we will meet on the 5th", "2026-06-05"),
        ("on the 5th of next month", "2026-06-05"),
        ("in March it rained", "2026-03"),
        ("we will go in March", "2027-03"),
        ("last May", "2025-05"),
        ("in June last year", "2025-06"),
        ("in March 2022", "2022-03"),
        ("back in 2022", "2022"),
        ("last spring", "2025-03-01 to 2025-05-31"),
        ("this summer", "2026-06-01 to 2026-08-31"),
        ("next winter", "2026-12-01 to 2027-02-28"),
        ("summer of 2021", "2021-06-01 to 2021-08-31"),
        ("by the end of the month", "2026-05"),
        ("on 2026-05-03", "2026-05-03"),
        ("on 3.5.2026", "2026-05-03"),
        ("on 13/08/2023", "2023-08-13"),
        ("on 08/13/2023", "2023-08-13"),
    ],
)
def test_phrase_is_resolved_against_the_time_it_was_said(said, expected):
    assert ranges(said) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "I really enjoyed that painting",
        "see you soon, recently I felt better the other day",
        "you may come in a week of your choice",
        "3 may come, I may not",
        "march 3 steps",
        "it happened on 03/04/2026",
        "30 February",
        "32 June",
        "on the 5th floor",
        "I finished the book in two weeks",
        "twice in a week",
        "for 3 years now",
        "over 5 years ago",
        "the last day of school",
        "an essay in 2000 words",
        "version v1.2.2020",
        "it meets every Friday, on Sunday mornings",
        "the meeting on Friday",
        "fall down, spring up",
        "",
    ],
)
def test_what_names_no_definite_range_stays_unresolved(text):
    assert ranges(text) == []


@pytest.mark.parametrize(
    ("said_at", "text", "day"),
    [
        (datetime(2023, 7, 2, 14, 32), "I just signed up for a pottery class yesterday!", date(2023, 7, 1)),
        (datetime(2023, 7, 2, 14, 39), "I painted a sunset with palm trees last week", date(2023, 6, 25)),
        (datetime(2023, 7, 2, 14, 41), "We're planning to go camping next month", date(2023, 8, 1)),
        (datetime(2023, 7, 15, 19, 21), "I took my kids to the museum last Wednesday", date(2023, 7, 12)),
        (datetime(2023, 7, 15, 19, 27), "I finished a horse portrait yesterday!", date(2023, 7, 14)),
        (datetime(2023, 7, 15, 19, 27), "she's turning 8 next month on August 13th", date(2023, 8, 13)),
        (datetime(2023, 7, 15, 19, 33), "We went camping at the beach last weekend!", date(2023, 7, 8)),
        (datetime(2023, 7, 15, 19, 36), "We're planning another trip in September", date(2023, 9, 30)),
    ],
)
def test_ranges_hold_the_days_of_simplemem_figure_3(said_at, text, day):
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
    assert any(one.start <= moment < one.end for one in resolve_dates(text, said_at))


def test_phrase_stands_in_the_text_and_the_range_is_half_open_at_midnight_utc():
    (one,) = resolve_dates("I ran 18 km yesterday, slowly", WEDNESDAY)
    assert one.phrase == "yesterday"
    assert (one.start, one.end) == (datetime(2026, 5, 5, tzinfo=UTC), datetime(2026, 5, 6, tzinfo=UTC))


def test_several_phrases_come_in_the_order_of_the_text():
    assert meant("Yesterday I swam, tomorrow I rest") == [
        ("Yesterday", "2026-05-05"),
        ("tomorrow", "2026-05-07"),
    ]


def test_overlapping_phrases_keep_the_longest():
    assert meant("on the 5th of next month") == [("on the 5th of next month", "2026-06-05")]


def test_zoneless_time_is_read_as_utc_and_others_are_converted():
    assert ranges("yesterday", datetime(2026, 5, 6, 0, 30)) == ["2026-05-05"]
    cairo = timezone(timedelta(hours=3))
    assert ranges("yesterday", datetime(2026, 5, 6, 0, 30, tzinfo=cairo)) == ["2026-05-04"]


def test_last_week_begins_on_monday_whatever_day_it_is_said():
    for day in range(4, 11):  # Monday to Sunday of one week
        assert ranges("last week", datetime(2026, 5, day)) == ["2026-04-27 to 2026-05-03"]


def test_end_of_the_calendar_raises_nothing():
    assert ranges("last year, 5 years ago", datetime(1, 1, 1)) == []
    assert ranges("next year, in 900 years", datetime(9999, 12, 31)) == []


def test_pasted_log_costs_bounded_time():
    log = "\n".join(f"2026-05-{1 + n % 28:02d} 3 May {1970 + n % 60} request served" for n in range(5000))
    assert len(resolve_dates(log, WEDNESDAY)) <= 200
