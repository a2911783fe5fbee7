"""The part of the tables that reads units and threads."""

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, exists, literal, literal_column, select, true, tuple_

from lamina.sinks.database import Opened, chunks
from lamina.sinks.prepared import turns_among, units_among
from lamina.sinks.rows import UNIT_COLUMNS, session_key, thread_of, unit_of
from lamina.sinks.schema import IS_TURN, IS_UNFINISHED, evidence, one_of, recurrence, threads, units
from lamina.sinks.tables_transaction import units_by_id
from lamina.streams.namespace import Namespace
from lamina.streams.records import Kind, Status, Unit
from lamina.streams.recurrence import Thread


class UnitTables(Opened):
    """Committed units and threads."""

    async def units(self, namespace: Namespace, ids: Collection[UUID]) -> dict[UUID, Unit]:
        """Return the namespace's units among the ids."""
        async with self._database.reading() as sql:
            rows = await sql.given(*units_among(namespace, ids, postgres=sql.postgres))
        return {unit.id: unit for unit in map(unit_of, rows)}

    async def turns_at(
        self, namespace: Namespace, places: Collection[tuple[str, int]]
    ) -> dict[tuple[str, int], Unit]:
        """Return the turns at (session, ordinal) places."""
        wanted = set(places)
        keys = {session: session_key(namespace, session) for session, _ in wanted}
        at = [(keys[session], ordinal) for session, ordinal in wanted]
        async with self._database.reading() as sql:
            rows = await sql.given(*turns_among(namespace, at, postgres=sql.postgres))
        # Two sessions may share a key, so a turn may have come that nobody asked for.
        turns = {(turn.session, turn.ordinal): turn for turn in map(unit_of, rows)}
        return {place: turn for place, turn in turns.items() if place in wanted}

    async def turns_before(
        self, namespace: Namespace, position: int | None, limit: int, *, said_to: datetime | None = None
    ) -> list[Unit]:
        """Return a page of the namespace's turns, whatever their status, newest position first."""
        # `IS true` as in IS_UNFINISHED: an equality would lead SQLite to `ix_units_tally`, and to sort.
        statement = select(*UNIT_COLUMNS).where(IS_TURN.is_(true()), units.c.namespace == namespace)
        if position is not None:
            statement = statement.where(units.c.position < position)
        if said_to is not None:
            statement = statement.where(units.c.said_at <= said_to)
        async with self._database.reading() as sql:
            rows = await sql.rows(statement.order_by(units.c.position.desc()).limit(limit))
        return [unit_of(row) for row in rows]

    async def find(self, ids: Collection[UUID]) -> dict[UUID, Unit]:
        """Return units by id in any namespace; the caller checks that they are its tenant's."""
        async with self._database.reading() as sql:
            return await units_by_id(sql, ids)

    async def derived_from(self, namespace: Namespace, turns: Collection[UUID]) -> dict[UUID, list[UUID]]:
        """Return, for each turn, the ids of visible units whose evidence it is, oldest position first."""
        found: dict[UUID, list[UUID]] = {turn: [] for turn in turns}
        async with self._database.reading() as sql:
            for some in chunks(turns):
                statement = (
                    select(evidence.c.turn, evidence.c.unit)
                    .join(units, units.c.id == evidence.c.unit)
                    .where(evidence.c.turn.in_(some), units.c.namespace == namespace, units.c.visible)
                    .order_by(units.c.position, units.c.ordinal, units.c.id)
                )
                for row in await sql.rows(statement):
                    found[row.turn].append(row.unit)
        return found

    async def unfinished_turns(self, after: tuple[str, int] | None, limit: int) -> list[Unit]:
        """Return turns that are not terminal, ordered by (namespace, position), after the given pair."""
        return await self._paged(select(*UNIT_COLUMNS).where(IS_UNFINISHED), after, limit)

    async def uncounted_turns(self, after: tuple[str, int] | None, limit: int) -> list[Unit]:
        """Return gated turns after a kept one that close no counted exchange, ordered and paged alike."""
        before = units.alias("before")
        kept = (Status.ADMITTED, Status.REMEMBERED, Status.CONSOLIDATED)
        follows_kept = exists().where(
            before.c.kind == literal_column("'turn'"),
            before.c.session_key == units.c.session_key,
            before.c.ordinal == units.c.ordinal - 1,
            before.c.namespace == units.c.namespace,
            before.c.session == units.c.session,
            one_of(before.c.status, *kept),
        )
        counted = exists().where(recurrence.c.id == units.c.id)
        gated = select(*UNIT_COLUMNS).where(IS_TURN, one_of(units.c.status, Status.GATED))
        return await self._paged(gated.where(follows_kept, ~counted), after, limit)

    async def visible_units(self, namespace: Namespace, kinds: Collection[Kind]) -> list[Unit]:
        """Return the visible units of these kinds, oldest position and ordinal first."""
        # Every status is named, so that `ix_units_tally` is read as ranges: turns are not walked through.
        statement = (
            select(*UNIT_COLUMNS)
            .where(
                one_of(units.c.kind, *sorted(set(kinds))),
                one_of(units.c.status, *Status),
                units.c.namespace == namespace,
                units.c.visible,
            )
            .order_by(units.c.position, units.c.ordinal, units.c.id)
        )
        async with self._database.reading() as sql:
            return [unit_of(row) for row in await sql.rows(statement)]

    async def thread(self, namespace: Namespace, thread: UUID) -> Thread | None:
        """Return one thread."""
        statement = select(threads).where(threads.c.namespace == namespace, threads.c.id == thread)
        async with self._database.reading() as sql:
            rows = await sql.rows(statement)
        return thread_of(rows[0]) if rows else None

    async def _paged(self, statement: Select[Any], after: tuple[str, int] | None, limit: int) -> list[Unit]:
        """Return a page of units, ordered by (namespace, position), after the given pair."""
        place = tuple_(units.c.namespace, units.c.position)
        if after is not None:
            statement = statement.where(place > tuple_(literal(after[0]), literal(after[1])))
        async with self._database.reading() as sql:
            rows = await sql.rows(statement.order_by(units.c.namespace, units.c.position).limit(limit))
        return [unit_of(row) for row in rows]
