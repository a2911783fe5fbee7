"""A namespace's turns laid out for one question: words and tokens side by side, and their places in sessions.

A store keeps a shelf for each namespace that was asked lately, and puts on it what it writes. Everything here
is also in the store: a shelf can be dropped and filled again. So filling one is made fast: nothing is sorted
or indexed, and a question scans what a few hundred or thousand turns hold (0.1 ms a word at 20,000).

What it adds to nearest neighbours is what two hundred turns cannot tell of themselves: in how many turns of
the namespace a word stands, and what was said before and after.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lamina.streams.codec import moment_of_seconds
from lamina.streams.late_interaction import QuestionTokens, TokenVectors, best_matches
from lamina.streams.ports import Before, Leaf, PoolQuery, Query
from lamina.streams.ragged import Grown, Ragged
from lamina.streams.recall.auto.pool import Ids, Pool
from lamina.streams.recall.auto.traits import TRAITS
from lamina.streams.recall.lexical import K1, B

_ROW_BYTES = 600
"""Of a turn beside its token vectors, about."""
_FEWEST_GONE = 64
"""Rows that are gone before the shelf is laid out anew."""
_NO_TRAITS = (0,) * len(TRAITS)

Rows = NDArray[np.intp]


class Entry(NamedTuple):
    """A turn as it is put on a shelf."""

    turn: UUID
    session: str
    speaker: str
    said_at: float
    """Unix seconds."""
    leaf: Leaf
    context: bool = False
    """It is only read beside the turn after it, never found."""


class Shelf:
    """The turns of one namespace. Not safe across threads."""

    def __init__(self) -> None:
        self._ids: list[UUID] = []
        self._rows: dict[UUID, int] = {}
        self._places: dict[tuple[int, int], int] = {}
        """(session, ordinal) → row."""
        self._sessions: dict[str, int] = {}
        self._speakers: dict[str, int] = {}
        self._before: dict[UUID, UUID] = {}
        """Turn → the gated turn before it."""
        self._alive = Grown(np.bool_)
        self._context = Grown(np.bool_)
        self._session = Grown(np.int32)
        self._ordinal = Grown(np.int32)
        self._speaker = Grown(np.int32)
        self._said_at = Grown(np.float64)
        self._length = Grown(np.float32)
        """Stems of the turn, repetitions counted."""
        self._traits = Grown(np.uint8, len(TRAITS))
        self._words: dict[str, int] = {}
        """Stem → its number."""
        self._stems = Ragged(np.uint32)
        self._seen = Ragged(np.uint16)
        """How often each of those stems stands in the turn."""
        self._pieces = Ragged(np.uint16)
        self._tokens: Ragged[np.int8] | None = None
        """Made when the first turn with tokens says how long a vector is."""
        self._holding: NDArray[np.int64] | None = None
        """By stem: turns that hold it; None: to be counted again."""

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def ids(self) -> Collection[UUID]:
        """Return the turns that are on it."""
        return self._rows.keys()

    @property
    def bytes(self) -> int:
        """Return about how much memory it takes."""
        return len(self._ids) * _ROW_BYTES + (self._tokens.bytes if self._tokens is not None else 0)

    def put(self, entries: Sequence[Entry]) -> None:
        """Put turns on the shelf, each in the place of the one with its id; of two alike the last stays."""
        self.remove([entry.turn for entry in entries])
        found = {entry.turn: entry for entry in entries}
        gated = {
            entry.turn: _before(entry, entry.leaf.before) for entry in found.values() if entry.leaf.before
        }
        self._before.update({turn: before.turn for turn, before in gated.items()})
        beside = {before.turn: before for before in gated.values() if before.turn not in self._rows}
        entries = list({**beside, **found}.values())
        first = len(self._ids)
        leaves = [entry.leaf for entry in entries]
        sessions = [self._sessions.setdefault(entry.session, len(self._sessions)) for entry in entries]
        for row, (entry, session) in enumerate(zip(entries, sessions, strict=True), start=first):
            self._ids.append(entry.turn)
            self._rows[entry.turn] = row
            self._places[session, entry.leaf.ordinal] = row
        self._alive.extend([True] * len(entries))
        self._context.extend([entry.context for entry in entries])
        self._session.extend(sessions)
        self._ordinal.extend([leaf.ordinal for leaf in leaves])
        self._speaker.extend(
            [self._speakers.setdefault(entry.speaker, len(self._speakers)) for entry in entries]
        )
        self._said_at.extend([entry.said_at for entry in entries])
        self._length.extend([sum(leaf.seen) for leaf in leaves])
        # Traits of another build may be more or fewer: what is missing is 0.
        self._traits.extend([(leaf.traits + _NO_TRAITS)[: len(TRAITS)] for leaf in leaves])
        self._stems.extend(
            [[self._words.setdefault(w, len(self._words)) for w in leaf.stems] for leaf in leaves]
        )
        self._seen.extend([leaf.seen for leaf in leaves])
        self._put_tokens([leaf.tokens for leaf in leaves])

    def remove(self, turns: Iterable[UUID]) -> None:
        """Take turns off the shelf; unknown ids are ignored."""
        self._holding = None
        for turn in turns:
            self._remove(turn)
            before = self._before.pop(turn, None)
            if before is not None and before in self._rows and self._context.values[self._rows[before]]:
                self._remove(before)

    def tidied(self) -> "Shelf":
        """Return the shelf, or one laid out anew where more turns were taken off than are left."""
        if len(self._ids) - len(self._rows) <= max(_FEWEST_GONE, len(self._rows)):
            return self
        sessions, speakers, words = list(self._sessions), list(self._speakers), list(self._words)
        anew = Shelf()
        anew.put(
            [
                self._entry(row, sessions, speakers, words)
                for row in self._rows.values()
                if not self._context.values[row]
            ]
        )
        return anew

    def pool(self, nearest: Sequence[tuple[UUID, float]], asked: PoolQuery) -> Pool:
        """Return the candidates of a question.

        Args:
            nearest: the nearest turns with their cosines, as `asked.nearest` and `asked.within` found them.
            asked: the question.
        """
        words = self._bm25(asked.stems)
        queries = [query for query in (asked.nearest, asked.within) if query is not None]
        by_words = {row for query in queries for row in self._best(words, query, asked.words).tolist()}
        known = self._known(asked.nearest)
        cosines = {
            row: cosine
            for turn, cosine in nearest
            if (row := self._rows.get(turn)) is not None and known[row]
        }
        rows = self._with_neighbours({*cosines, *by_words}, asked)
        cosine = np.full(len(rows), np.nan, np.float32)
        place = {row: n for n, row in enumerate(rows.tolist())}
        cosine[[place[row] for row in cosines]] = list(cosines.values())
        similarity, idf = self._similarity(rows, asked.tokens)
        return Pool(
            ids=Ids.of(self._ids[row] for row in rows.tolist()),
            session=self._session.values[rows],
            ordinal=self._ordinal.values[rows],
            speaker=self._speaker.values[rows],
            said_at=self._said_at.values[rows],
            cosine=cosine,
            words=words[rows],
            info=self._info(rows),
            traits=self._traits.values[rows],
            similarity=similarity,
            idf=idf,
            speakers=tuple(self._speakers),
            context=self._context.values[rows],
            latest=float(self._said_at.values[self._alive.values].max(initial=0.0)),
        )

    def _remove(self, turn: UUID) -> None:
        row = self._rows.pop(turn, None)
        if row is not None:
            self._alive.values[row] = False
            place = int(self._session.values[row]), int(self._ordinal.values[row])
            if self._places.get(place) == row:
                del self._places[place]

    def _put_tokens(self, tokens: Sequence[TokenVectors | None]) -> None:
        known = next((each for each in tokens if each is not None), None)
        if known is not None and self._tokens is None:
            self._tokens = Ragged(np.int8, known.vectors.shape[1])
            self._tokens.extend([known.vectors[:0]] * (len(self._ids) - len(tokens)))
        nothing = np.empty(0, np.uint16)
        self._pieces.extend([nothing if each is None else each.pieces for each in tokens])
        if self._tokens is not None:
            empty = np.empty((0, self._tokens.width), np.int8)
            self._tokens.extend([empty if each is None else each.vectors for each in tokens])

    def _idf(self, holding: NDArray[np.int32] | NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the inverse document frequency of what so many turns hold: Lucene's, never negative."""
        turns = len(self._rows)
        idf: NDArray[np.float32] = np.log1p((turns - holding + 0.5) / (holding + 0.5)).astype(np.float32)
        return idf

    def _bm25(self, stems: Sequence[str]) -> NDArray[np.float32]:
        """Score every row as `lamina.streams.recall.lexical` states it, with the namespace as the corpus."""
        scores = np.zeros(len(self._ids), np.float32)
        if not self._rows:
            return scores
        alive, lengths = self._alive.values, self._length.values
        usual = float(lengths[alive].mean()) or 1.0
        for number in (self._words[stem] for stem in stems if stem in self._words):
            places = np.flatnonzero(self._stems.values == number)
            rows = self._stems.owner(places)
            held = alive[rows]
            rows, seen = rows[held], self._seen.values[places[held]].astype(np.float32)
            norm = K1 * (1 - B + B * lengths[rows] / usual)
            scores[rows] += self._idf(np.array(len(rows))) * seen * (K1 + 1) / (seen + norm)
        return scores

    def _best(self, words: NDArray[np.float32], query: Query, most: int) -> Rows:
        """Return the best rows by words that satisfy the filters."""
        held = np.flatnonzero((words > 0) & self._passing(query))
        if len(held) > most:
            # The best by score, ties by arrival: a full sort of what shares a word would cost more.
            least = -np.partition(-words[held], most - 1)[most - 1]
            held = held[words[held] >= least]
            held = held[np.argsort(-words[held], kind="stable")][:most]
        return held

    def _passing(self, query: Query) -> NDArray[np.bool_]:
        passing = self._alive.values & ~self._context.values
        for wanted, known, column in (
            (query.sessions, self._sessions, self._session),
            (query.speakers, self._speakers, self._speaker),
        ):
            if wanted:
                passing &= np.isin(column.values, [known[name] for name in wanted if name in known])
        if query.said_from is not None:
            passing &= self._said_at.values >= query.said_from.timestamp()
        return passing & self._known(query)

    def _known(self, query: Query) -> NDArray[np.bool_]:
        if query.said_to is None:
            return np.ones(len(self._ids), np.bool_)
        known: NDArray[np.bool_] = self._said_at.values <= query.said_to.timestamp()
        return known

    def _with_neighbours(self, rows: set[int], asked: PoolQuery) -> Rows:
        """Return the rows and their neighbours in the session, ascending."""
        session, ordinal = self._session.values, self._ordinal.values
        steps = [step for step in range(-asked.around, asked.around + 1) if step]
        places = [(int(session[row]), int(ordinal[row])) for row in rows]
        near = (self._places.get((number, at + step)) for number, at in places for step in steps)
        found = np.array(sorted(rows.union(row for row in near if row is not None)), np.intp)
        return found[self._known(asked.nearest)[found]]

    def _info(self, rows: Rows) -> NDArray[np.float32]:
        """Return Σ idf over the distinct stems of each row."""
        if self._holding is None:
            alive = np.repeat(self._alive.values, self._stems.counts)
            self._holding = np.bincount(self._stems.values[alive], minlength=len(self._words))
        numbers, counts = self._stems.gather(rows)
        idf = self._idf(self._holding[numbers])
        return np.bincount(np.repeat(np.arange(len(rows)), counts), idf, len(rows)).astype(np.float32)

    def _similarity(
        self, rows: Rows, tokens: QuestionTokens | None
    ) -> tuple[NDArray[np.float32] | None, NDArray[np.float32]]:
        if tokens is None or self._tokens is None:
            return None, np.empty(0, np.float32)
        alive = np.repeat(self._alive.values, self._pieces.counts)
        pieces = self._pieces.values[alive]
        holding = np.array([np.count_nonzero(pieces == piece) for piece in tokens.pieces], np.int64)
        vectors, counts = self._tokens.gather(rows)
        return best_matches(tokens.vectors, vectors, counts), self._idf(holding)

    def _entry(
        self, row: int, sessions: Sequence[str], speakers: Sequence[str], words: Sequence[str]
    ) -> Entry:
        """Return what was put in a row."""
        turn = self._ids[row]
        before = self._rows.get(self._before[turn]) if turn in self._before else None
        leaf = self._leaf(row, words)
        if before is not None and self._context.values[before]:
            said_at = moment_of_seconds(float(self._said_at.values[before]))
            speaker = speakers[self._speaker.values[before]]
            last = Before(self._ids[before], speaker, said_at, self._leaf(before, words))
            leaf = replace(leaf, before=last)
        return Entry(
            turn,
            sessions[self._session.values[row]],
            speakers[self._speaker.values[row]],
            float(self._said_at.values[row]),
            leaf,
        )

    def _leaf(self, row: int, words: Sequence[str]) -> Leaf:
        """Return what was put in a row."""
        stems = tuple(words[number] for number in self._stems.row(row).tolist())
        tokens = None
        if self._tokens is not None:
            tokens = TokenVectors(self._pieces.row(row).copy(), self._tokens.row(row).copy())
        seen, traits = self._seen.row(row).tolist(), self._traits.values[row].tolist()
        return Leaf(int(self._ordinal.values[row]), stems, tuple(seen), tuple(traits), tokens)


def _before(entry: Entry, before: Before) -> Entry:
    return Entry(
        before.turn, entry.session, before.speaker, before.said_at.timestamp(), before.leaf, context=True
    )
