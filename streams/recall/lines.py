"""One memory as one line of a block: citation, text, and what became of it.

Line breaks, control characters and marks that change the direction of writing become spaces: they could make
a memory look like another line, or like something that stands elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lamina.streams.recall.conflicts import Conflict, since
from lamina.streams.recall.found import archived
from lamina.streams.recall.standing import UNKNOWN, Ended, Standing
from lamina.streams.records import Unit
from lamina.streams.resolution import dated
from lamina.streams.sentences import clipped

_LABEL_BYTES = 36
"""Of a UUID."""
_LONGEST_VALUE = 60
"""Characters of what holds now, and of what held; both are words of a memory."""
_MOST_MARKS = 3
"""Facts of one turn that are marked as ended."""
_SHORTEST_CUT = 40
"""A text cut below this many bytes says nothing any more."""

_HIDDEN = dict.fromkeys(
    [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], " "
)
_HARMLESS = str.maketrans("[]·", "()-")


@dataclass(frozen=True, slots=True)
class Line:
    """A memory's line in two parts, between which its label stands: the id, or a number."""

    unit: Unit
    before: str
    after: str
    mark: str = ""
    """What became of the memory, at the line's end."""
    label_bytes: int = _LABEL_BYTES
    """The widest that the label may become."""

    @property
    def size(self) -> int:
        """Its bytes at most, with the line break."""
        return len(f"{self.before}{self.after}{self.mark}\n".encode()) + self.label_bytes

    def labelled(self, label: str) -> str:
        """Return the line as it is shown."""
        return f"{self.before}{label}{self.after}{self.mark}"

    def cut(self, room: int) -> "Line | None":
        """Return the line shortened to the room (bytes); None where too little of it would be left."""
        most = room - (self.size - len(self.after.encode())) - len("…".encode())
        kept = self.after.encode()[: max(most, 0)].decode(errors="ignore")
        if len(kept.encode()) < _SHORTEST_CUT:
            return None
        return Line(self.unit, self.before, f"{kept}…", self.mark, self.label_bytes)


def citation_of(unit: Unit, standing: Standing = UNKNOWN) -> str:
    """Return `[date · speaker · id]`; a date far ahead of its arrival is marked, and an archived memory.

    A date that the author did not give is that of the arrival: live, it is the right one.
    """
    return f"{_opening(unit, standing)}{unit.id}]"


def line_of(unit: Unit, standing: Standing, width: int | None, *, dates: bool) -> Line:
    """Return a memory's line.

    Args:
        unit: the memory.
        standing: what is known to hold no longer, which stands at the line's end.
        width: bytes of the widest number that may label it; None: its id does.
        dates: whether a turn's relative dates are followed by what they mean.
    """
    text = one_line(dated(unit) if dates and unit.kind == "turn" else unit.text)
    label_bytes = _LABEL_BYTES if width is None else width
    return Line(unit, _opening(unit, standing), f"] {text}", _marks(unit, standing), label_bytes)


def note_of(conflict: Conflict) -> str:
    """Return the line that names a conflict: "Conflict: Ada, lives in: Bonn (since …) or Kiel (since …)"."""
    about = f"{_value(conflict.subject)}, {_value(conflict.relation.replace('_', ' '))}"
    values = [
        f"{_value(fact.object or '')} (since {since(fact).date().isoformat()})" for fact in conflict.facts
    ]
    return f"Conflict: {about}: {' or '.join(values)}"


def one_line(text: str) -> str:
    """Return a text on one line, without what could hide in it."""
    return " ".join(text.translate(_HIDDEN).split())


def _opening(unit: Unit, standing: Standing) -> str:
    said = unit.said_at.date().isoformat()
    if unit.time_source == "future":
        said = f"{said} (in the future)"
    # What ended has its mark at the end; what ended after `as_of` held then, and needs none.
    if archived(unit) and unit.id not in standing.ended and not (standing.as_of and unit.valid_to):
        said = f"{said} (archived)"
    speaker = one_line(unit.speaker or unit.kind).translate(_HARMLESS)
    return f"[{said} · {speaker} · "


def _marks(unit: Unit, standing: Standing) -> str:
    ended = standing.ended.get(unit.id)
    if ended is not None:
        return _mark("", ended)
    stated: Sequence[Ended] = standing.stated.get(unit.id, ())
    return "".join(_mark(f"{_value(each.unit.object or '')}: ", each) for each in stated[-_MOST_MARKS:])


def _mark(what: str, ended: Ended) -> str:
    now = "" if ended.now is None or not ended.now.object else f"; now: {_value(ended.now.object)}"
    return f" ({what}until {ended.until.date().isoformat()}{now})"


def _value(words: str) -> str:
    return clipped(one_line(words).translate(_HARMLESS), _LONGEST_VALUE)
