"""One shard of Qdrant Edge: what the embedded store's process does with it."""

import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from qdrant_edge import (
    CountRequest,
    EdgeShard,
    FieldCondition,
    Filter,
    MatchAny,
    MatchValue,
    PayloadSelector,
    Point,
    Query,
    QueryBatchRequest,
    QueryRequest,
    RangeFloat,
    ScoredPoint,
    ScrollRequest,
    UpdateOperation,
)

from lamina.sinks.edge_leaf import entries_of
from lamina.sinks.edge_pool import LEAF, hits_of, pool_to_frame, question_from_frame
from lamina.sinks.edge_protocol import SCROLL_POINTS, UPSERT_POINTS
from lamina.sinks.edge_shelves import Shelves
from lamina.streams.shelf import Shelf

DENSE, SUMMARY = "dense", "summary"
SUMMARISED = "summarised"
"""Payload of a point with a summary, its namespace again: few points have one, and a search among them finds
them by this index without a look at the others."""
_SCORE_DECIMALS = 6
_SPARE_HITS = 8
"""Asked for beyond the limit, to see whether the border runs through a tie."""
_TIED_HITS_MAX = 4096
"""Where more than this many points share the border's score, which of them are returned is left open."""
_REMEMBERED_KINDS = 100_000
_FLUSH_SECONDS = 1.0
_FLUSH_POINTS = 20_000
"""A flush at the latest after so many points: it bounds the log (7 KB a turn with its tokens)."""


class Store:
    """One shard. Every method blocks until done; Edge's errors leave as they are, its own `Exception`."""

    def __init__(self, shard: EdgeShard, dimension: int, cache_bytes: int) -> None:
        self._shard = shard
        self._dimension = dimension
        self._shelves = Shelves(cache_bytes)
        self._unflushed = 0
        self._written_at = 0.0
        self._with_summaries: dict[tuple[str, str], bool] = {}
        """By (namespace, kind), as far as it was asked: whether a point with a summary was ever there."""

    def upsert(
        self,
        ids: Sequence[str],
        payloads: Sequence[dict[str, Any]],
        summarised: Sequence[int],
        block: bytes,
    ) -> None:
        """Insert or replace points.

        `block` holds their vectors in the same order, then the summaries of the points whose places are
        `summarised`.
        """
        if len(ids) > UPSERT_POINTS:
            raise ValueError(f"{len(ids)} points in one request; {UPSERT_POINTS} are allowed")
        rows = self._vectors(block, len(ids) + len(summarised))
        vectors: list[dict[str, Any]] = [{DENSE: row} for row in rows[: len(ids)]]
        contents = [dict(payload) for payload in payloads]
        for place, row in zip(summarised, rows[len(ids) :], strict=True):
            vectors[place][SUMMARY] = row
            contents[place][SUMMARISED] = contents[place]["namespace"]
            self._with_summaries[contents[place]["namespace"], contents[place]["kind"]] = True
        points = [
            Point(point_id, each, payload)
            for point_id, each, payload in zip(ids, vectors, contents, strict=True)
        ]
        self._write(UpdateOperation.upsert_points(points), len(ids))
        self._shelves.put(ids, payloads)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete points; unknown ids are ignored."""
        self._write(UpdateOperation.delete_points(list(ids)), len(ids))
        self._shelves.remove(ids)

    def search(self, queries: Sequence[dict[str, Any]], block: bytes) -> list[list[tuple[str, float]]]:
        """Return (id, score) by query: score rounded and descending, then id ascending.

        A point's score is the better of its two vectors'. The best of the union are among the best by each.
        """
        vectors = self._vectors(block, len(queries))
        both = [place for place, query in enumerate(queries) if self._has_summaries(query)]
        plan = [*((place, DENSE) for place in range(len(queries))), *((place, SUMMARY) for place in both)]
        asked = [
            _request(queries[place], vectors[place], using, queries[place]["limit"] + _SPARE_HITS)
            for place, using in plan
        ]
        found = self._shard.query_batch(QueryBatchRequest(asked))
        answers: list[list[tuple[str, float]]] = [[] for _ in queries]
        for (place, using), hits in zip(plan, found, strict=True):
            query = queries[place]
            ranked = self._settled(query, vectors[place], using, hits)
            answers[place] = _better(answers[place], ranked, query["limit"])
        return answers

    def pool(self, request: Mapping[str, Any], block: bytes) -> tuple[dict[str, Any], bytes]:
        """Return the turns that may answer a question, as `lamina.sinks.edge_pool` writes them."""
        query = request["query"]
        others = [request[name] for name in ("within", "derived") if request[name] is not None]
        found = self.search([query, *others], block[: 4 * self._dimension] * (1 + len(others)))
        derived = [] if request["derived"] is None else found.pop()
        shelf = self._shelves.of(query["namespace"], self._filled)
        asked = question_from_frame(request, block, self._dimension)
        pool = shelf.pool([hit for ranked in found for hit in hits_of(ranked)], asked)
        return pool_to_frame(replace(pool, derived=tuple(hits_of(derived))))

    def vectors(self, ids: Sequence[str]) -> tuple[list[str], bytes]:
        """Return those of the ids that the shard holds, and their dense vectors in that order."""
        records = self._shard.retrieve(list(ids), False, [DENSE])
        numbers = array("f")
        for record in records:
            named: Any = record.vector
            numbers.extend(named[DENSE])
        return [str(record.id) for record in records], numbers.tobytes()

    def present(self, ids: Sequence[str]) -> list[str]:
        """Return those of the ids that the shard holds."""
        return [str(record.id) for record in self._shard.retrieve(list(ids), False, False)]

    def count(self) -> int:
        """Return the number of points."""
        return self._shard.count(CountRequest())

    def flush_when_due(self) -> None:
        """Write the shard out when nothing was written for a moment, or much was: it stalls searches."""
        quiet = time.monotonic() - self._written_at > _FLUSH_SECONDS
        if self._unflushed >= _FLUSH_POINTS or (self._unflushed and quiet):
            self._shard.flush()
            self._unflushed = 0

    def close(self) -> None:
        """Write the shard out and close it."""
        self._shard.flush()
        self._shard.close()

    def _filled(self, namespace: str) -> Shelf:
        """Return a shelf with the turns of a namespace that the shard holds."""
        shelf = Shelf()
        turns = Filter(
            must=[
                FieldCondition("namespace", match=MatchValue(namespace)),
                FieldCondition("kind", match=MatchValue("turn")),
            ]
        )
        offset = None
        while True:
            request = ScrollRequest(
                limit=SCROLL_POINTS,
                offset=offset,
                filter=turns,
                with_payload=PayloadSelector.Include([LEAF]),
                with_vector=False,
            )
            records, offset = self._shard.scroll(request)
            kept = ((record.id, payload[LEAF]) for record in records if (payload := record.payload))
            shelf.put(entries_of((key, text) for key, text in kept if isinstance(key, UUID)))
            if offset is None:
                return shelf

    def _has_summaries(self, query: dict[str, Any]) -> bool:
        """Tell whether a search among summaries may find something: most kinds and namespaces have none."""
        if query["words_only"]:
            return False
        if len(self._with_summaries) > _REMEMBERED_KINDS:
            self._with_summaries.clear()
        for namespaced in ((query["namespace"], kind) for kind in query["kinds"]):
            if namespaced not in self._with_summaries:
                of_kind = FieldCondition("kind", match=MatchValue(namespaced[1]))
                of_namespace = FieldCondition(SUMMARISED, match=MatchValue(namespaced[0]))
                counted = self._shard.count(CountRequest(filter=Filter(must=[of_namespace, of_kind])))
                self._with_summaries[namespaced] = counted > 0
            if self._with_summaries[namespaced]:
                return True
        return False

    def _write(self, operation: UpdateOperation, points: int) -> None:
        self._shard.update(operation)
        self._unflushed += points
        self._written_at = time.monotonic()

    def _vectors(self, block: bytes, count: int) -> list[list[float]]:
        # Qdrant has wheels for little-endian machines only, so the machine's order is the wire's.
        numbers = array("f", block).tolist()
        if len(numbers) != count * self._dimension:
            raise ValueError(f"{len(numbers)} numbers for {count} vectors of dimension {self._dimension}")
        return [numbers[n : n + self._dimension] for n in range(0, len(numbers), self._dimension)]

    def _settled(
        self, query: dict[str, Any], vector: list[float], using: str, hits: list[ScoredPoint]
    ) -> list[tuple[str, float]]:
        """Return the best hits, having asked for more while the border runs through a tie."""
        limit = query["limit"]
        if limit < 1:
            return []
        asked = limit + _SPARE_HITS
        while len(hits) == asked < limit + _TIED_HITS_MAX and _score(hits[limit - 1]) == _score(hits[-1]):
            asked *= 4
            hits = self._shard.query(_request(query, vector, using, asked))
        ranked = sorted((-_score(hit), str(hit.id)) for hit in hits)
        return [(point_id, -score) for score, point_id in ranked[:limit]]


def _score(hit: ScoredPoint) -> float:
    return round(hit.score, _SCORE_DECIMALS)


def _better(
    known: list[tuple[str, float]], more: list[tuple[str, float]], limit: int
) -> list[tuple[str, float]]:
    """Unite two rankings: each point with its better score, best first, ties by id."""
    if not known or not more:
        return known or more
    scores = dict(known)
    for point_id, score in more:
        scores[point_id] = max(score, scores.get(point_id, score))
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit]


def _request(query: dict[str, Any], vector: list[float], using: str, limit: int) -> QueryRequest:
    owner = SUMMARISED if using == SUMMARY else "namespace"
    must = [
        FieldCondition(owner, match=MatchValue(query["namespace"])),
        FieldCondition("kind", match=MatchAny(query["kinds"])),
    ]
    must += [
        FieldCondition(field, match=MatchAny(query[name]))
        for field, name in (("session", "sessions"), ("speaker", "speakers"))
        if query[name]
    ]
    if query["said_from"] is not None or query["said_to"] is not None:
        must.append(FieldCondition("said_at", range=RangeFloat(gte=query["said_from"], lte=query["said_to"])))
    return QueryRequest(limit=limit, query=Query.Nearest(vector, using=using), filter=Filter(must=list(must)))
