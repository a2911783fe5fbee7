"""The parts of a transaction that hold recurrence counting's state and the topology buffer."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Table, select, update

from lamina.sinks import schema
from lamina.sinks.database import chunks
from lamina.sinks.rows import buffered_of, buffered_row, exchange_of, exchange_row, thread_of, thread_row
from lamina.sinks.schema import IS_LIVE, IS_WAITING, namespaces, recurrence, threads
from lamina.sinks.tables_locked import Locked
from lamina.streams.buffer import Buffered
from lamina.streams.namespace import Namespace
from lamina.streams.recurrence import Exchange, RecurrenceRows, Thread


class RecurrenceTables(Locked):
    """Exchanges and threads in a transaction."""

    async def recurrence(self, namespace: Namespace) -> RecurrenceRows:
        """Return the live exchanges and the threads that are not closed, in the order of their first save."""
        live = select(recurrence).where(recurrence.c.namespace == namespace, IS_LIVE)
        known = select(threads).where(threads.c.namespace == namespace, ~threads.c.closed)
        kept = select(namespaces.c.similarities).where(namespaces.c.namespace == namespace)
        return RecurrenceRows(
            tuple(map(exchange_of, await self._sql.rows(live.order_by(recurrence.c.ordinal)))),
            tuple(map(thread_of, await self._sql.rows(known.order_by(threads.c.ordinal)))),
            tuple(await self._sql.scalar(kept) or ()),
        )

    async def recurrence_version(self, namespace: Namespace) -> int:
        """Return a number that grows with every `save_recurrence` of the namespace."""
        statement = select(namespaces.c.recurrence_version).where(namespaces.c.namespace == namespace)
        return await self._sql.scalar(statement) or 0

    async def observed(self, ids: Collection[UUID]) -> set[UUID]:
        """Return those exchanges that were observed before, whatever their state."""
        found: set[UUID] = set()
        for some in chunks(ids):
            statement = select(recurrence.c.id).where(recurrence.c.id.in_(some))
            found |= {row.id for row in await self._sql.rows(statement)}
        return found

    async def exchanges(self, ids: Collection[UUID]) -> list[Exchange]:
        """Return exchanges by id, whatever their state, in the order in which they were first observed."""
        rows: list[Any] = []
        for some in chunks(ids):
            rows += await self._sql.rows(select(recurrence).where(recurrence.c.id.in_(some)))
        return [exchange_of(row) for row in sorted(rows, key=lambda row: row.ordinal)]

    async def threads_of(self, namespace: Namespace, heads: Collection[UUID]) -> list[Thread]:
        """Return the threads that have one of the episodes as a head, oldest first."""
        wanted = set(heads)
        known = select(threads).where(threads.c.namespace == namespace).order_by(threads.c.ordinal)
        # A namespace has hundreds of threads at most, and few questions like this one.
        found = map(thread_of, await self._sql.rows(known))
        return [thread for thread in found if wanted & set(thread.heads)]

    async def save_recurrence(
        self,
        namespace: Namespace,
        exchanges: Iterable[Exchange],
        threads: Iterable[Thread],
        *,
        similarities: Sequence[int] | None = None,
    ) -> None:
        """Insert or replace exchanges and threads by id, and the histogram of similarities where given."""
        await self._raise_counter(namespace, "recurrence_version", 1)
        await self._replace(recurrence, [exchange_row(namespace, exchange) for exchange in exchanges])
        await self._replace(schema.threads, [thread_row(namespace, thread) for thread in threads])
        if similarities is not None:
            kept = update(namespaces).where(namespaces.c.namespace == namespace)
            await self._sql.run(kept.values(similarities=list(similarities)))

    async def _replace(self, table: Table, rows: list[dict[str, Any]]) -> None:
        """Insert rows or replace those with their id; a replaced row keeps its ordinal, its place in line."""
        insert = self._sql.insert(table)
        kept = {"ordinal", "id", "namespace"}
        replaced = {
            column.name: insert.excluded[column.name] for column in table.c if column.name not in kept
        }
        await self._sql.run(insert.on_conflict_do_update(index_elements=["id"], set_=replaced), rows)


class BufferTables(Locked):
    """The topology buffer in a transaction (All-Mem §3.2)."""

    async def push_buffer(self, namespace: Namespace, rows: Sequence[Buffered]) -> None:
        """Add units to the topology buffer; one that was ever pushed is left as it is."""
        self._check(namespace)
        new = self._sql.insert(schema.buffer).on_conflict_do_nothing(index_elements=["unit"])
        await self._sql.run(new, [buffered_row(namespace, row) for row in rows])

    async def buffer(self, namespace: Namespace) -> list[Buffered]:
        """Return the buffered units that no command has claimed, in the order in which they were pushed."""
        rows = schema.buffer
        waiting = select(rows).where(rows.c.namespace == namespace, IS_WAITING).order_by(rows.c.ordinal)
        return [buffered_of(row) for row in await self._sql.rows(waiting)]

    async def claim_buffer(self, units: Collection[UUID], command: UUID) -> None:
        """Give buffered units to a command: no other takes them."""
        for some in chunks(units):
            waiting = update(schema.buffer).where(schema.buffer.c.unit.in_(some), IS_WAITING)
            await self._sql.run(waiting.values(command=command))

    async def count_sessions(self, namespace: Namespace, more: int, *, reset: bool = False) -> int:
        """Add to the sessions begun since topology last looked; return the sum; `reset` then sets it to 0."""
        begun = await self._raise_counter(namespace, "sessions_since", more)
        if reset and begun:
            await self._raise_counter(namespace, "sessions_since", -begun)
        return begun
