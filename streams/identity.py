"""Deterministic ids: the same thing always gets the same id, so a repeated write has no second effect."""

from collections.abc import Iterable
from datetime import datetime
from uuid import NAMESPACE_URL, UUID, uuid5

from lamina.streams.namespace import Namespace

_ROOT = uuid5(NAMESPACE_URL, "lamina")


def _id(*parts: object) -> UUID:
    return uuid5(_ROOT, "\x1f".join(str(part) for part in parts))


def turn_id_from_message(namespace: Namespace, message_id: str) -> UUID:
    """Id of a turn whose author numbered it: unique within the namespace."""
    return _id("message", namespace, message_id)


def turn_id_from_event(event_id: UUID, index: int) -> UUID:
    """Id of the `index`-th turn of one HTTP request."""
    return _id("event", event_id, index)


def turn_id_from_record(cluster: str, topic: str, partition: int, offset: int, content: str) -> UUID:
    """Id of a turn published without one; the content guards against a broker that restarts at offset 0."""
    return _id("record", cluster, topic, partition, offset, content)


def message_id_in_file(session: str, time: datetime | None, role: str, text: str, occurrence: int) -> str:
    """Message id of a turn read from a file: the same file read twice gives the same ids."""
    return str(_id("file", session, time.isoformat() if time else "", role, text, occurrence))


def event_id_for_key(tenant: str, idempotency_key: str) -> UUID:
    """Id of an HTTP request that carries an idempotency key: a retry gets the same one."""
    return _id("request", tenant, idempotency_key)


def thread_id(namespace: Namespace, exchange: UUID) -> UUID:
    """Id of the episode thread that the given exchange promoted."""
    return _id("thread", namespace, exchange)


def sibling_thread_id(command: UUID, ordinal: int) -> UUID:
    """Id of the thread of a command's `ordinal`-th episode, where another one inherits the thread."""
    return _id("thread", command, ordinal)


def command_id(kind: str, thread: UUID, exchanges: Iterable[UUID]) -> UUID:
    """Id of a command: its kind, its thread and the exchanges it claims."""
    return _id("command", kind, thread, *sorted(map(str, exchanges)))


def topology_id(namespace: Namespace, units: Iterable[UUID]) -> UUID:
    """Id of a topology command: the buffered units it looks at, in their order; no unit is buffered twice."""
    return _id("command", "topology", namespace, *units)


def derived_id(namespace: Namespace, command: UUID, ordinal: int) -> UUID:
    """Id of the `ordinal`-th unit of a command's recorded plan."""
    return _id("derived", namespace, command, ordinal)


def undo_id(command: UUID, edit: int | None) -> UUID:
    """Id of the command that undoes a command, or one of its edits."""
    return _id("command", "undo", command, "" if edit is None else edit)
