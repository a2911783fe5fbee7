"""Spans of the calendar: days, weeks, weekends, months, quarters, years, as half-open pairs of days.

A week begins on Monday (ISO 8601). Every function raises `ValueError` or `OverflowError` where the
calendar ends (years 1 and 9999).
"""

from collections.abc import Callable, Mapping
from datetime import date, timedelta

Span = tuple[date, date]
"""First day, and the day after the last."""

WEEK = 7
SATURDAY = 5
"""`date.weekday()` of the first day of a weekend."""


def days_from(day: date, days: int = 1) -> Span:
    """Return the span of so many days from the given one on."""
    return day, day + timedelta(days=days)


def day_span(day: date, shift: int = 0) -> Span:
    """Return the day `shift` days later."""
    return days_from(day + timedelta(days=shift))


def week_span(day: date, shift: int = 0) -> Span:
    """Return the Monday-to-Sunday week `shift` weeks after that of the day."""
    return days_from(day + timedelta(days=WEEK * shift - day.weekday()), WEEK)


def weekend_span(day: date, shift: int = 0) -> Span:
    """Return Saturday and Sunday of the week `shift` weeks after that of the day."""
    return days_from(week_span(day, shift)[0] + timedelta(days=SATURDAY), 2)


def months_span(day: date, shift: int = 0, months: int = 1) -> Span:
    """Return so many whole months, beginning `shift` months after that of the day."""
    first = day.year * 12 + day.month - 1 + shift
    last = first + months
    return date(first // 12, first % 12 + 1, 1), date(last // 12, last % 12 + 1, 1)


def quarter_span(day: date, shift: int = 0) -> Span:
    """Return the calendar quarter `shift` quarters after that of the day."""
    return months_span(day, 3 * shift - (day.month - 1) % 3, 3)


def year_span(day: date, shift: int = 0) -> Span:
    """Return the calendar year `shift` years after that of the day."""
    return date(day.year + shift, 1, 1), date(day.year + shift + 1, 1, 1)


SPANS: Mapping[str, Callable[[date, int], Span]] = {
    "day": day_span,
    "week": week_span,
    "fortnight": lambda day, shift: week_span(day, 2 * shift),
    "weekend": weekend_span,
    "month": months_span,
    "quarter": quarter_span,
    "year": year_span,
}
"""The span of each unit, by its English name: (day, shift) → span."""
