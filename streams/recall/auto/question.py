"""What a question asks for, by rules: whose words, of what time, and what kind of answer. English words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from lamina.streams.recall.constraints import telling, time_range
from lamina.streams.words import STOP_WORDS, tokens

_WHEN = re.compile(r"\bwhen\b|\b(?:what|which) (?:date|year|month|day|week)\b", re.IGNORECASE)
_COUNT = re.compile(r"\bhow (?:long|often|many|much)\b", re.IGNORECASE)
_WHO = re.compile(r"\b(?:who|whom|whose|which|where)\b", re.IGNORECASE)
_WHAT = re.compile(r"\b(?:what|which)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """What the features need to know of a question."""

    when: bool
    """It asks for a time."""
    count: bool
    """It asks how long, often, many or much."""
    who: bool
    """It asks for a person, a place or one of several."""
    what: bool
    """It asks for a thing."""
    speaker: int | None
    """Place of the one speaker that it names; None where it names none, or more than one."""
    start: float | None
    """Beginning of the time that it names, Unix seconds; None where open or not named."""
    end: float | None
    """The moment after that time."""

    @property
    def dated(self) -> bool:
        """Whether it names a time."""
        return self.start is not None or self.end is not None


def read(question: str, at: datetime, speakers: Sequence[str]) -> Question:
    """Read a question.

    Args:
        question: what is asked; its two ends count, as `telling` says.
        at: what "last week" counts from.
        speakers: who speaks in the memory.
    """
    text = telling(question)
    start, end = time_range(text, at)
    return Question(
        when=_WHEN.search(text) is not None,
        count=_COUNT.search(text) is not None,
        who=_WHO.search(text) is not None,
        what=_WHAT.search(text) is not None,
        speaker=_named(text, speakers),
        start=start.timestamp() if start else None,
        end=end.timestamp() if end else None,
    )


def _named(text: str, speakers: Sequence[str]) -> int | None:
    """Return the place of the one speaker that is named, by its whole name or a word of it."""
    asked = frozenset(word.removesuffix("'s") for word in tokens(text))
    names = [_words(speaker) for speaker in speakers]
    whole = [place for place, name in enumerate(names) if name and name <= asked]
    rest = asked.difference(*(names[place] for place in whole))
    named = whole + [place for place, name in enumerate(names) if not name.isdisjoint(rest)]
    return named[0] if len(named) == 1 else None


@lru_cache(maxsize=4096)
def _words(speaker: str) -> frozenset[str]:
    """Return the words by which a speaker is named; "Will" and "May I" are no way to tell one."""
    return frozenset(word for word in tokens(speaker) if word not in STOP_WORDS)
