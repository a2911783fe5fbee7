"""The part of the tables that tells which namespaces have work waiting."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import and_, func, or_, select

from lamina.sinks.database import Opened, chunks
from lamina.sinks.schema import (
    IS_DIRTY,
    IS_PENDING,
    IS_WAITING,
    buffer,
    namespaces,
    recurrence,
    threads,
    units,
)
from lamina.sinks.tables_ranges import under
from lamina.streams.namespace import Namespace


class WaitingTables(Opened):
    """Namespaces, and what waits in them."""

    async def namespaces(
        self, prefix: str = "", after: Namespace | None = None, limit: int = 1000
    ) -> list[Namespace]:
        """Return namespaces in order, paged; the prefix is `tenant/`, a whole namespace, or empty."""
        name = namespaces.c.namespace
        statement = select(name).where(under(name, prefix)).order_by(name).limit(limit)
        if after is not None:
            statement = statement.where(name > after)
        async with self._database.reading() as sql:
            return [row.namespace for row in await sql.rows(statement)]

    async def idle_namespaces(self, waited: datetime, idle: datetime, limit: int) -> list[Namespace]:
        """Return namespaces with a thread in which every pending exchange was observed before a given time.

        Args:
            waited: the time for most threads.
            idle: a later one, for threads that no command has promoted yet, or where something salient waits.
            limit: most namespaces; those that have waited longest come first.
        """
        newest = func.max(recurrence.c.observed_at)
        presses = or_(func.count(recurrence.c.salience) > 0, func.count(threads.c.promoted) == 0)
        due = (
            select(recurrence.c.namespace, newest.label("newest"))
            .join(threads, threads.c.id == recurrence.c.thread)
            .where(IS_PENDING)
            .group_by(recurrence.c.namespace, recurrence.c.thread)
            .having(or_(newest < waited, and_(newest < idle, presses)))
            .subquery()
        )
        statement = (
            select(due.c.namespace)
            .group_by(due.c.namespace)
            .order_by(func.min(due.c.newest), due.c.namespace)
            .limit(limit)
        )
        async with self._database.reading() as sql:
            return [row.namespace for row in await sql.rows(statement)]

    async def idle_buffers(self, pushed_before: datetime, limit: int) -> list[Namespace]:
        """Return namespaces whose unclaimed buffered units were all pushed before the given time.

        Those that have waited longest come first.
        """
        newest = func.max(buffer.c.pushed_at)
        statement = (
            select(buffer.c.namespace)
            .where(IS_WAITING)
            .group_by(buffer.c.namespace)
            .having(newest < pushed_before)
            .order_by(newest, buffer.c.namespace)
            .limit(limit)
        )
        async with self._database.reading() as sql:
            return [row.namespace for row in await sql.rows(statement)]

    async def unindexed(self, ids: Collection[UUID]) -> set[UUID]:
        """Return those units that the vector store does not reflect yet."""
        found: set[UUID] = set()
        async with self._database.reading() as sql:
            for some in chunks(ids):
                rows = await sql.rows(select(units.c.id).where(units.c.id.in_(some), IS_DIRTY))
                found |= {row.id for row in rows}
        return found

    async def has_unindexed(self, namespaces: Collection[Namespace]) -> bool:
        """Tell whether a unit of one of the namespaces is not yet reflected by the vector store."""
        async with self._database.reading() as sql:
            for some in chunks(namespaces):
                statement = select(units.c.id).where(units.c.namespace.in_(some), IS_DIRTY).limit(1)
                if await sql.rows(statement):
                    return True
        return False

    async def dirty_namespaces(self, limit: int) -> list[Namespace]:
        """Return namespaces with units that the vector store does not reflect yet."""
        statement = (
            select(units.c.namespace).distinct().where(IS_DIRTY).order_by(units.c.namespace).limit(limit)
        )
        async with self._database.reading() as sql:
            return [row.namespace for row in await sql.rows(statement)]
