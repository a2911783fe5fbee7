"""The embedded store's process: Qdrant Edge behind a Unix socket.

`python -P -m lamina.sinks.edge_child --socket PATH --data PATH --dimension N --model NAME`

Edge holds the GIL while it works, so it has a process to itself, which does one thing at a time: requests
are small, and connections take turns. `--data` is a folder with the shard and `meta.json`, which says what
model and dimension it was made for.

An acknowledged write is in the shard's write-ahead log. It survives the end of this process, SIGKILL
included; a power cut may take what came after the last flush, at most a few seconds of writes, and
`lamina reindex` brings that back from the tables.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    KeywordIndexParams,
    MatchAny,
    MatchValue,
    PayloadSchemaType,
    Point,
    Query,
    QueryBatchRequest,
    QueryRequest,
    RangeFloat,
    ScoredPoint,
    ScrollRequest,
    UpdateOperation,
)

from lamina.sinks.edge_pool import hits_of, pool_to_frame, question_from_frame
from lamina.sinks.edge_protocol import (
    EXIT_UNUSABLE,
    EXIT_WRONG_MODEL,
    MAX_FRAME_BYTES,
    SCROLL_POINTS,
    UPSERT_POINTS,
    MalformedFrame,
    pack,
    read_frame,
)
from lamina.sinks.edge_shelves import Shelves, put_on
from lamina.streams.shelf import Shelf

_DENSE, _SUMMARY = "dense", "summary"
_SUMMARISED = "summarised"
"""Payload of a point with a summary, its namespace again: few points have one, and a search among them finds
them by this index without a look at the others."""
_INDEXES: Mapping[str, PayloadSchemaType | KeywordIndexParams] = {
    "namespace": KeywordIndexParams(is_tenant=True),
    _SUMMARISED: PayloadSchemaType.Keyword,
    "kind": PayloadSchemaType.Keyword,
    # Without these two a filter reads the payload of every point of the namespace: 5 ms at 3,000, not 0.6.
    "session": PayloadSchemaType.Keyword,
    "speaker": PayloadSchemaType.Keyword,
    "said_at": PayloadSchemaType.Float,
}
_SCORE_DECIMALS = 6
_SPARE_HITS = 8
"""Asked for beyond the limit, to see whether the border runs through a tie."""
_TIED_HITS_MAX = 4096
"""Where more than this many points share the border's score, which of them are returned is left open."""
_REMEMBERED_KINDS = 100_000
_MEGABYTE = 1024 * 1024
_FLUSH_SECONDS = 2.0
_FLUSH_POINTS = 20_000
"""A flush at the latest after so many points: it bounds the log (2 KB a point at 384 dimensions)."""


class Unusable(Exception):
    """The store cannot be opened; the message is for the operator, `code` is the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


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
        vectors: list[dict[str, Any]] = [{_DENSE: row} for row in rows[: len(ids)]]
        contents = [dict(payload) for payload in payloads]
        for place, row in zip(summarised, rows[len(ids) :], strict=True):
            vectors[place][_SUMMARY] = row
            contents[place][_SUMMARISED] = contents[place]["namespace"]
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
        plan = [*((place, _DENSE) for place in range(len(queries))), *((place, _SUMMARY) for place in both)]
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
        [nearest] = self.search([query], block[: 4 * self._dimension])
        shelf = self._shelves.of(query["namespace"], self._filled)
        asked = question_from_frame(request, block, self._dimension)
        return pool_to_frame(shelf.pool(hits_of(nearest), asked))

    def vectors(self, ids: Sequence[str]) -> tuple[list[str], bytes]:
        """Return those of the ids that the shard holds, and their dense vectors in that order."""
        records = self._shard.retrieve(list(ids), False, [_DENSE])
        numbers = array("f")
        for record in records:
            named: Any = record.vector
            numbers.extend(named[_DENSE])
        return [str(record.id) for record in records], numbers.tobytes()

    def present(self, ids: Sequence[str]) -> list[str]:
        """Return those of the ids that the shard holds."""
        return [str(record.id) for record in self._shard.retrieve(list(ids), False, False)]

    def count(self) -> int:
        """Return the number of points."""
        return self._shard.count(CountRequest())

    def flush_when_due(self) -> None:
        """Write the shard out when nothing was written for a moment, or much was: it stalls searches."""
        quiet = time.monotonic() - self._written_at > _FLUSH_SECONDS / 2
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
                limit=SCROLL_POINTS, offset=offset, filter=turns, with_payload=True, with_vector=False
            )
            records, offset = self._shard.scroll(request)
            for record in records:
                put_on(shelf, str(record.id), record.payload or {})
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
                of_namespace = FieldCondition(_SUMMARISED, match=MatchValue(namespaced[0]))
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
    owner = _SUMMARISED if using == _SUMMARY else "namespace"
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


def open_store(data: Path, dimension: int, model: str, cache_bytes: int) -> Store:
    """Open the store in a folder, or make it there; shelves take at most so much memory.

    Raises:
        Unusable: it was made with another model or dimension, is open in another process, or is damaged.
    """
    meta, shard_dir = data / "meta.json", data / "shard"
    asked = {"dimension": dimension, "model": model}
    again = f"delete {data} and run `lamina reindex`, which fills it again from the tables"
    try:
        data.mkdir(parents=True, exist_ok=True)
        if not shard_dir.exists():
            meta.write_bytes(orjson.dumps(asked))
            _make_shard(shard_dir, dimension)
        stored = orjson.loads(meta.read_bytes())
        shard = EdgeShard.load(str(shard_dir)) if stored == asked else None
        if shard is not None:
            _complete(shard, dimension)
    except Exception as exc:
        if "WouldBlock" in str(exc):
            raise Unusable(f"another process has the store in {data} open: end it", EXIT_UNUSABLE) from exc
        raise Unusable(f"the store in {data} cannot be opened ({exc}): {again}", EXIT_UNUSABLE) from exc
    if shard is None:
        raise Unusable(
            f"the store holds vectors of {stored['model']} with dimension {stored['dimension']}, and {model} "
            f"with dimension {dimension} was asked for: choose the embedder it was made with, "
            f"set LAMINA_DATA_DIR to a new folder, or {again}",
            EXIT_WRONG_MODEL,
        )
    return Store(shard, dimension, cache_bytes)


def _make_shard(shard_dir: Path, dimension: int) -> None:
    """Make an empty shard with its indexes; one that a crash left half made never has the final name."""
    half = shard_dir.with_name("shard.new")
    shutil.rmtree(half, ignore_errors=True)
    params = EdgeVectorParams(size=dimension, distance=Distance.Cosine)
    config = EdgeConfig(vectors={_DENSE: params, _SUMMARY: params}, on_disk_payload=True)
    shard = EdgeShard.create(str(half), config)
    _complete(shard, dimension)
    shard.flush()
    shard.close()
    half.rename(shard_dir)


def _complete(shard: EdgeShard, dimension: int) -> None:
    """Add the indexes, and the second vector to a shard that was made before there was one.

    What is there is left as it is; the points of such a shard get their summaries as they are written again.
    """
    if _SUMMARISED in shard.info().payload_schema:
        return
    shard.update(UpdateOperation.create_dense_vector(_SUMMARY, dimension, Distance.Cosine))
    for field, schema in _INDEXES.items():
        shard.update(UpdateOperation.create_field_index(field, schema))


def answer(
    store: Store, about: Mapping[str, Any], request: Mapping[str, Any], block: bytes
) -> tuple[dict[str, Any], bytes]:
    """Carry out one request and return its answer's fields and block."""
    fields: dict[str, Any] = {}
    vectors = b""
    match request["op"]:
        case "search":
            fields["hits"] = store.search(request["queries"], block)
        case "pool":
            fields, vectors = store.pool(request, block)
        case "upsert":
            store.upsert(request["ids"], request["payloads"], request["summarised"], block)
        case "delete":
            store.delete(request["ids"])
        case "present":
            fields["ids"] = store.present(request["ids"])
        case "vectors":
            fields["ids"], vectors = store.vectors(request["ids"])
        case "count":
            fields["count"] = store.count()
        case "hello":
            fields.update(about)
        case other:
            raise ValueError(f"unknown request {other!r}")
    return fields, vectors


async def serve(socket_path: Path, store: Store, about: Mapping[str, Any]) -> None:
    """Answer on a socket until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(MalformedFrame, OSError):
            while frame := await read_frame(reader):
                request, block = frame
                try:
                    fields, vectors = answer(store, about, request, block)
                    outcome = pack({"id": request["id"], **fields}, vectors)
                except Exception as exc:  # noqa: BLE001 (Edge raises nothing narrower; the caller is told)
                    outcome = pack({"id": request["id"], "error": f"{type(exc).__name__}: {exc}"})
                writer.write(outcome)
                await writer.drain()
                # Neither the read nor the drain gives way while there is data and room: let others in.
                await asyncio.sleep(0)

    server = await asyncio.start_unix_server(converse, socket_path, limit=MAX_FRAME_BYTES // 32)
    async with server:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _FLUSH_SECONDS / 4)
            store.flush_when_due()


def main() -> int:
    """Open the store, serve it, and close it; returns the exit code."""
    parser = argparse.ArgumentParser(prog="lamina.sinks.edge_child", description="Serve a store.")
    parser.add_argument("--socket", type=Path, required=True, help="Unix socket to answer on")
    parser.add_argument("--data", type=Path, required=True, help="folder of the store; made where missing")
    parser.add_argument("--dimension", type=int, required=True, help="length of the vectors")
    parser.add_argument("--model", required=True, help="name of the embedder that makes the vectors")
    parser.add_argument("--cache-mb", type=int, default=512, help="memory for what was asked lately")
    options = parser.parse_args()
    os.umask(0o077)
    try:
        store = open_store(options.data, options.dimension, options.model, options.cache_mb * _MEGABYTE)
    except Unusable as exc:
        sys.stderr.write(f"{exc}\n")
        return exc.code
    # The shard's lock is ours now, so a socket of that name is a leftover.
    options.socket.unlink(missing_ok=True)
    try:
        asyncio.run(serve(options.socket, store, {"dimension": options.dimension, "model": options.model}))
    finally:
        options.socket.unlink(missing_ok=True)
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
