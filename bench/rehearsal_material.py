"""Read the material of a prompt back into records, as the rules that answer it expect them.

The inverse of `lamina.streams.prompts.material`: entries become units whose id is their number. What a
prompt does not show (ids, arrival order, spans) is not there, as it is not for a model.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from lamina.streams.engine import Node
from lamina.streams.namespace import namespace_of
from lamina.streams.records import Kind, Unit

Entry = Mapping[str, Any]

NOBODY = namespace_of("rehearsal", "nobody")

_OPENING = re.compile(r"\[(\d{4}-\d{2}-\d{2})\] ([^:\[\]\n]{1,80}): ")
_MEANT = re.compile(r"\s*\([^()]* = [^()]*\)\s*\Z")
_SAID = re.compile(r"(\d{4}-\d{2}-\d{2}) ([^:\n]{1,80}): (.*)", re.DOTALL)
_PER_UNIT = 1000
"""Numbers kept apart for the evidence of one unit."""
_NEWEST = 1_000_000
"""Beyond every number of a prompt."""


def number_of(unit_id: UUID) -> int:
    """Return the number that stands for a unit in its prompt."""
    return unit_id.int


def turns_of(entries: Sequence[Entry]) -> list[Unit]:
    """Read `turns`."""
    return [
        _turn(each["n"], _time(each["at"]), str(each["who"]), str(each["said"]), order=place)
        for place, each in enumerate(entries)
    ]


def told_by(episodes: Sequence[Entry]) -> list[Unit]:
    """Read the quotes of known episodes, "[DATE] WHO: WORDS (PHRASE = DATE)" each, as turns.

    A text in another form is one turn of its last day.
    """
    told: list[tuple[str, str, str]] = []
    for episode in episodes:
        text = str(episode["text"])
        quotes = list(_OPENING.finditer(text))
        ends = [*(quote.start() for quote in quotes[1:]), len(text)]
        told += [
            (quote[1], quote[2], text[quote.end() : end]) for quote, end in zip(quotes, ends, strict=False)
        ] or [(str(episode["to"]), "", text)]
    return [
        _turn(_NEWEST + place, _time(f"{day}T12:00"), who, _MEANT.sub("", words), order=place)
        for place, (day, who, words) in enumerate(told)
    ]


def head_of(episode: Entry) -> Unit:
    """Read one of `episodes`."""
    moment = _time(episode["to"])
    return _unit(int(episode["n"]), "episode", str(episode["text"]), moment, topic=episode["topic"])


def nodes_of(entries: Iterable[Entry]) -> list[Node]:
    """Read `units`; the first is the newest, as the target of a diagnosis is."""
    return [node_of(each) for each in entries]


def node_of(entry: Entry) -> Node:
    """Read one of `units`."""
    number, moment, text = int(entry["n"]), _time(entry["at"]), str(entry["text"])
    given = {"keywords": tuple(entry.get("keywords", ())), "position": _NEWEST - number}
    if entry["kind"] == "turn":
        speaker, colon, words = text.partition(": ")
        who, said = (speaker, words) if colon else ("", text)
        unit = _unit(number, "turn", said, moment, speaker=who, summary=entry.get("summary"), **given)
        return Node(unit, (unit,))
    if "fact" in entry:
        given |= dict(zip(("subject", "relation", "object"), entry["fact"], strict=True))
    evidence = tuple(
        _evidence(number * _PER_UNIT + place, str(line), moment)
        for place, line in enumerate(entry.get("evidence", ()), start=1)
    )
    return Node(_unit(number, entry["kind"], text, moment, **given), evidence)


def _evidence(number: int, line: str, moment: datetime) -> Unit:
    match = _SAID.match(line)
    if match is None:
        return _turn(number, moment, "", line, order=number)
    day, who, said = match.groups()
    return _turn(number, _time(day), who, said, order=number)


def _turn(number: int, moment: datetime, who: str, said: str, *, order: int) -> Unit:
    return _unit(number, "turn", said, moment, speaker=who, ordinal=order, position=order + 1)


def _unit(number: int, kind: Kind, text: str, moment: datetime, **more: Any) -> Unit:
    return Unit(
        id=UUID(int=number),
        namespace=NOBODY,
        kind=kind,
        session="rehearsal",
        text=text,
        said_at=moment,
        recorded_at=moment,
        **more,
    )


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
