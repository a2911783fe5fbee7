"""Pack what was found into one block of text that can stand in a prompt, within a token budget.

Facts first, then episodes, then what was said in time order. Every line is one memory with its citation,
`[date · speaker · id]`. Line breaks inside a memory become spaces, so nothing that was said can pass for a
line, or a citation, of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from lamina.streams.recall.found import Found, archived
from lamina.streams.records import Unit

BYTES_PER_TOKEN = 4
"""A token is counted as four UTF-8 bytes: about right for English, careful for Chinese and emoji."""

_SECTIONS = ("Facts", "Episodes", "Conversation")
_SHORTEST_CUT = 40
"""A text cut below this many bytes says nothing any more."""

_Lines = dict[UUID, tuple[Unit, str]]
_HARMLESS = str.maketrans("[]·", "()-")


@dataclass(frozen=True, slots=True)
class Packed:
    """A prompt-ready block: its text, the ids it cites in order, its size in estimated tokens."""

    text: str
    citations: tuple[Unit, ...]
    tokens: int


def tokens_of(text: str) -> int:
    """Estimate a text's tokens: a quarter of its UTF-8 bytes, rounded up."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def pack(found: Sequence[Found], max_tokens: int) -> Packed:
    """Pack memories, given best first, into at most `max_tokens` estimated tokens.

    The best are taken first. Where a whole exchange does not fit, its found turn may; what does not fit at
    all is left out, and a shorter memory after it may still come in. Each turn stands at most once. When
    the very first does not fit it is cut, so that a small budget still gives something; a budget too small
    for that gives an empty text.
    """
    room = max_tokens * BYTES_PER_TOKEN
    lines: tuple[_Lines, _Lines, _Lines] = ({}, {}, {})
    for one in found:
        section = lines[_section_of(one.unit)]
        heading = 0 if section else _heading_size(one.unit)
        alone = (one.unit,)
        for units in (one.turns, alone) if one.unit.kind == "turn" else (alone,):
            new = {unit.id: (unit, _line(unit)) for unit in units if unit.id not in section}
            size = heading + _size(new)
            if size <= room:
                break
        else:
            new = {} if any(lines) else _cut(one.unit, room - heading)
            size = heading + _size(new)
        if new:
            section.update(new)
            room -= size
    ordered = (list(lines[0].values()), list(lines[1].values()), _by_time(lines[2].values()))
    blocks = [
        "\n".join((f"{title}:", *(line for _, line in section)))
        for title, section in zip(_SECTIONS, ordered, strict=True)
        if section
    ]
    text = "\n\n".join(blocks)
    return Packed(text, tuple(unit for section in ordered for unit, _ in section), tokens_of(text))


def _section_of(unit: Unit) -> int:
    return {"fact": 0, "episode": 1, "abstract": 1, "turn": 2}[unit.kind]


def _heading_size(unit: Unit) -> int:
    return len(_SECTIONS[_section_of(unit)]) + len(":\n\n")


def _size(lines: _Lines) -> int:
    return sum(len(line.encode()) + 1 for _, line in lines.values())


def _by_time(lines: Iterable[tuple[Unit, str]]) -> list[tuple[Unit, str]]:
    return sorted(lines, key=lambda line: (line[0].said_at, line[0].position))


def citation_of(unit: Unit) -> str:
    """Return `[date · speaker · id]`; a date far ahead of its arrival is marked, and an archived memory.

    A date that the author did not give is that of the arrival: live, it is the right one.
    """
    said = unit.said_at.date().isoformat()
    if unit.time_source == "future":
        said = f"{said} (in the future)"
    if archived(unit):
        said = f"{said} (archived)"
    speaker = " ".join((unit.speaker or unit.kind).split()).translate(_HARMLESS)
    return f"[{said} · {speaker} · {unit.id}]"


def _line(unit: Unit) -> str:
    return f"{citation_of(unit)} {' '.join(unit.text.split())}"


def _cut(unit: Unit, room: int) -> _Lines:
    """Return the unit's line shortened to the room (bytes), or nothing where too little would be left."""
    spare = room - len(f"{citation_of(unit)} …\n".encode())
    if spare < _SHORTEST_CUT:
        return {}
    text = " ".join(unit.text.split()).encode()[:spare].decode(errors="ignore")
    return {unit.id: (unit, f"{citation_of(unit)} {text}…")}
