"""A namespace's turns laid out for one question: words with their postings, tokens side by side, sessions.

A store keeps a shelf for each namespace that was asked lately, and puts on it what it writes. Everything here
is also in the store: a shelf can be dropped and filled again.

What it adds to nearest neighbours is what two hundred turns cannot tell of themselves: in how many turns of
the namespace a word stands, and what was said before and after.
"""

from array import array
from collections import Counter
from collections.abc import Collection, Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lamina.streams.late_interaction import QuestionTokens, TokenVectors, best_matches
from lamina.streams.ports import Leaf, PoolQuery, Query
from lamina.streams.ragged import Grown, Ragged
from lamina.streams.recall.auto.pool import Pool
from lamina.streams.recall.auto.traits import TRAITS
from lamina.streams.recall.lexical import K1, B

_ROW_BYTES = 400
"""Of a turn beside its arrays, about: its id, its entries in dictionaries."""
_FEWEST_GONE = 64
"""Rows that are gone before the shelf is laid out anew."""

Rows = NDArray[np.intp]


class Shelf:
    """The turns of one namespace. Not safe across threads."""

    def __init__(self) -> None:
        self._ids: list[UUID] = []
        self._rows: dict[UUID, int] = {}
        self._places: dict[tuple[int, int], int] = {}
        """(session, ordinal) → row."""
        self._sessions: dict[str, int] = {}
        self._speakers: dict[str, int] = {}
        self._alive = Grown(np.bool_)
        self._session = Grown(np.int32)
        self._ordinal = Grown(np.int32)
        self._speaker = Grown(np.int32)
        self._said_at = Grown(np.float64)
        self._length = Grown(np.float32)
        """Stems of the turn, repetitions counted."""
        self._traits = Grown(np.uint8, len(TRAITS))
        self._stems = Ragged(np.uint32)
        self._seen = Ragged(np.uint16)
        """How often each of those stems stands in the turn."""
        self._pieces = Ragged(np.uint16)
        self._tokens: Ragged[np.int8] | None = None
        """Made when the first turn with tokens says how long a vector is."""
        self._words: dict[str, int] = {}
        """Stem → its number."""
        self._postings: list[array[int]] = []
        """By stem: rows, and after each how often the stem stands there."""
        self._holding = Grown(np.int32)
        """By stem: turns that hold it."""
        self._holding_piece: Counter[int] = Counter()
        self._total_length = 0.0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def ids(self) -> Collection[UUID]:
        """Return the turns that are on it."""
        return self._rows.keys()

    @property
    def bytes(self) -> int:
        """Return about how much memory it takes."""
        tokens = self._tokens.bytes if self._tokens is not None else 0
        return len(self._ids) * _ROW_BYTES + 16 * self._stems.entries + tokens

    def put(self, turn: UUID, session: str, speaker: str, said_at: float, leaf: Leaf) -> None:
        """Put a turn on the shelf, in the place of the one with its id.

        Args:
            turn: its id.
            session: its session.
            speaker: who said it.
            said_at: when, Unix seconds.
            leaf: what is read of it.
        """
        self.remove([turn])
        row = len(self._ids)
        self._ids.append(turn)
        self._rows[turn] = row
        number = self._sessions.setdefault(session, len(self._sessions))
        self._places[number, leaf.ordinal] = row
        self._alive.append(value=True)
        self._session.append(number)
        self._ordinal.append(leaf.ordinal)
        self._speaker.append(self._speakers.setdefault(speaker, len(self._speakers)))
        self._said_at.append(said_at)
        # Traits of another build may be more or fewer: what is missing is 0.
        self._traits.append([*leaf.traits, *[0] * len(TRAITS)][: len(TRAITS)])
        self._put_words(row, leaf.stems)
        self._put_tokens(leaf.tokens)

    def remove(self, turns: Collection[UUID]) -> None:
        """Take turns off the shelf; unknown ids are ignored."""
        for turn in turns:
            row = self._rows.pop(turn, None)
            if row is None:
                continue
            self._alive.values[row] = False
            place = int(self._session.values[row]), int(self._ordinal.values[row])
            if self._places.get(place) == row:
                del self._places[place]
            self._total_length -= float(self._length.values[row])
            self._holding.values[self._stems.row(row)] -= 1
            self._holding_piece.subtract(self._pieces.row(row).tolist())

    def tidied(self) -> "Shelf":
        """Return the shelf, or one laid out anew where more turns were taken off than are left."""
        if len(self._ids) - len(self._rows) <= max(_FEWEST_GONE, len(self._rows)):
            return self
        sessions, speakers, words = list(self._sessions), list(self._speakers), list(self._words)
        anew = Shelf()
        for turn, row in self._rows.items():
            session = sessions[self._session.values[row]]
            speaker = speakers[self._speaker.values[row]]
            anew.put(turn, session, speaker, float(self._said_at.values[row]), self._leaf(row, words))
        return anew

    def pool(self, nearest: Sequence[tuple[UUID, float]], asked: PoolQuery) -> Pool:
        """Return the candidates of a question.

        Args:
            nearest: the nearest turns with their cosines, as `asked.nearest` found them.
            asked: the question.
        """
        words = self._bm25(asked.stems)
        by_words = self._best(words, asked)
        cosines = {row: cosine for turn, cosine in nearest if (row := self._rows.get(turn)) is not None}
        rows = self._with_neighbours({*cosines, *by_words.tolist()}, asked)
        cosine = np.full(len(rows), np.nan, np.float32)
        place = {row: n for n, row in enumerate(rows.tolist())}
        cosine[[place[row] for row in cosines]] = list(cosines.values())
        similarity, idf = self._similarity(rows, asked.tokens)
        return Pool(
            ids=tuple(self._ids[row] for row in rows),
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
            latest=float(self._said_at.values[self._alive.values].max(initial=0.0)),
        )

    def _put_words(self, row: int, stems: Sequence[str]) -> None:
        counts = Counter(stems)
        numbers = []
        for stem, seen in counts.items():
            number = self._words.setdefault(stem, len(self._words))
            if number == len(self._postings):
                self._postings.append(array("I"))
                self._holding.append(0)
            self._postings[number].extend((row, seen))
            numbers.append(number)
        self._holding.values[numbers] += 1
        self._stems.append(np.array(numbers, np.uint32))
        self._seen.append(np.fromiter(counts.values(), np.uint16, len(counts)))
        self._length.append(len(stems))
        self._total_length += len(stems)

    def _put_tokens(self, tokens: TokenVectors | None) -> None:
        if tokens is not None and self._tokens is None:
            self._tokens = Ragged(np.int8, tokens.vectors.shape[1])
            for _ in range(len(self._ids) - 1):
                self._tokens.append(tokens.vectors[:0])
        if self._tokens is not None:
            self._tokens.append(
                np.empty((0, self._tokens.width), np.int8) if tokens is None else tokens.vectors
            )
        pieces = np.empty(0, np.uint16) if tokens is None else tokens.pieces
        self._pieces.append(pieces)
        self._holding_piece.update(pieces.tolist())

    def _idf(self, holding: NDArray[np.int32] | NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the inverse document frequency of what so many turns hold: Lucene's, never negative."""
        turns = len(self._rows)
        idf: NDArray[np.float32] = np.log1p((turns - holding + 0.5) / (holding + 0.5)).astype(np.float32)
        return idf

    def _bm25(self, stems: Sequence[str]) -> NDArray[np.float32]:
        """Score every row as `lamina.streams.recall.lexical` states it, with the namespace as the corpus."""
        scores = np.zeros(len(self._ids), np.float32)
        numbers = [number for stem in stems if (number := self._words.get(stem)) is not None]
        if not numbers or not self._rows:
            return scores
        usual = self._total_length / len(self._rows) or 1.0
        idf = self._idf(self._holding.values[numbers])
        for number, weight in zip(numbers, idf, strict=True):
            posting = np.frombuffer(self._postings[number], np.uint32).reshape(-1, 2)
            rows, seen = posting[:, 0], posting[:, 1].astype(np.float32)
            norm = K1 * (1 - B + B * self._length.values[rows] / usual)
            scores[rows] += weight * seen * (K1 + 1) / (seen + norm)
        scores[~self._alive.values] = 0
        return scores

    def _best(self, words: NDArray[np.float32], asked: PoolQuery) -> Rows:
        """Return the best rows by words that satisfy the filters."""
        held = np.flatnonzero((words > 0) & self._passing(asked.nearest))
        if len(held) > asked.words:
            # The best by score, ties by arrival: a full sort of what shares a word would cost more.
            least = -np.partition(-words[held], asked.words - 1)[asked.words - 1]
            held = held[words[held] >= least]
            held = held[np.argsort(-words[held], kind="stable")][: asked.words]
        return held

    def _passing(self, query: Query) -> NDArray[np.bool_]:
        passing = self._alive.values.copy()
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
        numbers, counts = self._stems.gather(rows)
        sums = np.zeros(len(rows), np.float32)
        np.add.at(sums, np.repeat(np.arange(len(rows)), counts), self._idf(self._holding.values[numbers]))
        return sums

    def _similarity(
        self, rows: Rows, tokens: QuestionTokens | None
    ) -> tuple[NDArray[np.float32] | None, NDArray[np.float32]]:
        if tokens is None or self._tokens is None:
            return None, np.empty(0, np.float32)
        holding = np.array([self._holding_piece[piece] for piece in tokens.pieces.tolist()], np.int64)
        vectors, counts = self._tokens.gather(rows)
        return best_matches(tokens.vectors, vectors, counts), self._idf(holding)

    def _leaf(self, row: int, words: Sequence[str]) -> Leaf:
        """Return what was put in a row."""
        seen = zip(self._stems.row(row).tolist(), self._seen.row(row).tolist(), strict=True)
        stems = tuple(words[number] for number, times in seen for _ in range(times))
        tokens = None
        if self._tokens is not None:
            tokens = TokenVectors(self._pieces.row(row).copy(), self._tokens.row(row).copy())
        return Leaf(int(self._ordinal.values[row]), stems, tuple(self._traits.values[row].tolist()), tokens)
