"""Points, questions and pools as they cross the embedded store's socket.

Numbers stand in a frame's block, one array after the other; the rest in its JSON.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lamina.sinks.edge_leaf import text_of
from lamina.streams.codec import Vector, moment_of_seconds
from lamina.streams.late_interaction import QuestionTokens
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Point, PoolQuery, Query
from lamina.streams.recall.auto.pool import Ids, Pool
from lamina.streams.recall.auto.traits import TRAITS

_COLUMNS: Mapping[str, str] = {
    "session": "<i4",
    "ordinal": "<i4",
    "speaker": "<i4",
    "said_at": "<f8",
    "context": "?",
    "cosine": "<f4",
    "words": "<f4",
    "info": "<f4",
}
"""The arrays of a pool with one number for each turn, and their types."""

LEAF = "leaf"
"""The field of a payload that holds a turn's leaf."""


def payload_of(point: Point) -> dict[str, Any]:
    """Return what the store keeps beside a point's vectors."""
    payload: dict[str, Any] = {
        "namespace": point.namespace,
        "kind": point.kind,
        "session": point.session,
        "speaker": point.speaker,
        "said_at": point.said_at.timestamp(),
    }
    if point.leaf is not None:
        payload[LEAF] = text_of(point, point.leaf)
    return payload


def query_header(query: Query) -> dict[str, Any]:
    """Return a query but for its vector."""
    return {
        "namespace": query.namespace,
        "kinds": query.kinds,
        "limit": query.limit,
        "sessions": query.sessions,
        "speakers": query.speakers,
        "said_from": query.said_from and query.said_from.timestamp(),
        "said_to": query.said_to and query.said_to.timestamp(),
        "words_only": query.words_only,
    }


def question_to_frame(query: PoolQuery) -> tuple[dict[str, Any], bytes]:
    """Return a question: its fields, and its vector before its tokens."""
    fields: dict[str, Any] = {
        "query": query_header(query.nearest),
        "within": query.within and query_header(query.within),
        "derived": query.derived and query_header(query.derived),
        "stems": query.stems,
        "words": query.words,
        "around": query.around,
    }
    block = query.nearest.dense.astype("<f4").tobytes()
    if query.tokens is not None:
        fields["pieces"] = query.tokens.pieces.tolist()
        block += query.tokens.vectors.astype("<f4").tobytes()
    return fields, block


def question_from_frame(fields: Mapping[str, Any], block: bytes, dimension: int) -> PoolQuery:
    """Read what `question_to_frame` wrote."""
    asked = fields["query"]
    numbers = np.frombuffer(block, "<f4")
    tokens = None
    if "pieces" in fields:
        pieces = np.array(fields["pieces"], np.uint16)
        width = (len(numbers) - dimension) // len(pieces) if len(pieces) else 1
        tokens = QuestionTokens(pieces, numbers[dimension:].reshape(len(pieces), width))
    dense = numbers[:dimension]
    return PoolQuery(
        nearest=_query(asked, dense),
        within=fields["within"] and _query(fields["within"], dense),
        stems=tuple(fields["stems"]),
        tokens=tokens,
        words=fields["words"],
        around=fields["around"],
    )


def _query(asked: Mapping[str, Any], dense: Vector) -> Query:
    return Query(
        namespace=Namespace(asked["namespace"]),
        dense=dense,
        kinds=tuple(asked["kinds"]),
        limit=asked["limit"],
        sessions=tuple(asked["sessions"]),
        speakers=tuple(asked["speakers"]),
        said_from=_moment(asked["said_from"]),
        said_to=_moment(asked["said_to"]),
        words_only=asked["words_only"],
    )


def pool_to_frame(pool: Pool) -> tuple[dict[str, Any], bytes]:
    """Return a pool."""
    columns = [getattr(pool, name).astype(dtype) for name, dtype in _COLUMNS.items()]
    tokens = [] if pool.similarity is None else [pool.similarity.astype("<f4"), pool.idf.astype("<f4")]
    parts = [Ids.of(pool.ids).keys.tobytes()]
    parts += [column.tobytes() for column in (*columns, pool.traits, *tokens)]
    fields = {
        "n": len(pool),
        "t": None if pool.similarity is None else len(pool.idf),
        "speakers": pool.speakers,
        "latest": pool.latest,
        "derived": [(str(key), cosine) for key, cosine in pool.derived],
    }
    return fields, b"".join(parts)


def pool_from_frame(fields: Mapping[str, Any], block: bytes) -> Pool:
    """Read what `pool_to_frame` wrote."""
    n, t = fields["n"], fields["t"]
    reader = _Reader(block)
    ids = Ids(reader.take("V16", n))
    columns = {name: reader.take(dtype, n) for name, dtype in _COLUMNS.items()}
    traits = reader.take("u1", n * len(TRAITS)).reshape(n, len(TRAITS))
    similarity = None if t is None else reader.take("<f4", t * n).reshape(t, n)
    return Pool(
        ids=ids,
        **columns,
        traits=traits,
        similarity=similarity,
        idf=reader.take("<f4", t or 0),
        speakers=tuple(fields["speakers"]),
        latest=fields["latest"],
        derived=tuple(hits_of(fields["derived"])),
    )


def hits_of(ranked: Sequence[tuple[str, float]]) -> list[tuple[UUID, float]]:
    """Return ids and scores as `Shelf.pool` takes them."""
    return [(UUID(point_id), score) for point_id, score in ranked]


class _Reader:
    """Reads one array after the other."""

    def __init__(self, block: bytes) -> None:
        self._block = block
        self._at = 0

    def take(self, dtype: str, count: int) -> NDArray[Any]:
        array = np.frombuffer(self._block, dtype, count, self._at)
        self._at += array.nbytes
        return array


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else moment_of_seconds(seconds)
