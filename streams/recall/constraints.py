"""What a question binds its answer to: a range of time and names (the C_meta of SimpleMem eq. 7).

SimpleMem's planner is a language model that writes a time range and keywords (app. A.2); ours reads the same
from the question by rules: its date phrases (`lamina.streams.dates`), with "before", "until", "after" and
"since" in front of them, and the names of speakers and others in it. English; other languages have figures
such as 2026-05-03 and names with capitals.
"""

import re
from calendar import day_abbr, day_name, month_abbr, month_name
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lamina.streams.dates import ResolvedDate, resolve_dates
from lamina.streams.entities import entities
from lamina.streams.recall.anchors import Anchored, anchored
from lamina.streams.records import Unit
from lamina.streams.words import STOP_WORDS, normalise, tokens

_BEFORE = frozenset({"before", "until", "till", "by"})
_AFTER = frozenset({"after"})
_FROM = frozenset({"since", "from"})
_LEADS = _BEFORE | _AFTER | _FROM
_WEEK_OF = re.compile(r"\bweek (?:of|starting|beginning)\s*(?:on\s+)?\Z", re.IGNORECASE)
_LEAD = re.compile(
    r"\b([a-z]+)\s+(?:the\s+)?(?:(?:start|beginning|middle|(end))\s+of\s+)?(?:the\s+)?\Z", re.IGNORECASE
)
_MONTH = "|".join(name for name in month_name if name)
_MONTHS = re.compile(
    rf"\b(between|from)\s+({_MONTH})\s+(and|to|until|through)\s+({_MONTH})\s+(\d{{4}})\b", re.IGNORECASE
)
"""A year that stands once for both months."""
_CALENDAR = frozenset(
    name.casefold() for names in (day_name, day_abbr, month_name, month_abbr) for name in names if name
)
LONGEST = 2000
"""Characters of a question that are read: of a pasted text of 30,000 it would take 0.1 s."""
_REACH = 60
"""Characters before a date phrase that are read for what leads it."""
_WEEK = timedelta(days=7)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Constraints:
    """What an answer's memory must satisfy: time within [start, end), and one of the names."""

    start: datetime | None = None
    end: datetime | None = None
    names: frozenset[str] = frozenset()

    @property
    def dated(self) -> bool:
        """Whether time is bound."""
        return self.start is not None or self.end is not None

    def met(self, unit: Unit) -> bool:
        """Tell whether a unit was said, or happened, within the range, and is by or about one of them."""
        return self._within(unit) and self._named(unit)

    def _within(self, unit: Unit) -> bool:
        start, end = self.start or _FIRST, self.end or _LAST
        if start <= unit.said_at < end:
            return True
        first, after = unit.occurred_from, unit.occurred_to
        if first is None:
            return False
        return first < end and (first >= start if after is None else after > start)

    def _named(self, unit: Unit) -> bool:
        if not self.names:
            return True
        said = " ".join((unit.speaker, unit.subject or "", *unit.entities, unit.text))
        words = f" {' '.join(tokens(said))} "
        return any(f" {name} " in words or f" {name}'s " in words for name in self.names)


def constraints(question: str, at: datetime, speakers: Iterable[str]) -> Constraints:
    """Read what a question binds its answer to.

    Several date phrases bind to the span of all ("between May and July 2023"); an open end ("before May")
    stays open unless another phrase closes it. A name is that of a speaker, or a capitalised one that is no
    date.

    Args:
        question: what is asked; its two ends count, as `telling` says.
        at: when it is asked: what "last week" counts from.
        speakers: who speaks in the memory.
    """
    start, end, rest = _time(question, at)
    return Constraints(start=start, end=end, names=frozenset(_names(rest, speakers)))


def time_range(question: str, at: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the half-open range of time that a question names; None at an open end, or where it names none.

    Args:
        question: what is asked; its two ends count, as `telling` says.
        at: when it is asked: what "last week" counts from.
    """
    start, end, _ = _time(question, at)
    return start, end


def telling(question: str) -> str:
    """Return what is read of a question: of a long one its first and last `LONGEST` ÷ 2 characters.

    Whoever pastes a text asks before or after it.
    """
    if len(question) <= LONGEST:
        return question
    return f"{question[: LONGEST // 2]}\n{question[-(LONGEST // 2) :]}"


def _time(question: str, at: datetime) -> tuple[datetime | None, datetime | None, str]:
    """Return the range of time that a question names, and the question without the phrases that name it."""
    question = _MONTHS.sub(r"\1 \2 \5 \3 \4 \5", telling(question))
    starts: list[datetime] = []
    ends: list[datetime] = []
    rest = question
    told = [(place, date, _anchored(question, place, date)) for place, date in _placed(question, at)]
    covered = [range(one.place, place) for place, _, one in told if one]
    for place, date, one in told:
        if any(place in words for words in covered):
            continue  # "last weekend before 10 April" is told by that day, not by today
        start, end = (one.start, one.end) if one else _bound(question, place, date)
        starts += [start] if start else []
        ends += [end] if end and end > _FIRST else []  # nothing is before the first day of the calendar
        rest = rest.replace(date.phrase, " · ")
    return min(starts, default=None), max(ends, default=None), rest


def _placed(question: str, at: datetime) -> Iterable[tuple[int, ResolvedDate]]:
    """Yield the date phrases of a question, in order, with where they stand."""
    after = 0
    for date in resolve_dates(question, at):
        place = question.index(date.phrase, after)
        after = place + len(date.phrase)
        yield place, date


def _anchored(question: str, place: int, date: ResolvedDate) -> Anchored | None:
    """Return the range that words in front of a date tell by it: "the week before 3 August"."""
    front = date.phrase.split(maxsplit=1)[0]
    lead = f"{front} " if front.lower() in _BEFORE | _AFTER else ""
    offset = max(0, place - _REACH)
    found = anchored(question[offset:place] + lead, date.start, date.end)
    return found and Anchored(found.place + offset, found.start, found.end)


def _bound(question: str, place: int, date: ResolvedDate) -> tuple[datetime | None, datetime | None]:
    """Return the range that a phrase binds to with the word in front of it, or that it begins with."""
    head = question[max(0, place - _REACH) : place]
    front = date.phrase.split(maxsplit=1)[0].lower()
    match = _LEAD.search(f"{head}of " if front == "of" else head)
    if front not in _LEADS:
        front = match[1].lower() if match else ""
    start, end = date.start, date.end
    if _WEEK_OF.search(head) and end - start == timedelta(days=1):
        start -= timedelta(days=start.weekday())
        end = min(start, _LAST - _WEEK) + _WEEK
    if front in _BEFORE:
        return None, end if front == "by" or (match and match[2]) else start
    if front in _AFTER:
        return end, None
    return start, None if front in _FROM else end


def _names(question: str, speakers: Iterable[str]) -> Iterable[str]:
    """Yield the words of a speaker's name that the question says, and the capitalised names in it."""
    asked = {word.removesuffix("'s") for word in tokens(question)}
    for speaker in speakers:
        yield from (word for word in tokens(speaker) if word in asked and word not in STOP_WORDS)
    capitals = {
        word.casefold().removesuffix("'s")
        for word in re.findall(r"\w[\w'-]*", normalise(question))
        if word[0].isupper()
    }
    for name in entities(question):
        words = tokens(name)
        if words and words[0] in capitals - _CALENDAR:
            yield " ".join(words)
