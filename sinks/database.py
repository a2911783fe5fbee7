"""Connections to the tables: one engine that writes, one that reads, and one way to run a statement.

A batch is one commit, so the cost is one fsync a batch. PostgreSQL's durability is its server's setting
(`synchronous_commit`, on by default), SQLite's is said in `lamina.sinks.sqlite_threads`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Executable, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from lamina.sinks.sqlite_threads import Readers, Writer, write_ahead
from lamina.sinks.tables_faults import translated
from lamina.streams.errors import Misconfigured, TablesUnavailable

T = TypeVar("T")

WAIT_SECONDS = 30.0
"""Longest wait for a lock, a connection or one statement; then the caller hears `TablesUnavailable`."""

IN_LIST = 10_000
"""Values per `IN (…)`: below the 32,766 parameters that SQLite and the 32,767 that PostgreSQL take."""

_POOL = 10
"""Connections to PostgreSQL per process, and as many again under load."""


def chunks(values: Iterable[T], size: int = IN_LIST) -> Iterator[list[T]]:
    """Split values into lists of at most `size`."""
    iterator = iter(values)
    while chunk := list(islice(iterator, size)):
        yield chunk


class Statements:
    """One connection. Every method raises the faults of `lamina.streams.errors` and no other library's."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self.postgres = connection.dialect.name == "postgresql"

    def insert(self, table: Table) -> postgresql.Insert | sqlite.Insert:
        """Return an insert that knows ON CONFLICT."""
        return postgresql.insert(table) if self.postgres else sqlite.insert(table)

    async def run(self, statement: Executable, rows: Sequence[Mapping[str, Any]] | None = None) -> int:
        """Run a statement, once per row where rows are given; return the rows that a single one changed."""
        if rows is not None and not rows:
            return 0
        with translated():
            return (await self._connection.execute(statement, rows)).rowcount

    async def rows(
        self, statement: Executable, rows: Sequence[Mapping[str, Any]] | None = None
    ) -> Sequence[Any]:
        """Run a statement and return all it gives; an insert of many rows is split below the limits."""
        if rows is not None and not rows:
            return []
        with translated():
            return (await self._connection.execute(statement, rows)).all()

    async def given(self, statement: Executable, values: Mapping[str, Any]) -> Sequence[Any]:
        """Run a statement that was built beforehand with these values, and return all it gives."""
        with translated():
            return (await self._connection.execute(statement, values)).all()

    async def scalar(self, statement: Executable) -> Any:
        """Run a statement and return the first column of its first row; None where it has none."""
        with translated():
            return await self._connection.scalar(statement)


class _Threaded(Statements):
    """Statements on an SQLite file, each in a thread of `lamina.sinks.sqlite_threads`."""

    def __init__(self, threads: Readers | Writer) -> None:
        self.postgres = False
        self._threads = threads

    async def run(self, statement: Executable, rows: Sequence[Mapping[str, Any]] | None = None) -> int:
        """Run a statement, once per row where rows are given; return the rows that a single one changed."""
        if rows is not None and not rows:
            return 0
        return await self._threads.call(lambda connection: connection.execute(statement, rows).rowcount)

    async def rows(
        self, statement: Executable, rows: Sequence[Mapping[str, Any]] | None = None
    ) -> Sequence[Any]:
        """Run a statement and return all it gives."""
        if rows is not None and not rows:
            return []
        return await self._threads.call(lambda connection: connection.execute(statement, rows).all())

    async def given(self, statement: Executable, values: Mapping[str, Any]) -> Sequence[Any]:
        """Run a statement that was built beforehand with these values, and return all it gives."""
        return await self._threads.call(lambda connection: connection.execute(statement, values).all())

    async def scalar(self, statement: Executable) -> Any:
        """Run a statement and return the first column of its first row; None where it has none."""
        return await self._threads.call(lambda connection: connection.scalar(statement))


class Database:
    """The engines of one database."""

    def __init__(self, url: str) -> None:
        """Prepare connections; none is opened before it is used.

        Raises:
            Misconfigured: not a URL of SQLite (a file, aiosqlite) or PostgreSQL (asyncpg).
        """
        self.url = _parse(url)
        self.postgres = self.url.get_backend_name() == "postgresql"
        if not self.postgres:
            self.writer: Writer | AsyncEngine = Writer(self.url, WAIT_SECONDS)
            self._reader: Readers | AsyncEngine = Readers(self.url, WAIT_SECONDS)
            # SQLite has one writer. Ours queue here, in order; only other processes poll for the file's lock.
            self._turn = asyncio.Lock()
        else:
            self.writer = create_async_engine(
                self.url,
                pool_size=_POOL,
                max_overflow=_POOL,
                pool_timeout=WAIT_SECONDS,
                pool_pre_ping=True,  # a restarted server costs the next caller a reconnect, not an error
                connect_args={"timeout": WAIT_SECONDS, "command_timeout": WAIT_SECONDS},
            )
            self._reader = self.writer.execution_options(isolation_level="AUTOCOMMIT")

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Statements]:
        """Give a connection that sees committed rows, each statement those of its own moment."""
        if isinstance(self._reader, Readers):
            yield _Threaded(self._reader)
            return
        async with _connected(self._reader) as connection:
            yield Statements(connection)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Statements]:
        """Give a connection in a transaction: commits at the end, rolls back on any exception."""
        if isinstance(self.writer, Writer):
            async with self._alone(), self.writer.transaction():
                yield _Threaded(self.writer)
            return
        async with _connected(self.writer) as connection:
            with translated():
                transaction = await connection.begin()
            yield Statements(connection)
            with translated():
                await transaction.commit()
            # Left by an exception, the connection's close rolls back.

    async def close(self) -> None:
        """Close all connections."""
        if isinstance(self._reader, Readers):
            await self._reader.close()
        if isinstance(self.writer, Writer):
            await self.writer.close()
        else:
            await self.writer.dispose()

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._turn.acquire()
        except TimeoutError as exc:
            raise TablesUnavailable(f"another writer has held SQLite for {WAIT_SECONDS:.0f} s") from exc
        try:
            yield
        finally:
            self._turn.release()


class Opened:
    """An open database: what every part of the tables shares."""

    def __init__(self, database: Database) -> None:
        self._database = database


def sqlite_migrator(url: URL | str) -> AsyncEngine:
    """Return an engine for migrations, whose every transaction holds SQLite's one write lock."""
    engine = create_async_engine(url, poolclass=NullPool, connect_args={"timeout": WAIT_SECONDS})
    write_ahead(engine.sync_engine)
    return engine


def postgres_migrator(url: URL) -> AsyncEngine:
    """Return an engine for migrations, whose statements may take as long as they need."""
    return create_async_engine(url, poolclass=NullPool, connect_args={"timeout": WAIT_SECONDS})


@asynccontextmanager
async def _connected(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    with translated():
        connection = await engine.connect()
    try:
        yield connection
    finally:
        # A task cancelled here must not leave its connection, and SQLite's lock with it, half closed.
        await asyncio.shield(asyncio.ensure_future(connection.close()))


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as exc:
        raise Misconfigured("LAMINA_DATABASE is not an SQLAlchemy URL") from exc
    if parsed.drivername not in {"sqlite+aiosqlite", "postgresql+asyncpg"}:
        raise Misconfigured(
            f"LAMINA_DATABASE names the driver {parsed.drivername!r}:"
            " use sqlite+aiosqlite or postgresql+asyncpg"
        )
    if parsed.drivername == "sqlite+aiosqlite" and parsed.database in {None, "", ":memory:"}:
        raise Misconfigured("LAMINA_DATABASE names no file: SQLite in memory keeps nothing it accepted")
    return parsed
