"""What a unit states, in a form that compares: the reading behind topology by rules (ours). English.

Facts say it themselves; turns are read by `lamina.streams.facts`, which rather misses a statement than
invents one. A turn that carries anything beside its one statement is never taken for that statement alone:
to archive it would hide the rest.
"""

import re
from dataclasses import dataclass, field

from lamina.streams.dates import resolve_dates
from lamina.streams.facts import facts_in
from lamina.streams.records import Unit
from lamina.streams.sentences import sentences
from lamina.streams.words import STOP_WORDS, normalise, stem, stems, tokens

_WORDING_TEXT = """
live living reside residence home address based house work working job employed position
like love enjoy adore hate dislike detest loathe fan keen fond passionate crazy prefer
name named call called number phone email mail study studying due deadline
really actually still currently now nowadays truly absolutely definitely personally
"""
_WORDING = frozenset(stem(word) for word in _WORDING_TEXT.split())
"""Stems by which one and the same statement may differ in wording."""

_NUMBERS_TEXT = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty
"""
_NUMBERS = {word: str(value) for value, word in enumerate(_NUMBERS_TEXT.split())}
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*\Z")
_TOTALS = re.compile(
    r"\b(?:have|has|own|owns|so far|in total|altogether|by now|already|now)\b|'ve\b", re.IGNORECASE
)
_ONESELF = re.compile(r"\b(?:i|we|my|our)\b", re.IGNORECASE)
_TIME_WORDS_TEXT = "now already recently lately currently just far total altogether"
_TIME_WORDS = frozenset(stem(word) for word in _TIME_WORDS_TEXT.split())


@dataclass(frozen=True, slots=True)
class Statement:
    """Who, what relation, what object: case and wording taken off, figures as digits."""

    subject: str
    relation: str
    object: tuple[str, ...]
    """Stems of its words, in order."""
    said: str = field(default="", compare=False)
    """The relation and the object as they were written, for the reason of an edit."""


@dataclass(frozen=True, slots=True)
class Count:
    """A statement of a running total, its number taken out: "I've tried … Korean restaurants"."""

    number: str
    counted: tuple[str, ...]
    """Stems of the two words behind the number: what is counted."""
    said: str = field(compare=False)
    """The sentence."""
    words: frozenset[str]
    """All other stems of the sentence."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A unit in the forms that are compared."""

    unit: Unit
    statements: tuple[Statement, ...]
    alone: Statement | None
    """The one thing that it states, where it says nothing else."""
    counts: tuple[Count, ...]
    sentences: int
    words: tuple[str, ...]
    """Stems of its content words in order, number words as digits."""


def read(unit: Unit) -> Reading:
    """Read a unit; of a turn it takes some milliseconds, so do it once."""
    stated = statements_of(unit)
    return Reading(
        unit, stated, _alone(unit, stated), counts_of(unit), len(sentences(unit.text)), content_of(unit.text)
    )


def statements_of(unit: Unit) -> tuple[Statement, ...]:
    """Return what a fact or a turn states plainly; other kinds are narratives and state nothing here."""
    if unit.kind == "fact":
        if unit.subject is None or unit.relation is None:
            return ()
        return (_statement(unit.subject, unit.relation, unit.object or ""),)
    if unit.kind != "turn":
        return ()
    return tuple(_statement(fact.subject, fact.relation, fact.object) for fact in facts_in(unit))


def _alone(unit: Unit, stated: tuple[Statement, ...]) -> Statement | None:
    if len(stated) != 1:
        return None
    (said,) = stated
    if unit.kind == "fact":
        return said
    covered = {*stems(said.subject), *said.object, *stems(said.relation.replace("_", " "))}
    beside = {word for word in _figured(unit.text) if word not in covered and word not in _WORDING}
    return None if beside else said


def counts_of(unit: Unit) -> tuple[Count, ...]:
    """Return the running totals that a unit states, at most one a sentence.

    A total is told by its form: "have tried three", "three so far". "I bought three apples" is an event, and
    another purchase does not supersede it.
    """
    found: list[Count] = []
    for sentence in sentences(unit.text):
        if not (_TOTALS.search(sentence) and _ONESELF.search(sentence)):
            continue
        words = _figured(sentence)
        figures = [place for place, word in enumerate(words) if _FIGURE.match(word)]
        # "Three meetings today" is of today alone.
        if len(figures) != 1 or resolve_dates(sentence, unit.said_at):
            continue
        (place,) = figures
        counted = tuple(words[place + 1 : place + 3])
        rest = frozenset(w for w in words if not _FIGURE.match(w) and w not in _TIME_WORDS)
        if counted:
            found.append(Count(words[place], counted, sentence, rest))
    return tuple(found)


def same_total(newer: Count, older: Count) -> bool:
    """Tell whether two totals count the same thing and differ: one says what the other says, and no other."""
    one, other = newer.words, older.words
    return newer.number != older.number and newer.counted == older.counted and (one <= other or other <= one)


def same_but_number(one: Statement, other: Statement) -> bool:
    """Tell whether two objects differ in one figure alone: "3 korean restaurant", "4 korean restaurant"."""
    if len(one.object) != len(other.object) or len(one.object) == 1:
        return False
    differing = [pair for pair in zip(one.object, other.object, strict=True) if pair[0] != pair[1]]
    return len(differing) == 1 and all(_FIGURE.match(word) for word in differing[0])


def content_of(text: str) -> tuple[str, ...]:
    """Return the stems of a text's content words in order, number words as digits."""
    return tuple(_figured(text))


def _statement(subject: str, relation: str, what: str) -> Statement:
    said = f"{relation.replace('_', ' ')} {what}"
    return Statement(subject.casefold(), relation, tuple(_figured(what)) or tuple(tokens(what)), said)


def _figured(text: str) -> list[str]:
    """Return the stems of the words that are no stop words; "three" and "3" are one figure."""
    words = (_NUMBERS.get(word, word) for word in tokens(normalise(text)))
    return [stem(word) for word in words if word not in STOP_WORDS]
