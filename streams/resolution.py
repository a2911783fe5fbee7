"""Turns with their references and relative dates resolved, by rules (SimpleMem eq. 3, fig. 3).

SimpleMem has a language model rewrite a turn; ours replaces only what it is sure of, in place, and leaves the
rest of the words as said. The scope is the paper's: the turn and up to two turns before it; dates are read
against the turn's own time.

- "I", "my kids" → the speaker: "Sarah", "Sarah's kids". "We" stays, save where the two who talk are plainly
  meant ("we should catch up").
- "you", "your" → the other of two speakers, where the sentence addresses them: asks, thanks, judges. "You
  never know" stays.
- "she", "he" → the one person in scope who fits, where nobody else was mentioned.
- "it" → the one thing that the sentence before introduces, and "there" → the one place: kept beside the word,
  "it (the pottery class)", since more than one thing may be meant.
- date phrases → phrase and range, "yesterday (2023-07-01)", as `lamina.streams.dates` reads them.

Deterministic; English.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from lamina.streams.dates import resolve_dates, spelled
from lamina.streams.records import Resolution, Unit
from lamina.streams.reference_words import YEAR
from lamina.streams.references import Edit, references

LONGEST_TURN = 4000
"""Characters; of a longer turn, pasted text more likely than talk, the rest stays as it is."""
MOST_OPEN = 6
"""References of a turn that are listed as open: what a model is asked about at most."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A turn as the rules understand it."""

    turn: UUID
    text: str
    """The resolved form; the turn's words where nothing was resolved."""
    said: str
    """The turn's words."""
    meanings: tuple[tuple[str, str], ...] = ()
    """Phrase → what it was resolved to, in the order of the text; without the speaker's own "I" and "my"."""
    places: tuple[tuple[int, int], ...] = ()
    """Where in `text` a reference was left open: start and end, in order."""
    before: tuple[Unit, ...] = ()
    """The turns it was read behind."""

    @property
    def open(self) -> tuple[str, ...]:
        """The references that were left open, as they stand in the text, in order."""
        return tuple(self.text[start:end] for start, end in self.places)


def resolve(turn: Unit, before: Sequence[Unit]) -> Resolution | None:
    """Return the turn's resolved form, or None where only the speaker's own words stand for something.

    A turn is embedded with its speaker, so "I" says nothing there that the name does not: indexing such forms
    too lost 4 points of recall@5 on LoCoMo, where indexing the others gained 1.8, 9 on temporal questions
    (`docs/consolidation.md`).

    Args:
        turn: a turn; `said_at` is the time its date phrases are read against.
        before: up to two turns before it in its session, in time order.
    """
    reading = read(turn, before)
    return Resolution(turn=turn.id, text=reading.text) if reading.meanings else None


def read(turn: Unit, before: Sequence[Unit]) -> Reading:
    """Return the turn as the rules understand it, with what they left open; arguments as in `resolve`.

    The words of systems and tools are not talk: only their dates are resolved.
    """
    text = turn.text[:LONGEST_TURN]
    edits = list(_dates(turn, text))
    if turn.role in {"user", "assistant"}:
        edits += references(turn, before, text)
    return _edited(turn, before, _apart(edits))


def dated(turn: Unit) -> str:
    """Return the turn's words with each relative date followed by what it means: "yesterday (2023-07-01)".

    Nothing else is resolved, and no word is left out. Beyond `LONGEST_TURN` the text stays as it is.
    """
    dates = _dates(turn, turn.text[:LONGEST_TURN])
    return _edited(turn, (), _apart(list(dates))).text


def answered(reading: Reading, answers: Sequence[tuple[str, str]]) -> str:
    """Return the resolved form with open references answered too.

    Args:
        reading: of the turn.
        answers: phrase and meaning; the first answer to a phrase goes to its first open place, and so on.
            An answer without an open place changes nothing.
    """
    left = list(answers)
    text, shift = reading.text, 0
    for start, end in reading.places:
        phrase = reading.text[start:end]
        answer = next((each for each in left if each[0].strip().casefold() == phrase.casefold()), None)
        if answer is None:
            continue
        left.remove(answer)
        said = _beside(phrase, answer[1].strip())
        text = text[: start + shift] + said + text[end + shift :]
        shift += len(said) - len(phrase)
    return text


def _beside(phrase: str, meaning: str) -> str:
    """Write a meaning beside its phrase, which keeps the sentence whole whatever stands there."""
    return f"{phrase} ({meaning})"


def _dates(turn: Unit, text: str) -> Iterable[Edit]:
    at = 0
    for date in resolve_dates(text, turn.said_at):
        phrase = date.phrase.rstrip(".")  # a phrase that ends the sentence ("last Wed.") brings its full stop
        start = text.find(phrase, at)
        at = start + len(phrase)
        meaning = spelled(date.start, date.end)
        if not YEAR.search(phrase):
            yield Edit(start, at, f"{phrase} ({meaning})", told=meaning)


def _apart(edits: list[Edit]) -> list[Edit]:
    """Return the edits in the order of the text; of overlapping ones the first, the longer first."""
    kept: list[Edit] = []
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept


def _edited(turn: Unit, before: Sequence[Unit], edits: Sequence[Edit]) -> Reading:
    parts: list[str] = []
    places: list[tuple[int, int]] = []
    length = at = 0
    for edit in edits:
        parts += [turn.text[at : edit.start], edit.text]
        length += edit.start - at + len(edit.text)
        at = edit.end
        if edit.open:
            places.append((length - len(edit.text), length))
    parts.append(turn.text[at:])
    told = [(turn.text[edit.start : edit.end], edit.told) for edit in edits if edit.told is not None]
    return Reading(
        turn=turn.id,
        text="".join(parts),
        said=turn.text,
        meanings=tuple(dict.fromkeys(told)),
        places=tuple(places[:MOST_OPEN]),
        before=tuple(before),
    )
