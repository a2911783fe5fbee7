"""Connections to the tables: one engine that writes, one that reads, and one way to run a statement.

SQLite runs in WAL mode, so readers never wait for a writer, with `synchronous=FULL`: a commit returns
after the log is on the disk, so what was accepted survives a power loss too (NORMAL would survive
SIGKILL alone). A batch is one commit, so the cost is one fsync a batch. PostgreSQL's durability is its
server's setting (`synchronous_commit`, on by default).

SQLite is read from threads with a connection each: a statement is one hop to a thread and back. Through
aiosqlite it would be ten (execute, fetch, close, …), which cost a search more than SQLite itself.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable, Table, create_engine, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool, QueuePool

from lamina.sinks.tables_faults import translated
from lamina.streams.errors import Misconfigured, TablesUnavailable

T = TypeVar("T")

WAIT_SECONDS = 30.0
"""Longest wait for a lock, a connection or one statement; then the caller hears `TablesUnavailable`."""

IN_LIST = 10_000
"""Values per `IN (…)`: below the 32,766 parameters that SQLite and the 32,767 that PostgreSQL take."""

_READERS = 4
"""Reading connections to SQLite (a thread each): more would only share the same two or four cores."""

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
    """Reads of an SQLite file, each statement on a connection of the thread that is free."""

    def __init__(self, readers: "_SqliteReaders") -> None:
        self.postgres = False
        self._readers = readers

    async def run(self, statement: Executable, rows: Sequence[Mapping[str, Any]] | None = None) -> int:
        """Run a statement; return the rows that it changed: readers change none."""
        return await self._readers.call(lambda connection: connection.execute(statement, rows).rowcount)

    async def rows(
        self, statement: Executable, rows: Sequence[Mapping[str, Any]] | None = None
    ) -> Sequence[Any]:
        """Run a statement and return all it gives."""
        return await self._readers.call(lambda connection: connection.execute(statement, rows).all())

    async def given(self, statement: Executable, values: Mapping[str, Any]) -> Sequence[Any]:
        """Run a statement that was built beforehand with these values, and return all it gives."""
        return await self._readers.call(lambda connection: connection.execute(statement, values).all())

    async def scalar(self, statement: Executable) -> Any:
        """Run a statement and return the first column of its first row; None where it has none."""
        return await self._readers.call(lambda connection: connection.scalar(statement))


class _SqliteReaders:
    """Threads that read one SQLite file."""

    def __init__(self, url: URL) -> None:
        self.sync_engine = create_engine(
            url.set(drivername="sqlite+pysqlite"),
            poolclass=QueuePool,
            pool_size=_READERS,
            max_overflow=0,
            pool_timeout=WAIT_SECONDS,
            pool_reset_on_return=None,  # every statement stands for itself: there is nothing to roll back
            # A connection passes from thread to thread, never used by two at once.
            connect_args={"timeout": WAIT_SECONDS, "check_same_thread": False},
        )
        event.listen(self.sync_engine, "connect", _read_only)
        self._threads = ThreadPoolExecutor(_READERS, thread_name_prefix="sqlite-read")
        self._free = asyncio.Semaphore(_READERS)

    async def call(self, work: Callable[[Connection], T]) -> T:
        """Do work with a connection, in a thread.

        Raises:
            TablesUnavailable: all threads are busy for longer than anyone waits, or the readers are closed.
            Misconfigured: the file cannot be used.
        """
        await self._turn()
        try:
            done = asyncio.get_running_loop().run_in_executor(self._threads, self._connected, work)
        except RuntimeError as exc:
            self._free.release()
            raise TablesUnavailable("the tables are closed") from exc
        # Who is cancelled here leaves the thread at work: the next one's turn is when that has ended.
        done.add_done_callback(self._ended)
        with translated():
            return await asyncio.shield(done)

    async def close(self) -> None:
        """End the threads when what they do is done, and close the connections."""
        await asyncio.to_thread(self._threads.shutdown)
        self.sync_engine.dispose()

    async def _turn(self) -> None:
        if not self._free.locked():
            await self._free.acquire()  # at once
            return
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError as exc:
            raise TablesUnavailable(f"all readers of SQLite were busy for {WAIT_SECONDS:.0f} s") from exc

    def _connected(self, work: Callable[[Connection], T]) -> T:
        with self.sync_engine.connect() as connection:
            return work(connection)

    def _ended(self, done: asyncio.Future[Any]) -> None:
        self._free.release()
        if not done.cancelled():
            done.exception()  # heard already, or by nobody who still waits


class Database:
    """The engines of one database."""

    def __init__(self, url: str) -> None:
        """Prepare connections; none is opened before it is used.

        Raises:
            Misconfigured: not a URL of SQLite (a file, aiosqlite) or PostgreSQL (asyncpg).
        """
        parsed = _parse(url)
        self.postgres = parsed.get_backend_name() == "postgresql"
        if not self.postgres:
            self.writer = sqlite_writer(parsed)
            self._reader: _SqliteReaders | AsyncEngine = _SqliteReaders(parsed)
            # SQLite has one writer. Ours queue here, in order; only other processes poll for the file's lock.
            self._turn: asyncio.Lock | None = asyncio.Lock()
        else:
            self.writer = create_async_engine(
                parsed,
                pool_size=_POOL,
                max_overflow=_POOL,
                pool_timeout=WAIT_SECONDS,
                pool_pre_ping=True,  # a restarted server costs the next caller a reconnect, not an error
                connect_args={"timeout": WAIT_SECONDS, "command_timeout": WAIT_SECONDS},
            )
            self._reader = self.writer.execution_options(isolation_level="AUTOCOMMIT")
            self._turn = None

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Statements]:
        """Give a connection that sees committed rows, each statement those of its own moment."""
        if isinstance(self._reader, _SqliteReaders):
            yield _Threaded(self._reader)
            return
        async with _connected(self._reader) as connection:
            yield Statements(connection)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Statements]:
        """Give a connection in a transaction: commits at the end, rolls back on any exception."""
        await self._queue()
        try:
            async with _connected(self.writer) as connection:
                with translated():
                    transaction = await connection.begin()
                yield Statements(connection)
                with translated():
                    await transaction.commit()
                # Left by an exception, the connection's close rolls back.
        finally:
            if self._turn is not None:
                self._turn.release()

    async def close(self) -> None:
        """Close all connections."""
        if isinstance(self._reader, _SqliteReaders):
            await self._reader.close()
        await self.writer.dispose()

    async def _queue(self) -> None:
        if self._turn is None:
            return
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._turn.acquire()
        except TimeoutError as exc:
            raise TablesUnavailable(f"another writer has held SQLite for {WAIT_SECONDS:.0f} s") from exc


class Opened:
    """An open database: what every part of the tables shares."""

    def __init__(self, database: Database) -> None:
        self._database = database


def sqlite_writer(url: URL | str) -> AsyncEngine:
    """Return an engine whose every transaction holds SQLite's one write lock from its first statement."""
    engine = create_async_engine(
        url,
        pool_size=1,
        max_overflow=0,
        pool_timeout=WAIT_SECONDS,
        connect_args={"timeout": WAIT_SECONDS},
    )

    @event.listens_for(engine.sync_engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        # SQLAlchemy's recipe for SQLite: the driver's own implicit BEGIN is off, ours is explicit.
        connection.isolation_level = None
        _pragmas(connection, "journal_mode=WAL", "synchronous=FULL")

    @event.listens_for(engine.sync_engine, "begin")
    def _begin(connection: Connection) -> None:
        # A deferred transaction that turns to writing fails at once when another wrote meanwhile.
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def postgres_migrator(url: URL) -> AsyncEngine:
    """Return an engine for migrations, whose statements may take as long as they need."""
    return create_async_engine(url, poolclass=NullPool, connect_args={"timeout": WAIT_SECONDS})


def _read_only(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    _pragmas(connection, "query_only=ON")


def _pragmas(connection: Any, *pragmas: str) -> None:
    cursor = connection.cursor()
    for pragma in pragmas:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


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
