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
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lamina.sinks.edge_protocol import MAX_FRAME_BYTES, MalformedFrame, pack, read_frame
from lamina.sinks.edge_shard import SHARD, Unusable, open_store
from lamina.sinks.edge_store import Store
from lamina.sinks.edge_warm import warm

_MEGABYTE = 1024 * 1024
_LOOK_SECONDS = 0.5
"""How often it is seen whether a flush is due."""


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
                await asyncio.wait_for(stop.wait(), _LOOK_SECONDS)
            store.flush_when_due()


def main() -> int:
    """Open the store, serve it, and close it; returns the exit code."""
    parser = argparse.ArgumentParser(prog="lamina.sinks.edge_child", description="Serve a store.")
    parser.add_argument("--socket", type=Path, required=True, help="Unix socket to answer on")
    parser.add_argument("--data", type=Path, required=True, help="folder of the store; made where missing")
    parser.add_argument("--dimension", type=int, required=True, help="length of the vectors")
    parser.add_argument("--model", required=True, help="name of the embedder that makes the vectors")
    parser.add_argument("--cache-mb", type=int, default=512, help="memory for what was asked lately")
    parser.add_argument("--warm-mb", type=int, default=1024, help="most of its files mapped at the start")
    options = parser.parse_args()
    os.umask(0o077)
    try:
        store = open_store(options.data, options.dimension, options.model, options.cache_mb * _MEGABYTE)
    except Unusable as exc:
        sys.stderr.write(f"{exc}\n")
        return exc.code
    warm(options.data.resolve() / SHARD, options.warm_mb * _MEGABYTE)
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
