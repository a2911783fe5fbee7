"""`Tables` of `lamina.streams.ports` over SQLAlchemy: PostgreSQL in production, SQLite embedded."""

import os
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from filelock import AsyncFileLock, Timeout
from sqlalchemy import URL, delete, select, update

from lamina.sinks import journal_lanes
from lamina.sinks.database import (
    WAIT_SECONDS,
    Database,
    chunks,
    postgres_migrator,
    sqlite_migrator,
)
from lamina.sinks.migrate import upgrade
from lamina.sinks.rows import outgoing_of
from lamina.sinks.schema import IS_UNFINISHED, faults, outbox, units
from lamina.sinks.tables_graph import GraphTables
from lamina.sinks.tables_journal import JournalTables
from lamina.sinks.tables_requests import RequestTables
from lamina.sinks.tables_transaction import SqlTransaction
from lamina.sinks.tables_units import UnitTables
from lamina.sinks.tables_waiting import WaitingTables
from lamina.sinks.tally import tally
from lamina.streams.errors import TablesUnavailable
from lamina.streams.namespace import Namespace
from lamina.streams.ports import OutboxRow, Tally
from lamina.streams.records import Status


async def open_tables(url: str) -> "SqlTables":
    """Bring the schema up to date and return the tables.

    Args:
        url: SQLAlchemy URL, `sqlite+aiosqlite:///file` or `postgresql+asyncpg://…`.

    Raises:
        TablesUnavailable: the database does not answer now.
        Misconfigured: the URL, the credentials, the file or the schema's version cannot be used.
    """
    database = Database(url)
    migrator = postgres_migrator(database.url) if database.postgres else sqlite_migrator(database.url)
    try:
        async with _alone(database.url):
            await upgrade(migrator)
    except BaseException:
        await database.close()
        raise
    finally:
        await migrator.dispose()
    return SqlTables(database)


@asynccontextmanager
async def _alone(url: URL) -> AsyncIterator[None]:
    """Keep other openers of an SQLite file out, in this process or another, until it has its schema.

    The switch of a new file to WAL heeds no busy timeout, so two first openers at once would collide there.

    Raises:
        TablesUnavailable: another opener takes longer than anyone waits.
    """
    file = Path(url.database or "")
    if url.get_backend_name() != "sqlite" or not os.access(file.parent, os.W_OK):
        yield  # PostgreSQL has a lock of its own; a folder of no use is told of by the opening
        return
    try:
        lock = await AsyncFileLock(f"{file}.opening").acquire(timeout=WAIT_SECONDS)
    except Timeout as exc:
        raise TablesUnavailable(f"another process has been opening {file} for {WAIT_SECONDS:.0f} s") from exc
    async with lock:
        yield


class SqlTables(UnitTables, GraphTables, WaitingTables, JournalTables, RequestTables):
    """The tables of one database; `open_tables` makes them."""

    @asynccontextmanager
    async def transaction(self, namespaces: Iterable[Namespace]) -> AsyncIterator[SqlTransaction]:
        """Lock the namespaces in sorted order (creating their rows) and give a transaction over them."""
        ordered = sorted(set(namespaces))
        async with self._database.writing() as sql:
            await journal_lanes.lock_namespaces(sql, ordered)
            yield SqlTransaction(sql, ordered)

    async def mark_for_index(self) -> int:
        """Mark every visible unit for the index, so that the store is built anew; return how many."""
        async with self._database.writing() as sql:
            return await sql.run(update(units).where(units.c.visible).values(dirty=True))

    async def outbox(self, limit: int) -> list[OutboxRow]:
        """Return the oldest rows of the outbox.

        Rows of one namespace come in the order of their commits; those of two may come in any.
        """
        statement = select(outbox).order_by(outbox.c.id).limit(limit)
        async with self._database.reading() as sql:
            return [OutboxRow(row.id, outgoing_of(row)) for row in await sql.rows(statement)]

    async def published(self, ids: Collection[int]) -> None:
        """Delete outbox rows that the broker acknowledged."""
        async with self._database.writing() as sql:
            for some in chunks(ids):
                await sql.run(delete(outbox).where(outbox.c.id.in_(some)))

    async def fail_turn(self, namespace: Namespace, turn: UUID, reason: str) -> None:
        """Set a turn that is not terminal to `failed`."""
        statement = (
            update(units)
            .where(units.c.id == turn, units.c.namespace == namespace, IS_UNFINISHED)
            .values(status=Status.FAILED.value, reason=reason)
        )
        async with self._database.writing() as sql:
            await journal_lanes.lock_namespaces(sql, [namespace])
            await sql.run(statement)

    async def count_fault(self, source: str, detail: str) -> int:
        """Count one more unknown fault of a record (`topic/partition/offset/digest`); return how many."""
        async with self._database.writing() as sql:
            insert = sql.insert(faults).values(source=source, count=1, detail=detail)
            counted = insert.on_conflict_do_update(
                index_elements=["source"],
                set_={"count": faults.c.count + 1, "detail": insert.excluded.detail},
            )
            return int(await sql.scalar(counted.returning(faults.c.count)))

    async def tally(self, namespace_prefix: str = "") -> Tally:
        """Count turns, derived units and commands of namespaces with the prefix (`tenant/`)."""
        async with self._database.reading() as sql:
            return await tally(sql, namespace_prefix)

    async def check(self) -> None:
        """Answer if the database does.

        Raises:
            TablesUnavailable: it does not.
        """
        async with self._database.reading() as sql:
            await sql.scalar(select(1))

    async def close(self) -> None:
        """Close all connections."""
        await self._database.close()
