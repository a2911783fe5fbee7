"""The shelves of namespaces that were asked lately, beside the shard that everything on them is in."""

import gc
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from lamina.sinks.edge_leaf import entries_of
from lamina.sinks.edge_pool import LEAF
from lamina.streams.shelf import Shelf


class Shelves:
    """The least recently asked go first once they take too much memory; one is always kept."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held: OrderedDict[str, Shelf] = OrderedDict()
        self._homes: dict[UUID, str] = {}
        """By turn: the namespace of the shelf it is on."""

    def of(self, namespace: str, filled: Callable[[str], Shelf]) -> Shelf:
        """Return a namespace's shelf, asking `filled` for it where there is none."""
        shelf = self._held.get(namespace)
        if shelf is not None:
            self._held.move_to_end(namespace)
            return shelf
        shelf = self._held[namespace] = filled(namespace)
        self._homes.update(dict.fromkeys(shelf.ids, namespace))
        # A shelf holds no cycles, and looking through all of them for some took up to 70 ms of a question.
        gc.freeze()
        held = sum(each.bytes for each in self._held.values())
        while held > self._most_bytes and len(self._held) > 1:
            _, oldest = self._held.popitem(last=False)
            held -= oldest.bytes
            for turn in oldest.ids:
                self._homes.pop(turn, None)
        return shelf

    def put(self, ids: Sequence[str], payloads: Sequence[Mapping[str, Any]]) -> None:
        """Put what was written on the shelves that are there; each point is on none other."""
        self.remove(ids)
        of_shelves: dict[str, list[tuple[UUID, str]]] = {}
        for point_id, payload in zip(ids, payloads, strict=True):
            if payload["namespace"] in self._held and LEAF in payload:
                of_shelves.setdefault(payload["namespace"], []).append((UUID(point_id), payload[LEAF]))
        for namespace, texts in of_shelves.items():
            self._held[namespace].put(entries_of(texts))
            self._homes.update(dict.fromkeys((turn for turn, _ in texts), namespace))

    def remove(self, ids: Collection[str]) -> None:
        """Take points off every shelf; unknown ids are ignored."""
        for turn in map(UUID, ids):
            namespace = self._homes.pop(turn, None)
            if namespace is not None:
                self._held[namespace].remove([turn])
                self._held[namespace] = self._held[namespace].tidied()
