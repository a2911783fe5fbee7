"""Opening the embedded store's folder: a shard of Qdrant Edge, and what it was made for."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import orjson
from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeVectorParams,
    KeywordIndexParams,
    PayloadSchemaType,
    UpdateOperation,
)

from lamina.sinks.edge_protocol import EXIT_UNUSABLE, EXIT_WRONG_MODEL
from lamina.sinks.edge_store import DENSE, SUMMARISED, SUMMARY, Store

SHARD = "shard"
"""The folder of the shard within the store's."""
_INDEXES: Mapping[str, PayloadSchemaType | KeywordIndexParams] = {
    "namespace": KeywordIndexParams(is_tenant=True),
    SUMMARISED: PayloadSchemaType.Keyword,
    "kind": PayloadSchemaType.Keyword,
    # Without these two a filter reads the payload of every point of the namespace: 5 ms at 3,000, not 0.6.
    "session": PayloadSchemaType.Keyword,
    "speaker": PayloadSchemaType.Keyword,
    "said_at": PayloadSchemaType.Float,
}


class Unusable(Exception):
    """The store cannot be opened; the message is for the operator, `code` is the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def open_store(data: Path, dimension: int, model: str, cache_bytes: int) -> Store:
    """Open the store in a folder, or make it there; shelves take at most so much memory.

    Raises:
        Unusable: it was made with another model or dimension, is open in another process, or is damaged.
    """
    meta, shard_dir = data / "meta.json", data / SHARD
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
    config = EdgeConfig(vectors={DENSE: params, SUMMARY: params}, on_disk_payload=True)
    shard = EdgeShard.create(str(half), config)
    _complete(shard, dimension)
    shard.flush()
    shard.close()
    half.rename(shard_dir)


def _complete(shard: EdgeShard, dimension: int) -> None:
    """Add the indexes, and the second vector to a shard that was made before there was one.

    What is there is left as it is; the points of such a shard get their summaries as they are written again.
    """
    if SUMMARISED in shard.info().payload_schema:
        return
    shard.update(UpdateOperation.create_dense_vector(SUMMARY, dimension, Distance.Cosine))
    for field, schema in _INDEXES.items():
        shard.update(UpdateOperation.create_field_index(field, schema))
