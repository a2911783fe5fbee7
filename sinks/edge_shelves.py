"""The shelves of namespaces that were asked lately, beside the shard that everything on them is in."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from lamina.sinks.edge_pool import leaf_of
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
        held = sum(each.bytes for each in self._held.values())
        while held > self._most_bytes and len(self._held) > 1:
            _, oldest = self._held.popitem(last=False)
            held -= oldest.bytes
            for turn in oldest.ids:
                del self._homes[turn]
        return shelf

    def put(self, ids: Sequence[str], payloads: Sequence[Mapping[str, Any]]) -> None:
        """Put what was written on the shelves that are there; each point is on none other."""
        self.remove(ids)
        for point_id, payload in zip(ids, payloads, strict=True):
            namespace = payload["namespace"]
            shelf = self._held.get(namespace)
            if shelf is not None and put_on(shelf, point_id, payload):
                self._homes[UUID(point_id)] = namespace

    def remove(self, ids: Collection[str]) -> None:
        """Take points off every shelf; unknown ids are ignored."""
        for turn in map(UUID, ids):
            namespace = self._homes.pop(turn, None)
            if namespace is not None:
                self._held[namespace].remove([turn])
                self._held[namespace] = self._held[namespace].tidied()


def put_on(shelf: Shelf, point_id: str, payload: Mapping[str, Any]) -> bool:
    """Put a point on a shelf, if it is a turn that was written with a leaf; tell whether it is."""
    leaf = leaf_of(payload)
    if leaf is None:
        return False
    shelf.put(UUID(point_id), payload["session"], payload["speaker"], payload["said_at"], leaf)
    return True
