"""Times told from a date, asked on Sunday 15 October 2023; 3 August is a Thursday, 8 October a Sunday."""

from datetime import UTC, date, datetime

import pytest

from lamina.streams.recall.constraints import time_range

AT = datetime(2023, 10, 15, 12, tzinfo=UTC)


def asked(question):
    return tuple(moment and moment.date() for moment in time_range(question, AT))


@pytest.mark.parametrize(
    ("told", "start", "end"),
    [
        ("the week before August 3, 2023", date(2023, 7, 27), date(2023, 8, 3)),
        ("the week after 3 August 2023", date(2023, 8, 4), date(2023, 8, 11)),
        ("the day before 3 August 2023", date(2023, 8, 2), date(2023, 8, 3)),
        ("the night after 3 August 2023", date(2023, 8, 4), date(2023, 8, 5)),
        ("on the Sunday before 3 August 2023", date(2023, 7, 30), date(2023, 7, 31)),
        ("on the Thursday before 3 August 2023", date(2023, 7, 27), date(2023, 7, 28)),
        ("on the Saturday after October 28, 2023", date(2023, 11, 4), date(2023, 11, 5)),
        ("on the Monday after Sunday, 8 October 2023", date(2023, 10, 9), date(2023, 10, 10)),
        ("over the weekend before 4th October, 2023", date(2023, 9, 30), date(2023, 10, 2)),
        ("over the weekend before 8 October 2023", date(2023, 9, 30), date(2023, 10, 2)),
        ("the weekend after 7 October 2023", date(2023, 10, 14), date(2023, 10, 16)),
        ("last weekend before April 10, 2023", date(2023, 4, 8), date(2023, 4, 10)),
        ("two weeks before August 11, 2023", date(2023, 7, 24), date(2023, 7, 31)),
        ("2 days after 3 August 2023", date(2023, 8, 5), date(2023, 8, 6)),
        ("a few days before 3 August 2023", date(2023, 7, 29), date(2023, 8, 2)),
        ("the month before June 2023", date(2023, 5, 1), date(2023, 6, 1)),
        ("the month after June 2023", date(2023, 7, 1), date(2023, 8, 1)),
        ("the month before 3 August 2023", date(2023, 7, 4), date(2023, 8, 3)),
        ("the year after 2021-12-31", date(2022, 1, 1), date(2023, 1, 1)),
        ("two Mondays before 3 August 2023", None, date(2023, 8, 3)),
        ("before 3 August 2023", None, date(2023, 8, 3)),
        ("the week of 3 August 2023", date(2023, 7, 31), date(2023, 8, 7)),
        ("the day before yesterday", date(2023, 10, 13), date(2023, 10, 14)),
    ],
)
def test_a_time_told_from_a_date(told, start, end):
    assert asked(f"What did she do {told}?") == (start, end)


def test_beyond_the_end_of_the_calendar_the_date_itself_binds():
    assert asked("the year after 9999-06-01") == (date(9999, 6, 2), None)
