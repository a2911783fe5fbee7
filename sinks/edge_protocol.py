"""What the embedded store's two sides agree on: frames over a local socket, and exit codes.

A frame is two little-endian uint32, the lengths of what follows: a JSON object, and a block of
little-endian float32 (may be empty). A request's object holds `id` and `op`; its answer holds the same
`id`, so one connection carries several calls at once, and `error` where it failed.
"""

import asyncio
import struct
from collections.abc import Mapping
from typing import Any

import orjson

MAX_FRAME_BYTES = 32 * 1024 * 1024
"""Largest frame either side accepts: a wrong length must not make it wait for, or hold, gigabytes."""

UPSERT_POINTS = 64
"""Most points in one request: the store does nothing else meanwhile, a search waits a few ms at most."""

DELETE_POINTS = 256
PRESENT_POINTS = 1024
VECTOR_POINTS = 256
SCROLL_POINTS = 1024
SEARCH_QUERIES = 16

EXIT_WRONG_MODEL = 3
"""The store was made with another model or dimension; the last line of the output says so."""

EXIT_UNUSABLE = 4
"""The store cannot be opened; the last line of the output says why."""

_LENGTHS = struct.Struct("<II")


class MalformedFrame(Exception):
    """Bytes that are no frame; the connection that brought them is of no further use."""


def pack(header: Mapping[str, Any], block: bytes = b"") -> bytes:
    """Return a frame.

    Raises:
        MalformedFrame: it would be larger than `MAX_FRAME_BYTES`.
    """
    text = orjson.dumps(header)
    if len(text) + len(block) > MAX_FRAME_BYTES:
        raise MalformedFrame(f"a frame of {len(text) + len(block)} bytes; {MAX_FRAME_BYTES} are allowed")
    return _LENGTHS.pack(len(text), len(block)) + text + block


async def read_frame(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes] | None:
    """Read one frame; None when the other side has closed.

    Raises:
        MalformedFrame: too large, cut short, or not a JSON object with an integer `id`.
    """
    try:
        lengths = await reader.readexactly(_LENGTHS.size)
    except asyncio.IncompleteReadError as exc:
        if exc.partial:
            raise MalformedFrame("a frame cut short") from exc
        return None
    text_bytes, block_bytes = _LENGTHS.unpack(lengths)
    if text_bytes + block_bytes > MAX_FRAME_BYTES:
        raise MalformedFrame(f"a frame of {text_bytes + block_bytes} bytes; {MAX_FRAME_BYTES} are allowed")
    try:
        header = orjson.loads(await reader.readexactly(text_bytes))
        block = await reader.readexactly(block_bytes)
    except (asyncio.IncompleteReadError, orjson.JSONDecodeError) as exc:
        raise MalformedFrame(f"not a frame: {exc}") from exc
    if not isinstance(header, dict) or not isinstance(header.get("id"), int):
        raise MalformedFrame("a frame without an id")
    return header, block
