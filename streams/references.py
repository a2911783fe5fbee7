"""What "I", "you", "she", "it" and "there" of a turn mean, by rules (the Φ_coref of SimpleMem eq. 3)."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from lamina.streams.first_person import in_own_name
from lamina.streams.people import People, possessive, strangers
from lamina.streams.records import Unit
from lamina.streams.reference_words import (
    ACTED_ON,
    ADDRESSED,
    AGREEING,
    ANYONE,
    EXISTS,
    EXPLETIVE,
    MANY,
    OPENS,
    OWNED,
    PERSONS,
    PLACE,
    REFERENCE,
    ROLES,
    SENTENCE_END,
    SHE,
    SHORTENED,
    SHORTENED_THIRD,
    THIRD,
    TO_YOU,
)
from lamina.streams.sentences import is_question
from lamina.streams.things import introduced

MOST_REFERENCES = 60
"""Pronouns of a turn that are read: a rant must not hold up the stream."""
_TWO = 2


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in the words as said; an `open` one leaves them and marks the place."""

    start: int
    end: int
    text: str
    open: bool = False
    told: str | None = None
    """The meaning that a reader is told, where the name alone does not tell it."""


def references(turn: Unit, before: Sequence[Unit], text: str) -> Iterator[Edit]:
    """Yield what to write for the references of a turn, in no set order; see `lamina.streams.resolution`.

    Args:
        turn: a turn of a user or an assistant.
        before: up to two turns before it in its session, in time order.
        text: its words, or the beginning of them.
    """
    scope = _scope(turn, before, text)
    ends = [*(mark.end() for mark in SENTENCE_END.finditer(text)), len(text)]
    for match in islice(REFERENCE.finditer(text), MOST_REFERENCES):
        sentence = bisect_right(ends, match.start())
        start = ends[sentence - 1] if sentence else 0
        edit = _read(match, text[start : ends[sentence]], start, scope)
        if edit is not None:
            yield edit
    both = f"{scope.speaker} and {scope.other}" if scope.other else None
    for begin, after, name in in_own_name(text, scope.speaker, both):
        yield Edit(begin, after, name)


def name_of(turn: Unit) -> str:
    """Return the speaker's name, or "the user", "the assistant" where the name is a role."""
    name = turn.speaker or turn.role
    return f"the {name}" if name in ROLES else name


@dataclass(slots=True)
class _Scope:
    """Who speaks, to whom, and what was said before."""

    speaker: str
    other: str | None
    """The one spoken to, where just two talk."""
    text: str
    before: tuple[str, ...]
    people: People
    heard: int = 0
    """Up to where of the text `people` have listened."""

    def meant(self, word: str, place: int) -> str | None:
        """Return whom "she" or "he" at a place means, where nobody else can be meant."""
        self.people.listen(self.text[self.heard : place])
        self.heard = place
        person = self.people.meant("she" if word in SHE else "he")
        if person is None or self._too_far(person, place):
            return None
        known = (*self.people.pronouns, *self.people.named.values(), self.speaker, self.other or "")
        parts = frozenset(part.lower().removesuffix("'s") for name in known for part in name.split())
        spoken = (*self.before, self.text[:place])
        return None if any(strangers(text, parts) for text in spoken) else person

    def _too_far(self, person: str, place: int) -> bool:
        """Tell whether someone of either sex, without a name, was last mentioned before this turn."""
        kin = person.rpartition("'s ")[2] if "'s " in person else ""
        return bool(kin) and not self.people.pronouns[person] and kin not in self.text[:place].lower()

    def place(self, end: int) -> str | None:
        """Return the one place that was named up to here."""
        spoken = (*self.before, self.text[:end])
        named = {" ".join(match[1].split()) for text in spoken for match in PLACE.finditer(text)}
        return named.pop() if len(named) == 1 else None


def _scope(turn: Unit, before: Sequence[Unit], text: str) -> _Scope:
    speaker = name_of(turn)
    talking = (name_of(each) for each in (*before, turn) if each.role in {"user", "assistant"})
    speakers = dict.fromkeys(talking)
    others = [name for name in speakers if name != speaker]
    people = People(speaker)
    said = tuple(each.text[: len(text) + 1000] for each in before)
    for each, words in zip(before, said, strict=True):
        people.speaker = name_of(each)
        people.listen(words)
    people.speaker = speaker
    return _Scope(speaker, others[0] if len(speakers) == _TWO else None, text, said, people)


def _read(match: re.Match[str], sentence: str, start: int, scope: _Scope) -> Edit | None:
    word = match.group().lower()
    if word in PERSONS:
        return _person(match, scope.meant(word, match.start()))
    if word in ADDRESSED:
        return _address(match, scope.other) if scope.other and _addresses(sentence) else None
    if word in MANY:
        return _left(match)
    if word == "there":
        return (
            None if EXISTS.match(match.string, match.start()) else _thing(match, scope.place(match.start()))
        )
    if EXPLETIVE.match(match.string, match.start()):
        return None
    opens = OPENS.fullmatch(match.string, start, match.start())
    return _thing(match, introduced(match.string[:start]) if opens else None)


def _left(match: re.Match[str]) -> Edit:
    return Edit(match.start(), match.end(), match.group(), open=True)


def _person(match: re.Match[str], person: str | None) -> Edit:
    if person is None:
        return _left(match)
    word = match.group().lower()
    owns = word in {"his", "hers"} or (
        word == "her"
        and OWNED.match(match.string, match.end())
        and not ACTED_ON.search(match.string, max(0, match.start() - 12), match.start())
    )
    text = possessive(person) if owns else person
    after = SHORTENED.match(match.string, match.end())
    if after is None:
        return Edit(match.start(), match.end(), text, told=text)
    return Edit(match.start(), after.end(), text + _third(after), told=text)


def _thing(match: re.Match[str], thing: str | None) -> Edit:
    if thing is None:
        return _left(match)
    after = SHORTENED.match(match.string, match.end())
    end, verb = (match.end(), "") if after is None else (after.end(), _third(after))
    return Edit(match.start(), end, f"{match.group()} ({thing}){verb}", told=thing)


def _address(match: re.Match[str], other: str) -> Edit:
    """Write the name for "you", its verb with it: "do you" → "does Emma", "you're" → "Emma is"."""
    start, end = match.span()
    if match.group().lower() in {"your", "yours"}:
        return Edit(start, end, possessive(other))
    text = other
    after = SHORTENED.match(match.string, end)
    if after is not None:
        end = after.end()
        text += _third(after)
    verb = AGREEING.search(match.string, max(0, start - 10), start)
    if verb is not None:
        start = verb.start()
        third = THIRD[verb[1].lower()]
        text = f"{third.capitalize() if verb[1][0].isupper() else third} {text}"
    return Edit(start, end, text)


def _third(shortened: re.Match[str]) -> str:
    return SHORTENED_THIRD[shortened[1].strip().lower().replace("’", "'")]


def _addresses(sentence: str) -> bool:
    """Tell whether "you" of a sentence is the one spoken to, not anyone."""
    return not ANYONE.search(sentence) and (is_question(sentence) or TO_YOU.search(sentence) is not None)
