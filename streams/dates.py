"""Date phrases of English text, resolved against the time it was said (the Φ_time of SimpleMem eq. 3).

SimpleMem has a language model write one day; ours is rules, and keeps a range that is never narrower than
the phrase. Every range is half-open, [start, end), and begins and ends at midnight UTC: the stored time
carries no other zone, so "yesterday" is the UTC day before.

- "last week" is the Monday-to-Sunday week before that of `said_at`, "two weeks ago" the one before that,
  "last weekend" the Saturday and Sunday of last week.
- "last Friday" is the nearest Friday before the day, "next Friday" the nearest after it, "this Friday" that
  of the running week.
- "three months ago" is a calendar month, "three years ago" a calendar year; "a few" is two to five.
- Seasons are meteorological and northern (spring from 1 March); "last summer" is the latest that has ended.
- What may lie before or after ("on Friday", "3 May", "in March") follows the verb of its sentence; without
  a telling verb it is the nearer one, and "on Friday" stays unresolved.
- What names no definite range ("recently", "the other day", "03/04/2026") stays unresolved.

The rules run only on text that holds a tell-tale word or figure.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Literal

from lamina.streams.calendar_spans import (
    SPANS,
    WEEK,
    Span,
    day_span,
    months_span,
    week_span,
    weekend_span,
    year_span,
)


@dataclass(frozen=True, slots=True)
class ResolvedDate:
    """A phrase as it stands in the text, and the half-open range of time, UTC, that it names."""

    phrase: str
    start: datetime
    end: datetime


Tense = Literal["past", "future", "unknown"]


@dataclass(frozen=True, slots=True)
class _Told:
    """What a rule knows: when the sentence was said, and whether it looks back or ahead."""

    at: datetime
    tense: Callable[[], Tense]
    """Read from the sentence where a rule asks: that takes longer than all else."""

    @property
    def today(self) -> date:
        return self.at.date()


def resolve_dates(text: str, said_at: datetime) -> tuple[ResolvedDate, ...]:
    """Return the date phrases of a text with the ranges they name, in the order of the text.

    Where phrases overlap the longer is kept ("the 5th of next month", not "next month"). At most 100 phrases
    of each form are resolved, so that a pasted log cannot hold up the stream.

    Args:
        text: English text; of other languages only figures such as 2026-05-03 are read.
        said_at: when it was said; zone-less is read as UTC.
    """
    if not _HINT.search(text):
        return ()
    at = said_at.replace(tzinfo=UTC) if said_at.tzinfo is None else said_at.astimezone(UTC)
    found: list[tuple[int, int, Span]] = []
    for pattern, rule in _RULES:
        for match in islice(pattern.finditer(text), _MOST):
            try:
                span = rule(match, _Told(at, partial(_tense, text, match)))
            except (ValueError, OverflowError):  # 30 February, or a year outside the calendar
                continue
            if span is not None:
                found.append((match.start(), match.end(), span))
    kept: list[tuple[int, int, Span]] = []
    for item in sorted(found):
        if not kept or item[0] >= kept[-1][1]:
            kept.append(item)
        elif item[1] - item[0] > kept[-1][1] - kept[-1][0]:
            kept[-1] = item
    return tuple(
        ResolvedDate(text[start:end], _midnight(first), _midnight(after))
        for start, end, (first, after) in kept
    )


def spelled(start: datetime, end: datetime) -> str:
    """Write a half-open range in ISO 8601: a day, a month (2026-05), a year, else first "to" last day."""
    first, last = start.date(), end.date() - timedelta(days=1)
    if first >= last:
        return first.isoformat()
    if (first, end.date()) == year_span(first):
        return first.isoformat()[:4]
    if (first, end.date()) == months_span(first):
        return first.isoformat()[:7]
    return f"{first.isoformat()} to {last.isoformat()}"


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


# Whether a sentence looks back or ahead. A participle of planning looks ahead ("is scheduled for Friday");
# other words in -ed look back.
_AHEAD = re.compile(
    r"\b(?:will|won't|shall|going to|gonna|plan(?:s|ned|ning)?|due|deadline|upcoming|coming up"
    r"|hop(?:e|ing) to|wants? to|ha(?:ve|s) to|needs? to|must|should|scheduled|supposed to"
    r"|looking forward|can't wait|excited (?:for|about)|expires?|remind|starts?|begins?|let's|by"
    r"|(?:am|are|is) \w+ing)\b|['’]ll\b|['’](?:m|re|s) \w+ing\b",
    re.IGNORECASE,
)
_BACK = re.compile(
    r"\b(?:was|were|wasn't|weren't|had|did|didn't|went|got|came|saw|took|made|met|ran|bought|left|began|since"
    r"|back in|found|gave|told|said|felt|lost|won|wrote|sold|taught|spent|kept|held|heard|ate|drove|flew"
    r"|broke|chose|grew|knew|sang|swam|fell|born|built|caught|hurt|been|became|brought|thought|did"
    r"|(?!need|feed|speed|indeed|exceed|excited|scheduled|planned|supposed|interested)\w{2,}ed)\b",
    re.IGNORECASE,
)
_SENTENCE_BREAK = re.compile(r"[.!?](?=\s)|\n")
_MOST = 100
_REACH = 200
"""Characters of a sentence around a phrase that are read for its tense: bounds the cost of a long one."""


def _tense(text: str, match: re.Match[str]) -> Tense:
    """Judge by the last telling verb before the phrase in its sentence, else by the first one after it."""
    before = _SENTENCE_BREAK.split(text[max(0, match.start() - _REACH) : match.start()])[-1]
    after = _SENTENCE_BREAK.split(text[match.end() : match.end() + _REACH], maxsplit=1)[0]
    ahead = max((verb.end() for verb in _AHEAD.finditer(before)), default=-1)
    back = max((verb.end() for verb in _BACK.finditer(before)), default=-1)
    if ahead == back:
        first_ahead, first_back = _AHEAD.search(after), _BACK.search(after)
        ahead = -first_ahead.start() if first_ahead else -_REACH
        back = -first_back.start() if first_back else -_REACH
    if ahead == back:
        return "unknown"
    return "future" if ahead > back else "past"


_MONTH_KEYS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_KEYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""First month of each season; each has three."""
_NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "thirteen": 13,
    "fourteen": 14,
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "eighteen": 18,
    "nineteen": 19,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
}
_VAGUE = {"couple": (2, 2), "few": (2, 5), "several": (3, 7)}
"""Least and most that a vague count means."""
_ALSO_WORDS = frozenset({"may", "march", "mar", "dec", "sep", "jan", "sat", "sun", "wed", "mon"})
"""Months and days that are other words when written small."""
_DECEMBER = 12
_LEAP_YEARS = 8
"""Most years from one 29 February to the next (1896 to 1904)."""


def _number(words: str) -> int:
    if words.isdecimal():
        return int(words)
    return sum(_NUMBERS[word] for word in re.split(r"[ -]+", words.lower()))


def _bounds(match: re.Match[str]) -> tuple[int, int]:
    """Return the least and the most units that the phrase counts; 1 where it counts none."""
    if match["vague"]:
        return _VAGUE[match["vague"].lower()]
    count = _number(match["count"]) if match["count"] else 1
    return count, count


def _shift(which: str | None) -> int:
    """Return -1 for "last", 0 for "this", 1 for "next"."""
    word = (which or "this").lower().split()[-1]
    return {"this": 0, "next": 1, "coming": 1, "upcoming": 1}.get(word, -1)


def _nearest(told: _Told, spans: list[Span]) -> Span | None:
    """Choose among spans that recur: by the tense, and without one the nearest to the day."""
    today, tense = told.today, told.tense()
    if tense == "past":
        return max((span for span in spans if span[0] <= today), default=None)
    if tense == "future":
        return min((span for span in spans if span[1] > today), default=None)
    return min(spans, key=lambda span: max((span[0] - today).days, (today - span[1]).days + 1, 0))


def _beside(told: _Told, spans: list[Span], which: str) -> Span:
    """Return the latest span that has ended, for "last", or the first to begin, for "next"."""
    if _shift(which) < 0:
        return max(span for span in spans if span[1] <= told.today)
    return min(span for span in spans if span[0] > told.today)


# The rules, one per form of phrase


def _relative_day(match: re.Match[str], told: _Told) -> Span:
    phrase = " ".join(match.group().lower().split())
    if "before yesterday" in phrase:
        return day_span(told.today, -2)
    if "after tomorrow" in phrase:
        return day_span(told.today, 2)
    if phrase.startswith(("yesterday", "last night")):
        return day_span(told.today, -1)
    return day_span(told.today, 1 if phrase.startswith("tomorrow") else 0)


def _calendar_unit(match: re.Match[str], told: _Told) -> Span:
    unit, which = match["unit"].lower(), match["which"].lower()
    # On a working day the coming weekend is that of the running week; "next weekend" is the one after.
    coming = which.endswith("coming") and unit == "weekend" and weekend_span(told.today)[0] > told.today
    return SPANS[unit](told.today, 0 if coming else _shift(which))


def _before_last(match: re.Match[str], told: _Told) -> Span:
    return SPANS[match["unit"].lower()](told.today, -2)


def _running_period(match: re.Match[str], told: _Told) -> Span:
    return SPANS[match["unit"].lower()](told.today, 0)


def _up_to_now(match: re.Match[str], told: _Told) -> Span:
    """Resolve "the past two weeks": from the day, or the first of the month, so long ago to today."""
    count, unit = _bounds(match)[1], match["unit"].lower()
    if unit in {"month", "year"}:
        first = months_span(told.today, -count * (12 if unit == "year" else 1))[0]
    else:
        first = told.today - timedelta(days=count * {"day": 1, "week": WEEK, "fortnight": 2 * WEEK}[unit])
    return first, told.today + timedelta(days=1)


def _counted(match: re.Match[str], told: _Told) -> Span | None:
    """Resolve "three weeks ago" and "in ten days" to the unit that lies so far away."""
    back = match["ago"] is not None
    if not (back or match["now"]):
        # "I finished it in two weeks" and "twice in a week" are lengths of time.
        once = (match["count"] or "").lower() in {"a", "an"} and match["unit"].lower() != "fortnight"
        tense = told.tense()
        if tense == "past" or (once and tense != "future"):
            return None
    sign, unit = -1 if back else 1, match["unit"].lower()
    least, most = _bounds(match)
    if unit in {"hour", "minute"}:
        return day_span((told.at + sign * timedelta(**{f"{unit}s": least})).date())
    if match["half"]:
        return months_span(told.today, sign * (12 * least + 6)) if unit == "year" else None
    spans = [SPANS[unit](told.today, sign * count) for count in (least, most)]
    return min(spans)[0], max(spans)[1]


def _half_year(match: re.Match[str], told: _Told) -> Span:
    return months_span(told.today, -6 if match["ago"] else 6)


def _weekends_ago(match: re.Match[str], told: _Told) -> Span:
    least, most = _bounds(match)
    return weekend_span(told.today, -most)[0], weekend_span(told.today, -least)[1]


def _weekday(match: re.Match[str], told: _Told) -> Span | None:
    if match["day"] in _ALSO_WORDS:
        return None
    weekday = _DAY_KEYS.index(match["day"][:3].lower())
    if match["week"] or (match["which"] or "").lower() == "this":
        return day_span(week_span(told.today, _shift(match["week"]))[0], weekday)
    before = day_span(told.today, -((told.today.weekday() - weekday - 1) % WEEK + 1))
    after = day_span(told.today, (weekday - told.today.weekday() - 1) % WEEK + 1)
    if match["which"]:
        return after if _shift(match["which"]) > 0 else before
    tense = told.tense()
    if tense == "unknown":
        return None
    return after if tense == "future" else before


def _in_month(match: re.Match[str], told: _Told) -> Span | None:
    said = match.groupdict()
    front = (said.get("front") or "").lower()
    small = match["month"] in _ALSO_WORDS and front not in {"in", "last", "next", "since", "until"}
    if small and not match["year"]:
        return None
    first = date(told.today.year, _MONTH_KEYS.index(match["month"][:3].lower()) + 1, 1)
    if match["year"]:
        return months_span(first.replace(year=int(match["year"])))
    years = [months_span(first, 12 * shift) for shift in (-1, 0, 1)]
    if said.get("which") or front == "this":
        return years[1 + _shift(said.get("which"))]
    if front in {"last", "next"}:
        return _beside(told, years, front)
    return _nearest(_Told(told.at, lambda: "past") if front == "since" else told, years)


def _season(match: re.Match[str], told: _Told) -> Span | None:
    said = match.groupdict()
    first = date(told.today.year, _SEASONS[match["season"].lower()], 1)
    if said.get("year"):
        return months_span(first.replace(year=int(match["year"])), 0, 3)
    years = [months_span(first, 12 * shift, 3) for shift in (-2, -1, 0, 1)]
    if _shift(match["which"]):
        return _beside(told, years, match["which"])
    return _nearest(told, [span for span in years if told.today.year in {span[0].year, span[1].year}])


def _in_year(match: re.Match[str], _: _Told) -> Span:
    return year_span(date(int(match["year"]), 1, 1))


def _figures(match: re.Match[str], _: _Told) -> Span | None:
    """Read 2026-05-03 and 3.5.2026; with slashes, only what no other order of day and month allows."""
    first, second, third = (int(part) for part in re.split(r"[-/.]", match.group()))
    if first > 1000:  # noqa: PLR2004 - a year of four digits
        return day_span(date(first, second, third))
    if "." in match.group() or first > _DECEMBER or first == second:
        return day_span(date(third, second, first))
    return day_span(date(third, first, second)) if second > _DECEMBER else None


def _written_day(match: re.Match[str], told: _Told) -> Span | None:
    told_as_date = match["ordinal"] or match["year"] or match["front"]
    if match["month"] in _ALSO_WORDS and not told_as_date:
        return None  # "3 may come"
    day, month = int(match["day"]), _MONTH_KEYS.index(match["month"][:3].lower()) + 1
    if match["year"]:
        span: Span | None = day_span(date(int(match["year"]), month, day))
    else:
        span = _nearest(told, _occurrences(day, month, told.today))
    if span is None or not match["to"]:
        return span
    last = span[0].replace(day=int(match["to"]))
    return (span[0], last + timedelta(days=1)) if last > span[0] else None


def _day_of_month(match: re.Match[str], told: _Told) -> Span | None:
    day = int(match["day"]) - 1
    if match["which"]:
        first, after = months_span(told.today, _shift(match["which"]))
        span = day_span(first, day)
        return span if span[1] <= after else None
    months = [months_span(told.today, shift) for shift in range(-2, 3)]
    return _nearest(told, [day_span(first, day) for first, after in months if day < (after - first).days])


def _occurrences(day: int, month: int, today: date) -> list[Span]:
    """Return the latest such day up to the given one, and the first from it on.

    Raises:
        ValueError: no year has it.
    """
    leap = date(2000, month, day)  # 29 February too: within eight years there is one
    found: list[date] = []
    for year in range(max(today.year - _LEAP_YEARS, 1), min(today.year + _LEAP_YEARS, date.max.year) + 1):
        with suppress(ValueError):
            found.append(leap.replace(year=year))
    before = max((each for each in found if each <= today), default=None)
    after = min((each for each in found if each >= today), default=None)
    return [day_span(each) for each in (before, after) if each is not None]


_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec"
)
_DAYS = (
    "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
    "|mon|tues|tue|weds|wed|thurs|thur|thu|fri|sat|sun"
)
_SEASON = r"(?P<season>spring|summer|autumn|fall|winter)\b"
_YEAR = r"(?P<year>(?:19|20)\d\d)\b(?![-/.:]\d)"
_WHICH = r"(?P<which>last|this past|past|this coming|this|next|coming|upcoming)"
_WORD_COUNT = "|".join(name for name in _NUMBERS if len(name) > len("an"))
_COUNT = (
    rf"(?:(?:an?\s+)?(?P<vague>couple|few|several)(?:\s+of)?"
    rf"|(?P<count>\d{{1,3}}|an?|(?:{_WORD_COUNT})(?:[ -](?:{_WORD_COUNT}))?))"
)
_ABOUT = r"(?:(?:about|around|nearly|almost|roughly)\s+)?"
_UNIT = r"(?P<unit>minute|hour|day|week|fortnight|month|year)s?(?P<half>\s+and\s+a\s+half)?"
_NO_BOUND = r"(?<!over )(?<!than )(?<!least )(?<!\bin )"
_PART = r"(?:\s+(?:morning|afternoon|evening|night))?"
_FRONT = r"(?:(?P<front>on|by|until|till|since|from|before|after)\s+)?"
_NTH = r"(?P<ordinal>st|nd|rd|th)?(?:\s*[-–]\s*(?P<to>\d{1,2})(?:st|nd|rd|th)?)?"
_DAY_ENDS = (
    r"(?=\s*(?:[.,;:!?)]|$)|\s+(?:at|and|with|for|we|i|so|because|but|when|to|from|after|before|was|is"
    r"|in\s+the\s+(?:morning|afternoon|evening))\b)"
)

_HINT = re.compile(
    r"\d|day|night|morning|afternoon|evening|tomorrow|\b(?:week|month|quarter|year|fortnight|hour|minute)"
    rf"|\b(?:{_DAYS}|{_MONTHS}|spring|summer|autumn|fall|winter)\b",
    re.IGNORECASE,
)
"""Every phrase that the rules resolve holds one of these."""

_Rule = Callable[[re.Match[str], _Told], Span | None]


def _rule(rule: _Rule, *patterns: str) -> list[tuple[re.Pattern[str], _Rule]]:
    return [(re.compile(pattern, re.IGNORECASE), rule) for pattern in patterns]


_RULES: tuple[tuple[re.Pattern[str], _Rule], ...] = (
    *_rule(
        _relative_day,
        r"\b(?:the\s+)?day\s+(?:before\s+yesterday|after\s+tomorrow)\b",
        rf"\b(?:yesterday|tomorrow){_PART}\b|\b(?:today|tonight|last\s+night)\b",
        r"\b(?:(?:earlier|later)\s+)?this\s+(?:morning|afternoon|evening)\b",
    ),
    *_rule(
        _calendar_unit,
        rf"(?<!the )(?<!these )\b{_WHICH}\s+(?P<unit>weekend|week|month|quarter|year)\b(?!-)",
    ),
    *_rule(_before_last, r"\bthe\s+(?P<unit>weekend|week|month|year)\s+before\s+last\b"),
    *_rule(
        _running_period,
        r"\b(?:the\s+)?(?:end|start|beginning|middle)\s+of\s+(?:the|this)\s+"
        r"(?P<unit>week|month|quarter|year)\b",
    ),
    *_rule(
        _up_to_now,
        rf"\b(?:the|these)\s+(?:last|past)\s+(?:{_COUNT}\s+)?"
        r"(?P<unit>day|week|fortnight|month|year)s?\b(?!\s+of\b)(?!-)",
    ),
    *_rule(
        _counted,
        rf"{_NO_BOUND}\b{_COUNT}\s+{_UNIT}\s+(?:(?P<ago>ago)|(?P<now>from\s+(?:now|today)))\b",
        rf"\bin\s+{_ABOUT}{_COUNT}\s+{_UNIT}\b(?:['’]?\s+time\b)?(?!\s+ago\b)(?P<ago>(?!))?(?P<now>(?!))?",
    ),
    *_rule(_half_year, r"\bhalf\s+a\s+year\s+(?P<ago>ago)\b", r"\bin\s+half\s+a\s+year\b(?P<ago>(?!))?"),
    *_rule(_weekends_ago, rf"\b{_COUNT}\s+weekends?\s+ago\b"),
    *_rule(
        _weekday,
        rf"\b(?:{_WHICH}|on|by|until|till|since)\s+(?P<day>{_DAYS})\b\.?{_PART}"
        r"(?:\s+(?:of\s+)?(?P<week>last|this|next)\s+week\b)?",
    ),
    *_rule(
        _in_month,
        r"\b(?P<front>in|last|next|this|since|until|till|by|during|of|throughout|early|mid|late)[ -]"
        rf"(?:(?:early|mid|late)[ -])?(?P<month>{_MONTHS})\b\.?"
        rf"(?:,?\s+(?:of\s+)?(?:{_YEAR}|(?P<which>last|this|next)\s+year\b))?(?!\s+(?:the\s+)?\d)",
        rf"\b(?P<month>{_MONTHS})\b\.?,?\s+(?:of\s+)?{_YEAR}",
    ),
    *_rule(
        _season,
        rf"\b{_WHICH}\s+{_SEASON}",
        rf"\b(?:(?:in|during)\s+)?(?:the\s+)?{_SEASON}(?:\s+of)?\s+{_YEAR}",
    ),
    *_rule(
        _in_year,
        rf"\b(?:in|since|during|until|till|by|around|year|early|mid|late|of)[ -]{_YEAR}"
        r"(?!\s*(?:%|€|words|people|steps|miles|km|kg|euros|dollars|pounds|metres|meters|items|times))",
    ),
    *_rule(_figures, r"(?<![\w./-])(?:\d{4}([-/])\d\d?\1\d\d?|\d\d?([/.])\d\d?\2(?:19|20)\d\d)(?![\d/-])"),
    *_rule(
        _written_day,
        rf"(?<![:.\d/-])\b{_FRONT}(?:the\s+)?\b(?P<day>\d\d?){_NTH}\s+(?:of\s+)?(?P<month>{_MONTHS})\b\.?"
        rf"(?:,?\s+{_YEAR})?",
        rf"\b{_FRONT}(?P<month>{_MONTHS})\b\.?\s+(?:the\s+)?(?P<day>\d\d?)(?!\d|[:.,]\d|\s*(?:[ap]m\b|%|km\b))"
        rf"{_NTH}(?:,?\s+{_YEAR})?",
    ),
    *_rule(
        _day_of_month,
        r"\b(?:on|by|until|till|since)\s+the\s+(?P<day>\d\d?)(?:st|nd|rd|th)\b"
        rf"{_DAY_ENDS}(?P<which>(?!))?",
        r"\b(?:(?:on|by|until|till|since)\s+)?(?:the\s+)?(?P<day>\d\d?)(?:st|nd|rd|th)\s+of\s+"
        r"(?P<which>last|this|next)\s+month\b",
    ),
)
