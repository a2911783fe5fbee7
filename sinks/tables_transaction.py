"""`Transaction` of `lamina.streams.ports`: reads and writes under the locks of some namespaces."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Boolean, ColumnElement, and_, bindparam, case, delete, func, or_, select, update

from lamina.sinks import schema
from lamina.sinks.database import Statements, chunks
from lamina.sinks.rows import (
    MUTABLE_UNIT_FIELDS,
    UNIT_COLUMNS,
    about_key,
    link_row,
    outbox_row,
    session_key,
    unit_change,
    unit_of,
    unit_row,
)
from lamina.sinks.schema import IS_DIRTY, IS_TURN, IS_VISIBLE_FACT, evidence, namespaces, outbox, units
from lamina.sinks.tables_commands import CommandTables
from lamina.sinks.tables_recurrence import BufferTables, RecurrenceTables
from lamina.sinks.tables_requests import RequestRows
from lamina.streams.codec import encode
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Outgoing
from lamina.streams.records import Change, Link, Status, Unit
from lamina.streams.topics import CHANGES

_UPDATE_UNITS = (
    update(units)
    .where(units.c.id == bindparam("this"))
    .values(
        {name: bindparam(name) for name in (*MUTABLE_UNIT_FIELDS, "about_key")}
        # What was said is never rewritten; the text of a derived unit is its author's to correct.
        | {"text": case((IS_TURN, units.c.text), else_=bindparam("derived_text", type_=units.c.text.type))}
        # On the right stand the values from before: a unit that becomes invisible is marked, to be deleted.
        | {"dirty": or_(units.c.dirty, units.c.visible, bindparam("visible", type_=Boolean))}
    )
)

_MARK_INDEXED = (
    update(units)
    .where(units.c.id == bindparam("this"), units.c.version == bindparam("indexed"))
    .values(dirty=False)
)


_DELETE_LINKS = delete(schema.links).where(
    schema.links.c.source == bindparam("from_"),
    schema.links.c.target == bindparam("to"),
    schema.links.c.type == bindparam("of"),
)


class SqlTransaction(RecurrenceTables, BufferTables, CommandTables, RequestRows):
    """Reads and writes of one transaction, whose namespaces are locked.

    While it is open, write through it alone: on SQLite another write waits for this one to end.
    """

    async def units(self, ids: Collection[UUID]) -> dict[UUID, Unit]:
        """Return the units that exist among the ids."""
        return await units_by_id(self._sql, ids)

    async def last_turn(self, namespace: Namespace) -> Unit | None:
        """Return the turn with the largest position."""
        statement = (
            select(*UNIT_COLUMNS)
            .where(units.c.namespace == namespace, IS_TURN)
            .order_by(units.c.position.desc())
            .limit(1)
        )
        rows = await self._sql.rows(statement)
        return unit_of(rows[0]) if rows else None

    async def session_length(self, namespace: Namespace, session: str) -> int:
        """Return the number of turns of a session, which have the ordinals from 0 without a gap."""
        # Counting would read them all: a session may be as long as its user's life with the agent.
        last = select(func.max(units.c.ordinal)).where(*_in_session(namespace, session))
        ordinal = await self._sql.scalar(last)
        return 0 if ordinal is None else int(ordinal) + 1

    async def session_slice(self, namespace: Namespace, session: str, start: int, stop: int) -> list[Unit]:
        """Return the session's turns with start <= ordinal < stop, in order."""
        statement = (
            select(*UNIT_COLUMNS)
            .where(
                *_in_session(namespace, session),
                units.c.ordinal >= start,
                units.c.ordinal < stop,
            )
            .order_by(units.c.ordinal)
        )
        return [unit_of(row) for row in await self._sql.rows(statement)]

    async def position(self, namespace: Namespace) -> int:
        """Return the namespace's last position (0 when nothing was placed)."""
        statement = select(namespaces.c.position).where(namespaces.c.namespace == namespace)
        return await self._sql.scalar(statement) or 0

    async def advance(self, namespace: Namespace, count: int) -> int:
        """Reserve `count` positions and return the first."""
        last = await self._raise_counter(namespace, "position", count)
        return last - count + 1

    async def insert_units(self, units: Sequence[Unit]) -> set[UUID]:
        """Insert units whose id is new; return the inserted ids. Visible ones are marked for the index."""
        new = self._sql.insert(schema.units).on_conflict_do_nothing(index_elements=["id"])
        rows = await self._sql.rows(new.returning(schema.units.c.id), [unit_row(unit) for unit in units])
        inserted = {row.id for row in rows}
        rests = [
            {"turn": turn, "unit": unit.id} for unit in units if unit.id in inserted for turn in unit.evidence
        ]
        await self._sql.run(self._sql.insert(evidence).on_conflict_do_nothing(), rests)
        return inserted

    async def update_units(self, units: Sequence[Unit]) -> None:
        """Rewrite units by id, save what was said and where.

        Units that are visible, or were until now, are marked for the index.
        """
        await self._sql.run(_UPDATE_UNITS, [unit_change(unit) for unit in units])

    async def set_status(self, ids: Collection[UUID], status: Status) -> None:
        """Set the status of turns; the vector store does not hold it, so nothing is marked."""
        for some in chunks(ids):
            turns = update(units).where(units.c.id.in_(some), IS_TURN)
            await self._sql.run(turns.values(status=status.value))

    async def insert_links(self, links: Sequence[Link]) -> None:
        """Insert links; one that exists already is left as it is."""
        new = self._sql.insert(schema.links).on_conflict_do_nothing()
        await self._sql.run(new, [link_row(link) for link in links])

    async def delete_links(self, links: Sequence[Link]) -> None:
        """Delete links by source, target and type; those that do not exist are ignored."""
        gone = [{"from_": link.source, "to": link.target, "of": link.type} for link in links]
        await self._sql.run(_DELETE_LINKS, gone)

    async def visible_facts(self, namespace: Namespace, about: Collection[tuple[str, str]]) -> list[Unit]:
        """Return the visible facts with one of the (subject, relation) pairs, oldest position first."""
        keys = {about_key(namespace, subject, relation) for subject, relation in about}
        found: list[Unit] = []
        for some in chunks(keys):
            statement = select(*UNIT_COLUMNS).where(
                units.c.about_key.in_(some), IS_VISIBLE_FACT, units.c.namespace == namespace
            )
            found += [unit_of(row) for row in await self._sql.rows(statement)]
        pairs = set(about)
        facts = [unit for unit in found if (unit.subject, unit.relation) in pairs]
        return sorted(facts, key=lambda unit: (unit.position, unit.ordinal, unit.id))

    async def record_changes(self, changes: Sequence[tuple[Unit, str]], at: datetime) -> list[Change]:
        """Give each (unit, change type) the namespace's next seq and write it to the outbox."""
        counts = Counter(unit.namespace for unit, _ in changes)
        last = {name: await self._raise_counter(name, "seq", counts[name]) for name in sorted(counts)}
        following = {name: last[name] - counts[name] for name in counts}
        recorded: list[Change] = []
        for unit, change in changes:
            following[unit.namespace] += 1
            fields = {"type": change, "seq": following[unit.namespace], "unit_id": unit.id, "at": at}
            common = {"namespace": unit.namespace, "kind": unit.kind, "version": unit.version}
            recorded.append(Change.model_validate(fields | common))
        records = [Outgoing(CHANGES, change.namespace, encode(change)) for change in recorded]
        await self._sql.run(outbox.insert(), [outbox_row(record) for record in records])
        return recorded

    async def dirty(self, namespace: Namespace, limit: int) -> list[Unit]:
        """Return units that the vector store does not reflect yet, invisible ones too, oldest first."""
        statement = (
            select(*UNIT_COLUMNS)
            .where(units.c.namespace == namespace, IS_DIRTY)
            .order_by(units.c.position, units.c.ordinal, units.c.id)
            .limit(limit)
        )
        return [unit_of(row) for row in await self._sql.rows(statement)]

    async def mark_indexed(self, units: Sequence[Unit]) -> None:
        """Clear the mark of units whose version is still the given one."""
        await self._sql.run(_MARK_INDEXED, [{"this": unit.id, "indexed": unit.version} for unit in units])


async def units_by_id(
    sql: Statements, ids: Collection[UUID], *where: ColumnElement[bool]
) -> dict[UUID, Unit]:
    """Return the units among the ids that match."""
    found: dict[UUID, Unit] = {}
    for some in chunks(ids):
        rows = await sql.rows(select(*UNIT_COLUMNS).where(and_(units.c.id.in_(some), *where)))
        found |= {unit.id: unit for unit in map(unit_of, rows)}
    return found


def _in_session(namespace: Namespace, session: str) -> tuple[ColumnElement[bool], ...]:
    """Return the turns of a session: found by key, told apart by name where two share one."""
    return (
        IS_TURN,
        units.c.session_key == session_key(namespace, session),
        units.c.namespace == namespace,
        units.c.session == session,
    )
