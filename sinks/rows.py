"""Records to rows and back. Column names are field names; what a row adds is said here."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import ColumnElement, Row, type_coerce
from sqlalchemy.types import NullType

from lamina.sinks.column_types import Json, Moment, Verbatim, moment_of, verbatim_of
from lamina.sinks.schema import place_key, units
from lamina.streams.buffer import Buffered
from lamina.streams.codec import vector_from_bytes, vector_to_bytes
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Outgoing, Request
from lamina.streams.records import Link, Unit
from lamina.streams.recurrence import Exchange, Thread
from lamina.streams.topics import TOPICS, Topic

_UNIT_FIELDS = tuple(name for name in Unit.model_fields if name != "schema_version")

# A column's own type would convert each value by a call of its own, 22 a row; `unit_of` takes them together.
UNIT_COLUMNS: tuple[ColumnElement[Any], ...] = tuple(
    type_coerce(units.c[name], NullType()).label(name) for name in _UNIT_FIELDS
)
"""What `unit_of` reads, as the driver gives it."""

_MOMENTS = tuple(name for name in _UNIT_FIELDS if isinstance(units.c[name].type, Moment))
_JSON = tuple(name for name in _UNIT_FIELDS if isinstance(units.c[name].type, Json))
_VERBATIM = tuple(name for name in _UNIT_FIELDS if isinstance(units.c[name].type, Verbatim))
_EMPTY: Mapping[str, Any] = {"[]": (), "{}": {}}
"""What most units hold as JSON; validation copies it."""

_SAID = frozenset(
    {
        "id",
        "namespace",
        "kind",
        "session",
        "ordinal",
        "position",
        "role",
        "speaker",
        "text",
        "evidence",
        "spans",
        "said_at",
        "time_source",
        "recorded_at",
    }
)
"""Never rewritten: what was said, by whom and when, and its place. (A derived unit's text may be.)"""

MUTABLE_UNIT_FIELDS = tuple(name for name in _UNIT_FIELDS if name not in _SAID)

_TOPICS: Mapping[str, Topic] = {topic.name: topic for topic in TOPICS}


def unit_of(row: Row[Any]) -> Unit:
    """Return the unit of a row that starts with `UNIT_COLUMNS`."""
    fields = dict(zip(_UNIT_FIELDS, row, strict=False))
    if isinstance(fields["id"], UUID):
        fields["id"] = UUID(int=fields["id"].int)  # asyncpg's is of a class of its own
    for name in _MOMENTS:
        if (microseconds := fields[name]) is not None:
            fields[name] = moment_of(microseconds)
    for name in _JSON:
        written = fields[name]
        fields[name] = _EMPTY[written] if written in _EMPTY else orjson.loads(written)
    for name in _VERBATIM:
        if (stored := fields[name]) is not None:
            fields[name] = verbatim_of(stored)
    return Unit.model_validate(fields)


def unit_row(unit: Unit) -> dict[str, Any]:
    """Return a new unit's row; a visible one is marked for the index."""
    row = {name: getattr(unit, name) for name in _UNIT_FIELDS}
    row["status"] = unit.status.value
    row["spans"] = [span.model_dump(mode="json") for span in unit.spans]
    row["session_key"] = session_key(unit.namespace, unit.session)
    row["about_key"] = _about_key_of(unit)
    row["dirty"] = unit.visible
    return row


def unit_change(unit: Unit) -> dict[str, Any]:
    """Return the parameters of `update_units`: `this` and the fields that may change."""
    row = {name: getattr(unit, name) for name in MUTABLE_UNIT_FIELDS}
    row["status"] = unit.status.value
    row["about_key"] = _about_key_of(unit)
    return row | {"this": unit.id, "derived_text": unit.text}


def session_key(namespace: Namespace, session: str) -> int:
    """Return the key of a session in `units.session_key`."""
    return place_key(namespace, session)


def about_key(namespace: Namespace, subject: str, relation: str) -> int:
    """Return the key of a fact's subject and relation in `units.about_key`."""
    return place_key(namespace, subject, relation)


def link_row(link: Link) -> dict[str, Any]:
    """Return a link's row."""
    return {
        "source": link.source,
        "target": link.target,
        "type": link.type,
        "namespace": link.namespace,
        "weight": link.weight,
    }


def link_of(row: Row[Any]) -> Link:
    """Return the link of a row of `links`."""
    return Link.model_validate(row._asdict())


def exchange_row(namespace: Namespace, exchange: Exchange) -> dict[str, Any]:
    """Return an exchange's row."""
    return {
        "id": exchange.id,
        "namespace": namespace,
        "turns": exchange.turns,
        "said_at": exchange.said_at,
        "observed_at": exchange.observed_at,
        "vector": None if exchange.vector is None else vector_to_bytes(exchange.vector),
        "salience": exchange.salience,
        "state": exchange.state,
        "thread": exchange.thread,
        "command": exchange.command,
    }


def exchange_of(row: Row[Any]) -> Exchange:
    """Return the exchange of a row of `recurrence`."""
    return Exchange(
        id=row.id,
        turns=_ids(row.turns),
        said_at=row.said_at,
        observed_at=row.observed_at,
        vector=None if row.vector is None else vector_from_bytes(row.vector),
        salience=row.salience,
        state=row.state,
        thread=row.thread,
        command=row.command,
    )


def thread_row(namespace: Namespace, thread: Thread) -> dict[str, Any]:
    """Return a thread's row."""
    return {
        "id": thread.id,
        "namespace": namespace,
        "total": vector_to_bytes(thread.total),
        "members": thread.members,
        "promoted": thread.promoted,
        "heads": thread.heads,
        "closed": thread.closed,
    }


def thread_of(row: Row[Any]) -> Thread:
    """Return the thread of a row of `threads`."""
    return Thread(
        id=row.id,
        total=vector_from_bytes(row.total),
        members=row.members,
        promoted=row.promoted,
        heads=_ids(row.heads),
        closed=row.closed,
    )


def buffered_row(namespace: Namespace, buffered: Buffered) -> dict[str, Any]:
    """Return a buffered unit's row."""
    return {
        "unit": buffered.unit,
        "namespace": namespace,
        "pushed_at": buffered.pushed_at,
    }


def buffered_of(row: Row[Any]) -> Buffered:
    """Return the buffered unit of a row of `buffer`."""
    return Buffered(row.unit, row.pushed_at)


def outbox_row(record: Outgoing, command: UUID | None = None) -> dict[str, Any]:
    """Return the row of a record to publish, and of the journal row it carries."""
    return {
        "topic": record.topic.name,
        "key": record.key,
        "value": record.value,
        "headers": {name: b64encode(value).decode() for name, value in record.headers.items()},
        "command": command,
    }


def outgoing_of(row: Row[Any]) -> Outgoing:
    """Return the record of a row of `outbox`."""
    headers = {name: b64decode(value) for name, value in row.headers.items()}
    return Outgoing(_TOPICS[row.topic], row.key, row.value, headers)


def request_row(request: Request) -> dict[str, Any]:
    """Return a request's row."""
    return {
        "id": request.id,
        "namespace": request.namespace,
        "digest": request.digest,
        "turns": request.turns,
        "accepted_at": request.accepted_at,
    }


def request_of(row: Row[Any]) -> Request:
    """Return the request of a row of `requests`."""
    return Request(row.id, row.namespace, row.digest, _ids(row.turns), row.accepted_at)


def _about_key_of(unit: Unit) -> int | None:
    if unit.subject is None or unit.relation is None:
        return None
    return about_key(unit.namespace, unit.subject, unit.relation)


def _ids(texts: list[str]) -> tuple[UUID, ...]:
    return tuple(map(UUID, texts))
