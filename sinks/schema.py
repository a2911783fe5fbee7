"""The tables, as SQLAlchemy metadata. `migrations/` builds the same; a test compares the two.

Those of the journal stand in `schema_journal`. Columns with a server default came with a later migration.

Predicates of partial indexes are written with literals and used by the queries as they stand here: a
bound parameter would hide from the planner that the index applies.
"""

from hashlib import blake2b
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    and_,
    false,
    literal_column,
    text,
    true,
)

from lamina.sinks.column_types import Ascending, Id, Json, Moment, NamespaceKey, Verbatim


def place_key(*parts: str) -> int:
    """Return a 64-bit key of texts that may be too long for an index (PostgreSQL's limit is 2.7 kB).

    Two texts may share a key: whoever searches by it compares the texts too.
    """
    return int.from_bytes(blake2b(orjson.dumps(parts), digest_size=8).digest(), "big", signed=True)


def one_of(column: Column[Any], *values: str) -> ColumnElement[bool]:
    """Return `column IN (…)` with literals, as index predicates need it."""
    return column.in_([literal_column(f"'{value}'") for value in values])


def partial(name: str, *columns: Column[Any], where: ColumnElement[bool], unique: bool = False) -> Index:
    """Return an index over the rows that match, on both engines."""
    return Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)


metadata = MetaData()

namespaces = Table(
    "namespaces",
    metadata,
    Column("namespace", NamespaceKey, primary_key=True),
    Column("position", BigInteger, nullable=False),  # the last one given out
    Column("seq", BigInteger, nullable=False),  # of `changes`: the last one given out
    Column("recurrence_version", BigInteger, nullable=False),
    Column("lane_owner", Text),
    Column("lane_until", Moment),
    Column("lane_fence", BigInteger, nullable=False),
    Column("sessions_since", BigInteger, nullable=False, server_default=text("0")),  # topology last looked
    Column("similarities", Json),  # histogram of exchanges' similarities; NULL where none was kept
)
"""One row per namespace: the lock of every write, its counters, and the lane of consolidation."""

units = Table(
    "units",
    metadata,
    Column("id", Id, primary_key=True),
    Column("namespace", NamespaceKey, nullable=False),
    Column("kind", Text, nullable=False),
    Column("session", Verbatim, nullable=False),
    Column("session_key", BigInteger, nullable=False),  # place_key(namespace, session)
    Column("ordinal", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("role", Text, nullable=False),
    Column("speaker", Verbatim, nullable=False),
    Column("text", Verbatim, nullable=False),
    Column("summary", Verbatim),
    Column("keywords", Json, nullable=False),
    Column("entities", Json, nullable=False),
    Column("topic", Verbatim),
    Column("salience", Verbatim),
    Column("subject", Verbatim),
    Column("relation", Verbatim),
    Column("object", Verbatim),
    Column("about_key", BigInteger),  # place_key(namespace, subject, relation); NULL without both
    Column("evidence", Json, nullable=False),
    Column("spans", Json, nullable=False, server_default=text("'[]'")),
    Column("said_at", Moment, nullable=False),
    Column("time_source", Text, nullable=False),
    Column("occurred_from", Moment),
    Column("occurred_to", Moment),
    Column("valid_from", Moment),
    Column("valid_to", Moment),
    Column("recorded_at", Moment, nullable=False),
    Column("visible", Boolean, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("engine", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("score", Double),
    Column("reason", Verbatim),
    Column("metadata", Json, nullable=False),
    Column("dirty", Boolean, nullable=False),  # the vector store does not reflect this row yet
)
"""All memories. Rows are archived (`visible` off), never deleted."""

IS_TURN = units.c.kind == literal_column("'turn'")
# `IS true` hides two equalities from SQLite, for which it would take `ix_units_tally`, and then sort.
IS_UNFINISHED = and_(IS_TURN, one_of(units.c.status, "accepted", "admitted")).is_(true())
IS_DIRTY = units.c.dirty.is_(true())
IS_VISIBLE_FACT = and_(units.c.kind == literal_column("'fact'"), units.c.visible)

Index("ix_units_position", units.c.namespace, units.c.position)
Index("ix_units_tally", units.c.kind, units.c.status, units.c.namespace, units.c.visible)
partial("ix_units_place", units.c.session_key, units.c.ordinal, where=IS_TURN)
partial("ix_units_unfinished", units.c.namespace, units.c.position, where=IS_UNFINISHED)
partial("ix_units_dirty", units.c.namespace, units.c.position, where=IS_DIRTY)
partial("ix_units_about", units.c.about_key, where=IS_VISIBLE_FACT)

evidence = Table(
    "evidence",
    metadata,
    Column("turn", Id, primary_key=True),
    Column("unit", Id, primary_key=True),
    sqlite_with_rowid=False,
)
"""`units.evidence` turned round: from a turn to the units that rest on it."""

links = Table(
    "links",
    metadata,
    Column("source", Id, primary_key=True),
    Column("target", Id, primary_key=True),
    Column("type", Text, primary_key=True),
    Column("namespace", NamespaceKey, nullable=False),
    Column("weight", Double, nullable=False),
    sqlite_with_rowid=False,
)
Index("ix_links_target", links.c.target)

recurrence = Table(
    "recurrence",
    metadata,
    Column("ordinal", Ascending, primary_key=True, autoincrement=True),  # order of first observation
    Column("id", Id, nullable=False),
    Column("namespace", NamespaceKey, nullable=False),
    Column("turns", Json, nullable=False),
    Column("said_at", Moment, nullable=False),
    Column("observed_at", Moment, nullable=False),
    Column("vector", LargeBinary),  # float32, little-endian; NULL once claimed
    Column("salience", Verbatim),
    Column("state", Text, nullable=False),
    Column("thread", Id),
    Column("command", Id),
)
"""The exchanges that recurrence counting has seen."""

IS_LIVE = one_of(recurrence.c.state, "unconsolidated", "pending")
IS_PENDING = one_of(recurrence.c.state, "pending")

Index("ux_recurrence_id", recurrence.c.id, unique=True)
partial("ix_recurrence_live", recurrence.c.namespace, recurrence.c.ordinal, where=IS_LIVE)
partial(
    "ix_recurrence_pending",
    recurrence.c.namespace,
    recurrence.c.thread,
    recurrence.c.observed_at,
    where=IS_PENDING,
)

threads = Table(
    "threads",
    metadata,
    Column("ordinal", Ascending, primary_key=True, autoincrement=True),  # order of first registration
    Column("id", Id, nullable=False),
    Column("namespace", NamespaceKey, nullable=False),
    Column("total", LargeBinary, nullable=False),  # float32, little-endian
    Column("members", BigInteger, nullable=False),
    Column("promoted", Id),
    Column("heads", Json, nullable=False),
    Column("closed", Boolean, nullable=False, server_default=false()),
)
"""Episode threads."""

Index("ux_threads_id", threads.c.id, unique=True)
Index("ix_threads_namespace", threads.c.namespace, threads.c.ordinal)

buffer = Table(
    "buffer",
    metadata,
    Column("ordinal", Ascending, primary_key=True, autoincrement=True),  # order of pushing
    Column("unit", Id, nullable=False),
    Column("namespace", NamespaceKey, nullable=False),
    Column("pushed_at", Moment, nullable=False),
    Column("command", Id),  # the one that looks at it; NULL while it waits
)
"""Units for topology to look at. A row stays when its command has ended: by it is known what was pushed."""

IS_WAITING = buffer.c.command.is_(None)

Index("ux_buffer_unit", buffer.c.unit, unique=True)
partial("ix_buffer_waiting", buffer.c.namespace, buffer.c.ordinal, buffer.c.pushed_at, where=IS_WAITING)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Ascending, primary_key=True, autoincrement=True),
    Column("topic", Text, nullable=False),  # without prefix
    Column("key", NamespaceKey),
    Column("value", LargeBinary, nullable=False),
    Column("headers", Json, nullable=False),  # name → base64
    Column("command", Id),  # the journal row that this record carries
    # An id is never given twice: deleting a published row again must not hit a younger one.
    sqlite_autoincrement=True,
)
partial("ix_outbox_command", outbox.c.command, where=outbox.c.command.is_not(None))

requests = Table(
    "requests",
    metadata,
    Column("id", Id, primary_key=True),
    Column("namespace", NamespaceKey, nullable=False),
    Column("digest", Text, nullable=False),
    Column("turns", Json, nullable=False),
    Column("accepted_at", Moment, nullable=False),
)

marks = Table(
    "marks",
    metadata,
    Column("id", Id, primary_key=True),
    Column("namespace", NamespaceKey, nullable=False),
    Column("at", Moment, nullable=False),
)
"""What a chat's history is known by: a row says that something, and all before it, was accepted."""

Index("ix_marks_at", marks.c.at)

faults = Table(
    "faults",
    metadata,
    Column("source", Text, primary_key=True),
    Column("count", Integer, nullable=False),
    Column("detail", Verbatim, nullable=False),  # of the newest
)
