"""The ports in memory: small, fast, no network. For tests, benchmarks and reading.

What stands here keeps the same contract as the real door, checked by the same tests; only durability is
missing.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lamina.streams.codec import Matrix, Vector
from lamina.streams.errors import WrongDimension
from lamina.streams.late_interaction import QuestionTokens, TokenVectors, quantised
from lamina.streams.metrics import CATALOGUE, Metric
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Hit, Outgoing, Point, PoolQuery, Query, QuestionVectors, TurnVectors
from lamina.streams.recall.auto.pool import Pool
from lamina.streams.shelf import Entry, Shelf

_WORD = re.compile(r"\w+")
_FIRST_ROWS = 64
_SCORE_DECIMALS = 6


class FixedClock:
    """Clock port that stands still until it is set."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        """Return the time that was set last."""
        return self._now

    def set(self, now: datetime) -> None:
        """Set the time; zone-aware."""
        self._now = now

    def advance(self, by: timedelta) -> None:
        """Move the time on."""
        self._now += by


class InMemoryMetrics:
    """Metrics port whose values a test can read; as strict about names and labels as the real one."""

    def __init__(self) -> None:
        self._values: dict[tuple[Metric, tuple[str, ...]], float] = defaultdict(float)
        self._observations: dict[tuple[Metric, tuple[str, ...]], list[float]] = defaultdict(list)

    def count(self, metric: Metric, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        if amount < 0:
            raise ValueError(f"{metric.name}: a counter only grows")
        self._values[_series(metric, "counter", labels)] += amount

    def observe(self, metric: Metric, value: float, **labels: str) -> None:
        """Add a value to a histogram."""
        self._observations[_series(metric, "histogram", labels)].append(value)

    def set(self, metric: Metric, value: float, **labels: str) -> None:
        """Set a gauge."""
        self._values[_series(metric, "gauge", labels)] = value

    def value(self, metric: Metric, **labels: str) -> float:
        """Return a counter's total or a gauge's value; 0 when it was never touched."""
        return self._values.get(_series(metric, metric.kind, labels), 0.0)

    def observations(self, metric: Metric, **labels: str) -> list[float]:
        """Return the values that a histogram was given, in order."""
        return list(self._observations.get(_series(metric, "histogram", labels), ()))


def _series(metric: Metric, kind: str, labels: dict[str, str]) -> tuple[Metric, tuple[str, ...]]:
    """Return the key of one labelled series.

    Raises:
        ValueError: not in the catalogue, another kind, or other labels than the catalogue's.
    """
    if metric not in CATALOGUE or metric.kind != kind:
        raise ValueError(f"{metric.name} is no {kind} of the catalogue")
    if set(labels) != set(metric.labels):
        raise ValueError(f"{metric.name} takes the labels {metric.labels}, not {tuple(labels)}")
    return metric, tuple(labels[name] for name in metric.labels)


class InMemoryPublisher:
    """Publisher port that keeps what was published in `records`, in order."""

    def __init__(self) -> None:
        self.records: list[Outgoing] = []

    async def publish(self, records: Sequence[Outgoing]) -> None:
        """Keep the records."""
        self.records.extend(records)


class HashEmbedder:
    """Embedder port: a text is the normalised sum of its words' vectors, each fixed by the word alone.

    Texts are similar as far as they share words. Deterministic over processes and machines. A text without
    a word has the first axis as its vector.
    """

    name = "hash"
    dimension = 64
    token_width = 64

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """Embed texts on their own: (n, 64), rows of unit length."""
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for n, text in enumerate(texts):
            for word in _WORD.findall(text.lower()):
                rows[n] += _word_vector(word, self.dimension)
            if not rows[n].any():
                rows[n, 0] = 1.0
            rows[n] = _unit(rows[n])
        return rows

    async def embed_turns(self, turns: Sequence[tuple[str | None, str]]) -> TurnVectors:
        """Embed turns; `turn` is the turn alone, `exchange` the turn before it and the turn as one text."""
        texts = [text for _, text in turns]
        return TurnVectors(
            turn=await self.embed(texts),
            exchange=await self.embed([f"{previous or ''} {text}" for previous, text in turns]),
            tokens=tuple(map(_tokens_of, texts)),
            before=tuple(_tokens_of(previous or "") for previous, _ in turns),
        )

    async def embed_question(self, question: str) -> QuestionVectors:
        """Embed a question; its tokens are its words."""
        [dense] = await self.embed([question])
        return QuestionVectors(dense, QuestionTokens(*_words_of(question)))

    async def close(self) -> None:
        """Nothing to release."""


def _words_of(text: str) -> tuple[NDArray[np.uint16], Matrix]:
    """Return the words of a text as pieces, numbered by hash, and as vectors."""
    words = _WORD.findall(text.lower())
    pieces = [int.from_bytes(blake2b(word.encode(), digest_size=2).digest(), "little") for word in words]
    vectors = [_unit(_word_vector(word, HashEmbedder.dimension)) for word in words]
    matrix = np.array(vectors, np.float32).reshape(len(words), HashEmbedder.dimension)
    return np.array(pieces, np.uint16), matrix


def _tokens_of(text: str) -> TokenVectors:
    pieces, vectors = _words_of(text)
    return TokenVectors(np.unique(pieces), quantised(vectors))


@lru_cache(maxsize=50_000)
def _word_vector(word: str, dimension: int) -> Vector:
    seed = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
    vector = np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
    vector.setflags(write=False)
    return vector


class InMemoryStore:
    """VectorStore port by exact search with numpy."""

    def __init__(self, dimension: int = HashEmbedder.dimension) -> None:
        self._dimension = dimension
        self._points: dict[Namespace, _Points] = {}
        self._homes: dict[UUID, _Points] = {}
        self._shelves: dict[Namespace, Shelf] = {}

    async def upsert(self, points: Sequence[Point]) -> None:
        """Insert or replace points by id.

        Raises:
            WrongDimension: a vector does not have the store's dimension; nothing is written.
        """
        _check_dimension((vector for point in points for vector in _vectors(point)), self._dimension)
        for point in points:
            mine = self._points.setdefault(point.namespace, _Points(self._dimension))
            if self._homes.get(point.id, mine) is not mine:
                await self.delete([point.id])
            mine.put(point)
            self._homes[point.id] = mine
            if point.leaf is not None:
                shelf = self._shelves.setdefault(point.namespace, Shelf())
                said_at = point.said_at.timestamp()
                shelf.put([Entry(point.id, point.session, point.speaker, said_at, point.leaf)])
                self._shelves[point.namespace] = shelf.tidied()

    async def delete(self, ids: Collection[UUID]) -> None:
        """Delete points; unknown ids are ignored."""
        for point_id in ids:
            home = self._homes.pop(point_id, None)
            if home is not None:
                home.remove(point_id)
        for namespace, shelf in self._shelves.items():
            shelf.remove(ids)
            self._shelves[namespace] = shelf.tidied()

    async def search(self, queries: Sequence[Query]) -> list[list[Hit]]:
        """Answer each query with its nearest points, best first, ties by id.

        Raises:
            WrongDimension: a query's vector does not have the store's dimension.
        """
        _check_dimension((query.dense for query in queries), self._dimension)
        return [
            self._points[query.namespace].nearest(query) if query.namespace in self._points else []
            for query in queries
        ]

    async def pool(self, query: PoolQuery) -> Pool:
        """Return the turns that may answer a question, and what the strategy `auto` reads of them."""
        others = [each for each in (query.within, query.derived) if each is not None]
        found = await self.search([query.nearest, *others])
        derived = [] if query.derived is None else found.pop()
        shelf = self._shelves.get(query.nearest.namespace, Shelf())
        pool = shelf.pool([(hit.id, hit.score) for ranked in found for hit in ranked], query)
        return replace(pool, derived=tuple((hit.id, hit.score) for hit in derived))

    async def present(self, ids: Collection[UUID]) -> set[UUID]:
        """Return those of the ids that the store holds."""
        return {point_id for point_id in ids if point_id in self._homes}

    async def vectors(self, ids: Collection[UUID]) -> dict[UUID, Vector]:
        """Return the `dense` vectors of those points that the store holds, of unit length."""
        return {
            point_id: self._homes[point_id].dense(point_id) for point_id in ids if point_id in self._homes
        }

    async def count(self) -> int:
        """Return the number of points."""
        return len(self._homes)

    async def close(self) -> None:
        """Nothing to release."""


class _Points:
    """The points of one namespace: a matrix that grows by doubling, and the points of its first rows.

    The few points with a summary have a row in a matrix of their own, made when it is first searched.
    """

    def __init__(self, dimension: int) -> None:
        self._matrix = np.zeros((_FIRST_ROWS, dimension), np.float32)
        self._points: list[Point] = []
        self._rows: dict[UUID, int] = {}
        self._summaries: dict[UUID, Vector] = {}
        self._stacked: Matrix | None = None

    def put(self, point: Point) -> None:
        row = self._rows.get(point.id)
        if row is None:
            row = self._rows[point.id] = len(self._points)
            self._points.append(point)
            if row == len(self._matrix):
                self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
        self._points[row] = point
        self._matrix[row] = _unit(point.dense)
        self._summarise(point.id, point.summary)

    def dense(self, point_id: UUID) -> Vector:
        vector: Vector = self._matrix[self._rows[point_id]].copy()
        return vector

    def remove(self, point_id: UUID) -> None:
        """Remove a point and move the last one into its row."""
        self._summarise(point_id, None)
        row = self._rows.pop(point_id)
        last = self._points.pop()
        if last.id != point_id:
            self._points[row] = last
            self._rows[last.id] = row
            self._matrix[row] = self._matrix[len(self._points)]

    def nearest(self, query: Query) -> list[Hit]:
        if query.limit < 1:
            return []
        # An einsum sums a row alone, whatever its neighbours: equal vectors get equal scores. A BLAS product
        # may not do that.
        asked = _unit(query.dense)
        scores = np.einsum("nd,d->n", self._matrix[: len(self._points)], asked)
        if self._summaries and not query.words_only:
            if self._stacked is None:
                self._stacked = np.stack(list(self._summaries.values()))
            rows = [self._rows[point_id] for point_id in self._summaries]
            scores[rows] = np.maximum(scores[rows], np.einsum("nd,d->n", self._stacked, asked))
        rounded = np.round(scores.astype(np.float64), _SCORE_DECIMALS)
        hits: list[Hit] = []
        for row in np.argsort(-rounded, kind="stable"):
            score = float(rounded[row])
            if len(hits) >= query.limit and score < hits[query.limit - 1].score:
                break
            if _passes(self._points[row], query):
                hits.append(Hit(self._points[row].id, score))
        hits.sort(key=lambda hit: (-hit.score, str(hit.id)))
        return hits[: query.limit]

    def _summarise(self, point_id: UUID, summary: Vector | None) -> None:
        had = self._summaries.pop(point_id, None)
        if summary is not None:
            self._summaries[point_id] = _unit(summary)
        if had is not None or summary is not None:
            self._stacked = None


def _vectors(point: Point) -> Iterable[Vector]:
    return (point.dense,) if point.summary is None else (point.dense, point.summary)


def _passes(point: Point, query: Query) -> bool:
    return (
        point.kind in query.kinds
        and (not query.sessions or point.session in query.sessions)
        and (not query.speakers or point.speaker in query.speakers)
        and (query.said_from is None or point.said_at >= query.said_from)
        and (query.said_to is None or point.said_at <= query.said_to)
    )


def _unit(vector: Vector) -> Vector:
    norm = float(np.linalg.norm(vector))
    return vector if norm == 0 else (vector / norm).astype(np.float32)


def _check_dimension(vectors: Iterable[Vector], dimension: int) -> None:
    for vector in vectors:
        if vector.shape != (dimension,):
            raise WrongDimension(
                f"a vector of shape {vector.shape} for a store of dimension {dimension}: "
                "choose the embedder that the store was made with"
            )
