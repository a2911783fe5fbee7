"""The block of text as it fills: sections of lines, never more bytes than it was given."""

from collections.abc import Sequence
from uuid import UUID

from lamina.streams.recall.lines import Line
from lamina.streams.records import Unit

Place = tuple[int, int, str]
"""A section: its rank among the kinds of sections, its number among those of its kind, its title."""


class Block:
    """Sections of lines, and notes behind the lines of one of them. Its size is bounded at every step."""

    def __init__(self, room: int) -> None:
        """Start empty.

        Args:
            room: bytes that the text may have, UTF-8.
        """
        self._room = room
        self._sections: dict[Place, dict[UUID, Line]] = {}
        self._notes: dict[Place, list[str]] = {}
        self._held: set[UUID] = set()

    @property
    def empty(self) -> bool:
        """Whether it holds nothing yet."""
        return not self._held

    def holds(self, unit: UUID) -> bool:
        """Tell whether a memory has its line."""
        return unit in self._held

    def add(self, place: Place, lines: Sequence[Line], notes: Sequence[str] | None = None) -> bool:
        """Add lines to a section, and put notes in the place of those behind it; None leaves them.

        Returns:
            Whether all of it fitted; else nothing changed.
        """
        had = self._notes.get(place, [])
        kept = had if notes is None else list(notes)
        size = sum(line.size for line in lines) + _bytes(kept) - _bytes(had)
        if lines and place not in self._sections:
            size += _heading_bytes(place)
        if size > self._room:
            return False
        if lines:
            self._sections.setdefault(place, {}).update({line.unit.id: line for line in lines})
            self._held.update(line.unit.id for line in lines)
            self._notes[place] = kept
            self._room -= size
        return True

    def cut(self, place: Place, line: Line) -> None:
        """Add as much of a line to a section as fits, if that is not too little to say anything."""
        short = line.cut(self._room - _heading_bytes(place))
        if short is not None:
            self.add(place, [short])

    def text(self, *, numbered: bool) -> tuple[str, tuple[Unit, ...]]:
        """Return the text and the memories of its lines, in order; sections of turns are in time order."""
        blocks: list[str] = []
        units: list[Unit] = []
        for place, section in sorted(self._sections.items()):
            lines = list(section.values())
            if all(line.unit.kind == "turn" for line in lines):
                lines.sort(key=lambda line: (line.unit.said_at, line.unit.position))
            shown = [f"{place[-1]}:"]
            for line in lines:
                units.append(line.unit)
                shown.append(line.labelled(str(len(units) if numbered else line.unit.id)))
            blocks.append("\n".join([*shown, *self._notes[place]]))
        return "\n\n".join(blocks), tuple(units)


def _heading_bytes(place: Place) -> int:
    return len(place[-1]) + len(":\n\n")


def _bytes(notes: Sequence[str]) -> int:
    return sum(len(note.encode()) + 1 for note in notes)
