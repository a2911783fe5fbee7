"""What a turn's text is like, whatever is asked: a few small numbers, told once when the turn is indexed.

English words; a text in another language has its question marks, quotes, dates in figures, and capitals.
Ours: found on LoCoMo, by what evidence of "when", "how long", "who" and "what" questions has and others lack.
"""

import re
from datetime import datetime
from typing import NamedTuple

from lamina.streams.dates import resolve_dates

MOST_CAPITALS = 3
"""More capitalised words than this say no more."""

_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|weeks?|weekend|months?|years?"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday"
    r"|january|february|march|april|june|july|august|september|october|november|december"
    r"|since|recently|summer|winter|spring|fall|autumn|morning|evening)\b",
    re.IGNORECASE,
)
"""Words that tell when, or for how long. "May" is missing: it is a verb more often."""
_CAPITAL = re.compile(r"(?<=[a-zà-ÿ,;:] )[A-ZÀ-Þ][^\W\d_]+")
"""A capitalised word that begins no sentence: a name, mostly."""
_QUESTION = ("?", "？")
_QUOTES = ('"', "“", "„", "«", "「", "《")


class Traits(NamedTuple):
    """Numbers of 0 to 255: 0 or 1 where a thing is so, else a count. A missing record is all zeros."""

    ends_asking: int = 0
    """The text ends with a question mark."""
    asks: int = 0
    """A question mark stands anywhere in it."""
    time_word: int = 0
    """A word tells when or for how long: "yesterday", "weeks", "since", "June"."""
    date: int = 0
    """`lamina.streams.dates` resolves a phrase of it."""
    capitals: int = 0
    """Distinct capitalised words within its sentences, at most `MOST_CAPITALS`."""
    quote: int = 0
    """A double quotation mark stands in it: a title, or what someone said."""


TRAITS = Traits._fields
"""The columns of `Pool.traits`."""


def traits_of(text: str, said_at: datetime) -> Traits:
    """Return the traits of a turn's text.

    Args:
        text: what was said, without the speaker.
        said_at: when: what "last week" counts from.
    """
    return Traits(
        ends_asking=text.rstrip().endswith(_QUESTION),
        asks=any(mark in text for mark in _QUESTION),
        time_word=_TIME.search(text) is not None,
        date=bool(resolve_dates(text, said_at)),
        capitals=min(MOST_CAPITALS, len(set(_CAPITAL.findall(text)))),
        quote=any(mark in text for mark in _QUOTES),
    )
