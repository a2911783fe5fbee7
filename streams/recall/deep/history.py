"""A namespace's history as programs see it: numbered turns, oldest first, and the ways to look into it.

`sessions`, `search_history` and `get_recent` are RLM-Memory's (§4.1 and 4.2). Ours: hits come newest first
(their §8 names the earliest one misleading), a query of several words asks for each of them rather than for
the phrase, and a session too long for one sub-query is several parts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from lamina.streams.namespace import Namespace
from lamina.streams.ports import Tables
from lamina.streams.prompts.material import cut
from lamina.streams.records import Unit

PAGE = 500
"""Turns read at once: between pages other requests go on."""


@dataclass(frozen=True, slots=True)
class Part:
    """A session, or one of its parts: the day of its first turn, and its turns as text under a heading."""

    day: str
    text: str


@dataclass(frozen=True)
class History:
    """The turns of a namespace in the order in which they were said; turn n stands at n - 1."""

    turns: tuple[Unit, ...]
    cut: bool = False
    """Whether older turns were left out."""

    def search(self, query: str, most: int) -> list[int]:
        """Return the numbers of turns whose words hold each word of the query, newest first.

        Words are compared as parts of words and without regard to case (RLM-Memory §4.2); every turn is
        looked at, gated and archived ones too. A query without words finds nothing.
        """
        words = query.casefold().split()
        if not words:
            return []
        hits: list[int] = []
        for number in range(len(self.turns), 0, -1):
            text = self._folded[number - 1]
            if len(hits) == most:
                break
            if all(word in text for word in words):
                hits.append(number)
        return hits

    def recent(self, count: int) -> list[int]:
        """Return the numbers of the last turns, oldest first (RLM-Memory §4.2)."""
        return list(range(max(1, len(self.turns) - count + 1), len(self.turns) + 1))

    def entry(self, number: int) -> dict[str, Any]:
        """Return a turn as a program gets it: `{n, date, session, speaker, text}`."""
        turn = self.turns[number - 1]
        return {
            "n": number,
            "date": f"{turn.said_at:%Y-%m-%d %H:%M}",
            "session": self._session_numbers[turn.session],
            "speaker": turn.speaker or turn.role,
            "text": turn.text,
        }

    def parts(self, most_characters: int) -> list[Part]:
        """Return the sessions in the order in which they began, each cut between turns to fit a sub-query.

        Args:
            most_characters: of one part; a turn that is longer alone is clipped here, not in a search.
        """
        if most_characters not in self._parts:
            self._parts[most_characters] = [
                part
                for session, number in self._session_numbers.items()
                for part in self._split(session, number, most_characters)
            ]
        return self._parts[most_characters]

    @property
    def sessions(self) -> int:
        """The number of sessions."""
        return len(self._session_numbers)

    @cached_property
    def _parts(self) -> dict[int, list[Part]]:
        return {}

    @cached_property
    def _folded(self) -> Sequence[str]:
        return [turn.text.casefold() for turn in self.turns]

    @cached_property
    def _session_numbers(self) -> Mapping[str, int]:
        named = dict.fromkeys(turn.session for turn in self.turns)
        return {session: number for number, session in enumerate(named, start=1)}

    @cached_property
    def _by_session(self) -> Mapping[str, Sequence[int]]:
        places: dict[str, list[int]] = {}
        for number, turn in enumerate(self.turns, start=1):
            places.setdefault(turn.session, []).append(number)
        return places

    def _split(self, session: str, number: int, most: int) -> Iterator[Part]:
        lines: list[str] = []
        size = 0
        day = ""
        for place in self._by_session[session]:
            turn = self.turns[place - 1]
            said_on = turn.said_at.date().isoformat()
            heading = f"Session {number}, {said_on}"
            line = cut(
                f"[{place}] {said_on} {turn.speaker or turn.role}: {turn.text}", most - len(heading) - 1
            )
            if lines and size + len(line) + 1 > most:
                yield Part(day, "\n".join(lines))
                lines = []
            if not lines:
                day, lines, size = said_on, [heading], len(heading)
            lines.append(line)
            size += len(line) + 1
        yield Part(day, "\n".join(lines))


async def read_history(
    tables: Tables, namespace: Namespace, as_of: datetime | None, *, turns: int, characters: int
) -> History:
    """Read a namespace's turns, whatever became of them, newest arrivals first until a limit is met.

    Args:
        tables: read in pages, so that a long history neither fills the memory nor holds up others.
        namespace: the only one that is read.
        as_of: nothing said later is read; None: everything.
        turns: most turns.
        characters: most characters of all their texts together.

    Raises:
        TablesUnavailable: the tables do not answer.
    """
    kept: list[Unit] = []
    before: int | None = None
    while page := await tables.turns_before(namespace, before, PAGE, said_to=as_of):
        for turn in page:
            characters -= len(turn.text)
            if len(kept) == turns or characters < 0:
                return History(_in_order(kept), cut=True)
            kept.append(turn)
        before = page[-1].position
    return History(_in_order(kept))


def _in_order(turns: Sequence[Unit]) -> tuple[Unit, ...]:
    return tuple(sorted(turns, key=lambda turn: (turn.recent_at, turn.position)))
