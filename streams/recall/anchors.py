"""Times told from a date: "the week before 3 August", "the Saturday after 2 May", "two days before 2 May".

Rules, English; ours. Ranges are half-open, at midnights UTC, like those of `lamina.streams.dates`:

- "the week before 3 August" is the seven days that end with it, "the month after" the thirty that follow;
  "the month before June" is May.
- "the weekend before", "the Monday after" are the nearest that lie wholly before or after.
- "two weeks before" is the calendar week so far away, "a few days after" two to five days later.
"""

import re
from calendar import day_name
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from lamina.streams.calendar_spans import SPANS, WEEK, Span, day_span, days_from, weekend_span

_WEEKDAYS = [name.lower() for name in day_name]
_DAYS = "|".join(_WEEKDAYS)
_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTS = {
    "couple": (2, 2),
    "couple of": (2, 2),
    "few": (2, 5),
    "several": (3, 7),
    **{word: (n, n) for n, word in enumerate(_NUMBERS, 2)},
}
_ANCHORED = re.compile(
    rf"\b(?:(?P<count>\d{{1,2}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))})\s+)?"
    rf"(?:last\s+)?(?P<unit>day|night|evening|weekend|week|fortnight|month|year|{_DAYS})s?"
    rf"\s+(?:just\s+|right\s+)?(?P<side>before|after)\s+(?:on\s+)?(?:the\s+)?(?:(?:{_DAYS}),?\s+)?\Z",
    re.IGNORECASE,
)
_LENGTHS = {"week": WEEK, "fortnight": 2 * WEEK, "month": 30, "year": 365}
"""Days of the period that ends, or begins, with a date."""


@dataclass(frozen=True, slots=True)
class Anchored:
    """A range told from a date."""

    place: int
    """Where its words begin in the text before that date."""
    start: datetime
    end: datetime


def anchored(head: str, start: datetime, end: datetime) -> Anchored | None:
    """Return the range that words before a date tell by it; None where they tell none.

    Args:
        head: the text up to the date, "before" or "after" included.
        start: when the date begins.
        end: when it has passed.
    """
    match = _ANCHORED.search(head)
    if match is None:
        return None
    side: Literal[-1, 1] = -1 if match["side"].lower() == "before" else 1
    edge = start.date() if side < 0 else end.date()
    try:
        span = _span(match, edge, side)
    except (ValueError, OverflowError):  # the calendar ends
        return None
    return span and Anchored(match.start(), _midnight(span[0]), _midnight(span[1]))


def _span(match: re.Match[str], edge: date, side: Literal[-1, 1]) -> Span | None:
    """Return the span; `edge` is the first day of the date, or after it the first day that follows."""
    unit = match["unit"].lower()
    unit = "day" if unit in {"night", "evening"} else unit
    beside = edge if side > 0 else edge - timedelta(days=1)  # the nearest day on that side
    if match["count"]:
        return _counted(match["count"].lower(), unit, edge if side < 0 else edge - timedelta(days=1), side)
    if unit == "day":
        return day_span(beside)
    if unit == "weekend":
        nearest = weekend_span(beside)
        return (
            nearest
            if (nearest[0] >= edge if side > 0 else nearest[1] <= edge)
            else weekend_span(beside, side)
        )
    if unit in _LENGTHS:
        return _length(unit, edge, side)
    weekday = _WEEKDAYS.index(unit)
    away = (weekday - beside.weekday()) % WEEK if side > 0 else (beside.weekday() - weekday) % WEEK
    return day_span(beside, side * away)


def _counted(count: str, unit: str, day: date, side: Literal[-1, 1]) -> Span | None:
    """Return the days, weeks, months or years so far from the day; None for "two Mondays before"."""
    if unit not in SPANS:
        return None
    least, most = (int(count),) * 2 if count.isdecimal() else _COUNTS[count]
    spans = [SPANS[unit](day, side * far) for far in (least, most)]
    return min(spans)[0], max(spans)[1]


def _length(unit: str, edge: date, side: Literal[-1, 1]) -> Span:
    """Return the period that ends or begins at the edge: a calendar one where one does."""
    if (unit == "month" and edge.day == 1) or (unit == "year" and (edge.month, edge.day) == (1, 1)):
        return SPANS[unit](edge, min(side, 0))
    days = _LENGTHS[unit]
    return days_from(edge if side > 0 else edge - timedelta(days=days), days)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
