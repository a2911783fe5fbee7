"""What a set of sources says: the measure by which a model's words are grounded (ours).

A statement is supported where enough of its content words occur in its sources, and every name, figure and
date in it does. Names are read by `lamina.streams.entities`, which would rather miss one than invent one;
number words ("two friends") are no figures, since a narrative counts what it tells.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from lamina.streams.dates import resolve_dates
from lamina.streams.entities import entities
from lamina.streams.records import Unit
from lamina.streams.words import STOP_WORDS, stem, stems, tokens

LEAST_SHARED = 0.4
"""Share of a statement's content stems that its sources must hold.

Chosen on the summaries and observations that GPT wrote of the LoCoMo sessions (seven conversations): 96 % of
504 pieces of summary and 98 % of 1,754 observations share as much with their own turns, 31 % and 10 % with
those of another session of the same two people, which the checks of names, figures and dates thin further.
"""

Span = tuple[date, date]
"""First day, and the day after the last."""


@dataclass(slots=True)
class Sources:
    """The words, figures and days that a statement may use."""

    words: set[str] = field(default_factory=set)
    stems: set[str] = field(default_factory=set)
    days: list[Span] = field(default_factory=list)
    clocks: set[int] = field(default_factory=set)
    """Times of the day at which something was said, in minutes."""

    def add_text(self, text: str, at: datetime) -> None:
        """Add a text and the days it names; `at` is when it was said."""
        self.words.update(tokens(text))
        self.stems.update(stems(text))
        self.days += [(each.start.date(), each.end.date()) for each in resolve_dates(text, at)]
        self.days += _iso_days(text)

    def add_unit(self, unit: Unit) -> None:
        """Add a unit: what it says, who says it, its keywords, and the times it carries."""
        self.add_text(unit.text, unit.said_at)
        self.add_text(" ".join((unit.speaker, unit.role, unit.topic or "", *unit.keywords)), unit.said_at)
        self.add_text(" ".join((unit.subject or "", unit.relation or "", unit.object or "")), unit.said_at)
        if unit.summary:
            self.add_text(unit.summary, unit.said_at)
        self.clocks.add(unit.said_at.hour * 60 + unit.said_at.minute)
        first = unit.occurred_from or unit.said_at
        last = unit.occurred_to or first
        self.days += [_whole_days(unit.said_at, unit.said_at), _whole_days(first, last)]
        if unit.valid_from:
            self.days.append(_whole_days(unit.valid_from, unit.valid_from))

    def allows(self, start: date, end: date) -> bool:
        """Tell whether a half-open range of days meets one that the sources name."""
        return any(start < last and first < end for first, last in self.days)

    def share(self, text: str) -> float:
        """Return the share of a text's content stems that the sources hold; 0 where it has none."""
        own = set(stems(text))
        return len(own & self.stems) / len(own) if own else 0.0

    def fault(self, text: str, least: float = LEAST_SHARED, *, names: "Sources | None" = None) -> str | None:
        """Return why a text is not supported, or None.

        Args:
            text: the statement.
            least: share of its content stems that must be held.
            names: where its names may come from, if from more than what supports the rest: "she" of one turn
                is named in another.
        """
        if self.share(text) < least:
            return "says little of what its turns say"
        dates = resolve_dates(text, _LONG_AGO)
        absolute = [each for each in dates if _DIGIT.search(each.phrase) and _YEAR.search(each.phrase)]
        for each in absolute:
            if not self.allows(each.start.date(), each.end.date()):
                return f"gives a date that no turn gives ({each.phrase})"
        for first, last in _iso_days(text):
            if not self.allows(first, last):
                return f"gives a date that no turn gives ({first.isoformat()})"
        rest = text
        for each in absolute:
            rest = rest.replace(each.phrase, " ")
        rest = _CLOCK.sub(lambda match: " " if _minutes(match) in self.clocks else match.group(), rest)
        rest = _ISO.sub(" ", rest)
        unknown = [word for word in tokens(rest) if _DIGIT.search(word) and not self._knows_figure(word)]
        if unknown:
            return f"gives a figure that no turn gives ({unknown[0]})"
        named = names or self
        strange = [
            name for name in sorted(entities(rest)) if not (_DIGIT.search(name) or named.knows_name(name))
        ]
        return f"names what no turn names ({strange[0]})" if strange else None

    def knows_name(self, name: str) -> bool:
        """Tell whether every word of a name stands in the sources, or is akin to one that does."""
        return all(self._knows_word(word) for word in tokens(name))

    def _knows_figure(self, word: str) -> bool:
        figure = _ORDINAL.sub("", word)
        if figure in self.words or word in self.words or _SPELT.get(figure) in self.words:
            return True
        if any(_ORDINAL.sub("", known) == figure for known in self.words if known[:1] == figure[:1]):
            return True
        # A day or a year written apart from its month ("1 July", "of 2023").
        return any(figure in {str(first.day), str(first.year)} for first, _ in self.days)

    def _knows_word(self, word: str) -> bool:
        plain = word.removesuffix("'s")
        if plain in _NO_NAMES or plain in STOP_WORDS or _DIGIT.search(plain):
            return True
        if plain in self.words or stem(plain) in self.stems:
            return True
        # "Mel" is Melanie, "Portuguese" comes from Portugal.
        return any(_akin(plain, known) for known in self.words if known[:1] == plain[:1])


def sources_of(units: Iterable[Unit], texts: Sequence[tuple[str, datetime]] = ()) -> Sources:
    """Return what units, and texts said at a time, allow a statement to say."""
    sources = Sources()
    for unit in units:
        sources.add_unit(unit)
    for text, at in texts:
        sources.add_text(text, at)
    return sources


def days_in(text: str) -> list[tuple[datetime, datetime]]:
    """Return the absolute dates of a statement as half-open ranges, UTC, in no set order."""
    written = [
        (each.start, each.end)
        for each in resolve_dates(text, _LONG_AGO)
        if _DIGIT.search(each.phrase) and _YEAR.search(each.phrase)
    ]
    return written + [(_midnight(first), _midnight(last)) for first, last in _iso_days(text)]


def day_of(text: str) -> date | None:
    """Read YYYY-MM-DD, YYYY-MM or YYYY as its first day; None for anything else."""
    match = _ISO.fullmatch(text.strip()) or _BARE_YEAR.fullmatch(text.strip())
    if match is None:
        return None
    spans = _iso_days(match.group())
    return spans[0][0] if spans else date(int(match.group()[:4]), 1, 1)


def _iso_days(text: str) -> list[Span]:
    found = []
    for match in _ISO.finditer(text):
        year, month, day = int(match[1]), int(match[2]), match[3]
        try:
            first = date(year, month, int(day or 1))
            last = first + timedelta(days=1) if day else date(year + month // 12, month % 12 + 1, 1)
        except ValueError:
            continue
        found.append((first, last))
    return found


def _whole_days(first: datetime, last: datetime) -> Span:
    end = last.date()
    ends_at_midnight = last > first and last.time() == datetime.min.time()
    return first.date(), end if ends_at_midnight else end + timedelta(days=1)


def _minutes(clock: re.Match[str]) -> int:
    hour, half = int(clock[1]), (clock[3] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return hour * 60 + int(clock[2])


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _akin(left: str, right: str) -> bool:
    shorter = min(len(left), len(right))
    if shorter < _SHORTEST_SHORT_NAME:
        return False
    return left.startswith(right) or right.startswith(left) or left[:_SAME_ROOT] == right[:_SAME_ROOT]


_SHORTEST_SHORT_NAME = 3
_SAME_ROOT = 5
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK = re.compile(r"\b(\d{1,2}):(\d\d)(?:\s?([ap])\.?m\b\.?)?", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d)(?:-(\d\d))?\b")
_BARE_YEAR = re.compile(r"(?:19|20)\d\d")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th|k|km|kg|cm|mm|g|ml|l|m|am|pm)\Z")
_SPELT = dict(
    zip(
        map(str, range(1, 13)),
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
        strict=True,
    )
)
_NO_NAMES_TEXT = """
january february march april may june july august september october november december jan feb mar apr jun
jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday yesterday tomorrow
today tonight last next this night weekend week month year spring summer fall autumn winter morning
afternoon evening one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
million dozen twice half past o'clock user assistant both together during despite following
"""
_NO_NAMES = frozenset(_NO_NAMES_TEXT.split())
"""What `entities` reports and no source needs to name."""
