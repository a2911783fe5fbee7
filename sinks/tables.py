"""`Tables` of `lamina.streams.ports` over SQLAlchemy: PostgreSQL in production, SQLite embedded."""

import os
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from filelock import AsyncFileLock, Timeout
from sqlalchemy import URL, Select, delete, exists, func, literal, literal_column, or_, select, tuple_, update

from lamina.sinks import journal
from lamina.sinks.database import WAIT_SECONDS, Database, Statements, chunks, postgres_migrator
from lamina.sinks.migrate import upgrade
from lamina.sinks.rows import (
    UNIT_COLUMNS,
    link_of,
    outgoing_of,
    request_of,
    request_row,
    session_key,
    thread_of,
    unit_of,
)
from lamina.sinks.schema import (
    IS_DIRTY,
    IS_PENDING,
    IS_TURN,
    IS_UNFINISHED,
    evidence,
    faults,
    links,
    one_of,
    outbox,
    recurrence,
    requests,
    threads,
    units,
)
from lamina.sinks.tables_transaction import SqlTransaction, units_by_id
from lamina.sinks.tally import tally
from lamina.streams.errors import TablesUnavailable
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Claim, OutboxRow, Request, Tally
from lamina.streams.records import Command, Link, Status, Unit
from lamina.streams.recurrence import Thread

_PLACES = 1_000
"""Places per question: two parameters each."""


async def open_tables(url: str) -> "SqlTables":
    """Bring the schema up to date and return the tables.

    Args:
        url: SQLAlchemy URL, `sqlite+aiosqlite:///file` or `postgresql+asyncpg://…`.

    Raises:
        TablesUnavailable: the database does not answer now.
        Misconfigured: the URL, the credentials, the file or the schema's version cannot be used.
    """
    database = Database(url)
    migrator = postgres_migrator(database.writer.url) if database.postgres else database.writer
    try:
        async with _alone(database.writer.url):
            await upgrade(migrator)
    except BaseException:
        await database.close()
        raise
    finally:
        if migrator is not database.writer:
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


class SqlTables:
    """The tables of one database; `open_tables` makes them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def transaction(self, namespaces: Iterable[Namespace]) -> AsyncIterator[SqlTransaction]:
        """Lock the namespaces in sorted order (creating their rows) and give a transaction over them."""
        ordered = sorted(set(namespaces))
        async with self._database.writing() as sql:
            await journal.lock_namespaces(sql, ordered)
            yield SqlTransaction(sql, ordered)

    async def units(self, namespace: Namespace, ids: Collection[UUID]) -> dict[UUID, Unit]:
        """Return the namespace's units among the ids."""
        async with self._database.reading() as sql:
            return await units_by_id(sql, ids, units.c.namespace == namespace)

    async def turns_at(
        self, namespace: Namespace, places: Collection[tuple[str, int]]
    ) -> dict[tuple[str, int], Unit]:
        """Return the turns at (session, ordinal) places."""
        wanted = set(places)
        keys = {session: session_key(namespace, session) for session, _ in wanted}
        found: dict[tuple[str, int], Unit] = {}
        async with self._database.reading() as sql:
            for some in chunks(wanted, _PLACES):
                there = tuple_(units.c.session_key, units.c.ordinal).in_(
                    [(keys[session], ordinal) for session, ordinal in some]
                )
                statement = select(*UNIT_COLUMNS).where(IS_TURN, there, units.c.namespace == namespace)
                turns = [unit_of(row) for row in await sql.rows(statement)]
                found |= {(turn.session, turn.ordinal): turn for turn in turns}
        return {place: turn for place, turn in found.items() if place in wanted}

    async def links_of(self, namespace: Namespace, unit: UUID) -> list[Link]:
        """Return the links from and to a unit, ordered by source, target and type."""
        statement = (
            select(links)
            .where(or_(links.c.source == unit, links.c.target == unit), links.c.namespace == namespace)
            .order_by(links.c.source, links.c.target, links.c.type)
        )
        async with self._database.reading() as sql:
            return [link_of(row) for row in await sql.rows(statement)]

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

    async def thread(self, namespace: Namespace, thread: UUID) -> Thread | None:
        """Return one thread."""
        statement = select(threads).where(threads.c.namespace == namespace, threads.c.id == thread)
        async with self._database.reading() as sql:
            rows = await sql.rows(statement)
        return thread_of(rows[0]) if rows else None

    async def free_lanes(self) -> None:
        """Free every lane, for a process that knows itself to be the only one: leases of a killed one end."""
        async with self._database.writing() as sql:
            await journal.free_all(sql)

    async def reissue_commands(self) -> int:
        """Write commands that never reached intake to the outbox again; return how many."""
        async with self._database.writing() as sql:
            return await journal.reissue(sql)

    async def admit_commands(self, commands: Sequence[Command]) -> None:
        """Record commands that came by the topic as `planned`; those beyond `issued` stay as they are."""
        async with self._database.writing() as sql:
            await journal.lock_namespaces(sql, sorted({command.namespace for command in commands}))
            await journal.admit(sql, commands)

    async def claim(self, owner: str, now: datetime, lease_seconds: float) -> Claim | None:
        """Take the oldest planned command of a namespace whose lane is free, and that lane with it."""
        async with self._database.reading() as sql:  # an idle worker's question takes no lock
            candidates = await journal.candidates(sql, now)
        for namespace in candidates:
            async with self._database.writing() as sql:
                claim = await journal.take(sql, namespace, owner, now, lease_seconds)
            if claim is not None:
                return claim
        return None

    async def release(self, claim: Claim) -> None:
        """Give the lane back; the command stays planned unless it was finished."""
        async with self._database.writing() as sql:
            await journal.free(sql, claim)

    async def idle_namespaces(self, observed_before: datetime, limit: int) -> list[Namespace]:
        """Return namespaces with pending exchanges, all of a thread observed before the given time.

        Those that have waited longest come first.
        """
        newest = func.max(recurrence.c.observed_at)
        idle = (
            select(recurrence.c.namespace, newest.label("newest"))
            .where(IS_PENDING)
            .group_by(recurrence.c.namespace, recurrence.c.thread)
            .having(newest < observed_before)
            .subquery()
        )
        statement = (
            select(idle.c.namespace)
            .group_by(idle.c.namespace)
            .order_by(func.min(idle.c.newest), idle.c.namespace)
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

    async def mark_for_index(self) -> int:
        """Mark every visible unit for the index, so that the store is built anew; return how many."""
        async with self._database.writing() as sql:
            return await sql.run(update(units).where(units.c.visible).values(dirty=True))

    async def dirty_namespaces(self, limit: int) -> list[Namespace]:
        """Return namespaces with units that the vector store does not reflect yet."""
        statement = (
            select(units.c.namespace).distinct().where(IS_DIRTY).order_by(units.c.namespace).limit(limit)
        )
        async with self._database.reading() as sql:
            return [row.namespace for row in await sql.rows(statement)]

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

    async def record_request(self, request: Request) -> Request:
        """Insert the request, or return the one that has its id already."""
        async with self._database.writing() as sql:
            await sql.run(sql.insert(requests).on_conflict_do_nothing(), [request_row(request)])
            recorded = await _request(sql, request.id)
        return recorded or request

    async def request(self, request_id: UUID) -> Request | None:
        """Return a request by id."""
        async with self._database.reading() as sql:
            return await _request(sql, request_id)

    async def fail_turn(self, namespace: Namespace, turn: UUID, reason: str) -> None:
        """Set a turn that is not terminal to `failed`."""
        statement = (
            update(units)
            .where(units.c.id == turn, units.c.namespace == namespace, IS_UNFINISHED)
            .values(status=Status.FAILED.value, reason=reason)
        )
        async with self._database.writing() as sql:
            await journal.lock_namespaces(sql, [namespace])
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

    async def _paged(self, statement: Select[Any], after: tuple[str, int] | None, limit: int) -> list[Unit]:
        """Return a page of units, ordered by (namespace, position), after the given pair."""
        place = tuple_(units.c.namespace, units.c.position)
        if after is not None:
            statement = statement.where(place > tuple_(literal(after[0]), literal(after[1])))
        async with self._database.reading() as sql:
            rows = await sql.rows(statement.order_by(units.c.namespace, units.c.position).limit(limit))
        return [unit_of(row) for row in rows]


async def _request(sql: Statements, request_id: UUID) -> Request | None:
    rows = await sql.rows(select(requests).where(requests.c.id == request_id))
    return request_of(rows[0]) if rows else None
