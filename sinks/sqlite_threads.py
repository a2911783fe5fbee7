"""SQLite in threads of its own: a statement is one hop to a thread and back.

Through aiosqlite it would be four to ten (cursor, execute, fetch, close, …), which cost more than SQLite:
to place one turn took 28 hops. aiosqlite is left to the migrations, which Alembic runs over an async engine.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import QueuePool

from lamina.sinks.tables_faults import translated
from lamina.streams.errors import TablesUnavailable

T = TypeVar("T")

READERS = 4
"""Reading connections (a thread each): more would only share the same two or four cores."""


class Readers:
    """Threads that read one SQLite file, each statement on a connection of the thread that is free."""

    def __init__(self, url: URL, wait_seconds: float) -> None:
        """Prepare connections; none is opened before it is used.

        Args:
            url: of the file.
            wait_seconds: longest wait for a thread, or for a lock of the file.
        """
        self.sync_engine = _engine(url, READERS, wait_seconds)
        event.listen(self.sync_engine, "connect", _read_only)
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="sqlite-read")
        self._free = asyncio.Semaphore(READERS)
        self._wait_seconds = wait_seconds

    async def call(self, work: Callable[[Connection], T]) -> T:
        """Do work with a connection, in a thread.

        Raises:
            TablesUnavailable: all threads are busy for longer than anyone waits, or the readers are closed.
            Misconfigured: the file cannot be used.
        """
        await self._turn()
        try:
            done = _submitted(self._threads, lambda: self._connected(work))
        except TablesUnavailable:
            self._free.release()
            raise
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
            async with asyncio.timeout(self._wait_seconds):
                await self._free.acquire()
        except TimeoutError as exc:
            late = f"all readers of SQLite were busy for {self._wait_seconds:.0f} s"
            raise TablesUnavailable(late) from exc

    def _connected(self, work: Callable[[Connection], T]) -> T:
        with self.sync_engine.connect() as connection:
            return work(connection)

    def _ended(self, done: asyncio.Future[Any]) -> None:
        self._free.release()
        if not done.cancelled():
            done.exception()  # heard already, or by nobody who still waits


class Writer:
    """The one thread that writes an SQLite file, in one transaction at a time: its callers keep turns."""

    def __init__(self, url: URL, wait_seconds: float) -> None:
        """Prepare a connection; it is opened by the first transaction.

        Args:
            url: of the file.
            wait_seconds: longest wait for the file's lock.
        """
        self.sync_engine = _engine(url, 1, wait_seconds)
        write_ahead(self.sync_engine)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite-write")
        self._connection: Connection | None = None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Begin a transaction; commit it at the end, roll it back on any exception.

        Raises:
            TablesUnavailable: the file stays locked, or the writer is closed.
            Misconfigured: the file cannot be used.
        """
        committed = False
        try:
            await self._hop(self._begin)
            yield
            await self._hop(self._commit)
            committed = True
        finally:
            if not committed:
                # Whatever a cancelled caller left in the thread is done before this, in order.
                await asyncio.shield(asyncio.ensure_future(self._hop(self._end)))

    async def call(self, work: Callable[[Connection], T]) -> T:
        """Do work in the open transaction.

        Raises:
            TablesUnavailable: the database gave up.
            Misconfigured: the file cannot be used.
        """
        return await self._hop(lambda: work(self._open()))

    async def close(self) -> None:
        """End the thread when what it does is done, and close the connection."""
        await asyncio.to_thread(self._thread.shutdown)
        self.sync_engine.dispose()

    async def _hop(self, work: Callable[[], T]) -> T:
        with translated():
            return await _submitted(self._thread, work)

    def _begin(self) -> None:
        self._connection = self.sync_engine.connect()
        self._connection.begin()

    def _commit(self) -> None:
        self._open().commit()
        self._end()

    def _end(self) -> None:
        """Close the connection; what is not committed is rolled back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> Connection:
        if self._connection is None:
            raise TablesUnavailable("the transaction has ended")
        return self._connection


def write_ahead(engine: Engine) -> None:
    """Let an engine's every transaction hold SQLite's one write lock from its first statement.

    The file is switched to WAL, so readers never wait for a writer, with `synchronous=FULL`: a commit returns
    after the log is on the disk, so what was accepted survives a power loss too (NORMAL would survive
    SIGKILL alone).
    """
    event.listen(engine, "connect", _write_ahead)
    event.listen(engine, "begin", _begin_immediate)


def _engine(url: URL, connections: int, wait_seconds: float) -> Engine:
    return create_engine(
        url.set(drivername="sqlite+pysqlite"),
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=wait_seconds,
        # A connection passes from thread to thread, never used by two at once.
        connect_args={"timeout": wait_seconds, "check_same_thread": False},
    )


def _submitted(threads: ThreadPoolExecutor, work: Callable[[], T]) -> asyncio.Future[T]:
    try:
        done: Future[T] = threads.submit(work)
    except RuntimeError as exc:
        raise TablesUnavailable("the tables are closed") from exc
    return asyncio.wrap_future(done)


def _write_ahead(connection: Any, _record: Any) -> None:
    # SQLAlchemy's recipe for SQLite: the driver's own implicit BEGIN is off, ours is explicit.
    connection.isolation_level = None
    _pragmas(connection, "journal_mode=WAL", "synchronous=FULL")


def _begin_immediate(connection: Connection) -> None:
    # A deferred transaction that turns to writing fails at once when another wrote meanwhile.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _read_only(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    _pragmas(connection, "query_only=ON")


def _pragmas(connection: Any, *pragmas: str) -> None:
    cursor = connection.cursor()
    for pragma in pragmas:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
