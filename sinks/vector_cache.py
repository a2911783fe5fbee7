"""Vectors of texts seen before, in memory: an LRU over content hashes, shared by the embedders."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from typing import Any, TypeVar

from lamina.streams.metrics import EMBEDDED_TEXTS
from lamina.streams.ports import Metrics

Entry = TypeVar("Entry")
"""What is kept under one key: whatever the embedder makes of one text, or of one turn."""


def content_key(*parts: str) -> bytes:
    """Return a 16-byte hash of the parts; ("ab", "c") and ("a", "bc") differ."""
    digest = blake2b(digest_size=16)
    for part in parts:
        raw = part.encode()
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.digest()


class VectorCache:
    """The least recently used vectors go first. For one event loop; not safe across threads."""

    def __init__(self, capacity: int, engine: str, metrics: Metrics) -> None:
        """Hold at most `capacity` entries (0: none) and count answers as those of `engine`."""
        self._capacity = capacity
        self._engine = engine
        self._metrics = metrics
        self._entries: OrderedDict[bytes, Any] = OrderedDict()

    async def through(
        self, keys: Sequence[bytes], compute: Callable[[list[int]], Awaitable[Sequence[Entry]]]
    ) -> list[Entry]:
        """Return the entry of each key, asking `compute` only for what is unknown, and each key once.

        Args:
            keys: what is wanted; a key may come more than once. Two kinds of entry never share one.
            compute: given positions in `keys`, returns their entries in that order. What it raises
                passes through, and then nothing is kept.
        """
        known: dict[bytes, Entry] = {}
        unknown: dict[bytes, int] = {}
        for position, key in enumerate(keys):
            entry = self._entries.get(key)
            if entry is None:
                unknown.setdefault(key, position)
            else:
                self._entries.move_to_end(key)
                known[key] = entry
        if unknown:
            computed = await compute(list(unknown.values()))
            for key, made in zip(unknown, computed, strict=True):
                known[key] = made
                self._keep(key, made)
        self._count("model", len(unknown))
        self._count("cache", len(keys) - len(unknown))
        return [known[key] for key in keys]

    def _keep(self, key: bytes, entry: object) -> None:
        if self._capacity == 0:
            return
        self._entries[key] = entry
        self._entries.move_to_end(key)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)

    def _count(self, source: str, texts: int) -> None:
        if texts:
            self._metrics.count(EMBEDDED_TEXTS, texts, engine=self._engine, source=source)
