"""VectorStore port over the embedded store: the client of `lamina.sinks.edge_child`.

`open_edge` starts the child and ends it again; when the child dies, calls fail as `StoreUnavailable` and
the next call starts it anew, since what was acknowledged is on disk. `connect_edge` uses a running one.
"""

import asyncio
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import numpy as np

from lamina.sinks.children import Child, ChildEnded, start_child
from lamina.sinks.edge_pool import payload_of, pool_from_frame, query_header, question_to_frame
from lamina.sinks.edge_protocol import (
    DELETE_POINTS,
    EXIT_WRONG_MODEL,
    MAX_FRAME_BYTES,
    PRESENT_POINTS,
    SEARCH_QUERIES,
    UPSERT_POINTS,
    VECTOR_POINTS,
    MalformedFrame,
    pack,
    read_frame,
)
from lamina.streams.codec import Vector
from lamina.streams.errors import Misconfigured, StoreUnavailable, WrongDimension
from lamina.streams.ports import Hit, Point, PoolQuery, Query
from lamina.streams.recall.auto.pool import Pool

_READY_SECONDS = 60.0
"""A start after a crash replays the write-ahead log: about a second per 20,000 points."""
_CALL_SECONDS = 30.0
_CALLS_AT_ONCE = 64
"""Calls on their way at once; more wait their turn here, where they cost nothing."""
_SHORT_PREFIX = "lamina-"
_SOCKET_PATH_BYTES = 100
"""The system's limit is 104 to 108."""


T = TypeVar("T")


class EdgeStore:
    """The embedded store through its socket. Made by `open_edge` and `connect_edge`; one per event loop."""

    def __init__(self, socket: Path, model: str, dimension: int, launch: "_Launch | None" = None) -> None:
        self._socket = socket
        self._model = model
        self._dimension = dimension
        self._launch = launch
        self._child: Child | None = None
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()
        self._turns = asyncio.Semaphore(_CALLS_AT_ONCE)
        self._closed = False

    @property
    def child(self) -> Child | None:
        """The process that this store started, None where it only connects."""
        return self._child

    async def upsert(self, points: Sequence[Point]) -> None:
        """Insert or replace points by id; what was acknowledged before a fault stays.

        Raises:
            StoreUnavailable: not all acknowledged.
            WrongDimension: a vector does not have the store's dimension; nothing is written.
        """
        self._check(point.dense for point in points)
        self._check(point.summary for point in points if point.summary is not None)
        for batch in _batches(points, UPSERT_POINTS):
            summaries = {n: point.summary for n, point in enumerate(batch) if point.summary is not None}
            header = {
                "summarised": list(summaries),
                "ids": [str(point.id) for point in batch],
                "payloads": [payload_of(point) for point in batch],
            }
            vectors = [*(point.dense for point in batch), *summaries.values()]
            await self._call("upsert", header, _block(vectors))

    async def delete(self, ids: Collection[UUID]) -> None:
        """Delete points; unknown ids are ignored.

        Raises:
            StoreUnavailable: not all acknowledged.
        """
        for batch in _batches(list(ids), DELETE_POINTS):
            await self._call("delete", {"ids": [str(point_id) for point_id in batch]})

    async def search(self, queries: Sequence[Query]) -> list[list[Hit]]:
        """Answer each query with its nearest points, best first, ties by id.

        Raises:
            StoreUnavailable: the store does not answer.
            WrongDimension: a query's vector does not have the store's dimension.
        """
        self._check(query.dense for query in queries)
        answers: list[list[Hit]] = []
        for batch in _batches(queries, SEARCH_QUERIES):
            header = {"queries": [query_header(query) for query in batch]}
            reply = await self._call("search", header, _block([query.dense for query in batch]))
            answers += [[Hit(UUID(point_id), score) for point_id, score in hits] for hits in reply["hits"]]
        return answers

    async def pool(self, query: PoolQuery) -> Pool:
        """Return the turns that may answer a question, and what the strategy `auto` reads of them.

        The first question to a namespace in a while reads all of its turns: 6 ms for 200, 0.5 s for 20,000.

        Raises:
            StoreUnavailable: the store does not answer.
            WrongDimension: the question's vector does not have the store's dimension.
        """
        self._check([query.nearest.dense])
        return pool_from_frame(*await self._exchange("pool", *question_to_frame(query)))

    async def present(self, ids: Collection[UUID]) -> set[UUID]:
        """Return those of the ids that the store holds.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        held: set[UUID] = set()
        for batch in _batches(list(ids), PRESENT_POINTS):
            reply = await self._call("present", {"ids": [str(point_id) for point_id in batch]})
            held.update(UUID(point_id) for point_id in reply["ids"])
        return held

    async def vectors(self, ids: Collection[UUID]) -> dict[UUID, Vector]:
        """Return the `dense` vectors of those points that the store holds, of unit length.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        held: dict[UUID, Vector] = {}
        for batch in _batches(list(ids), VECTOR_POINTS):
            reply, block = await self._exchange("vectors", {"ids": [str(point_id) for point_id in batch]})
            rows = np.frombuffer(block, "<f4").reshape(len(reply["ids"]), self._dimension)
            held.update(zip(map(UUID, reply["ids"]), rows.astype(np.float32), strict=True))
        return held

    async def count(self) -> int:
        """Return the number of points.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        return int((await self._call("count", {}))["count"])

    async def close(self) -> None:
        """Close the connection and stop the child where this store started it; later calls fail."""
        self._closed = True
        async with self._connecting:
            if self._connection is not None:
                await self._connection.close()
            if self._child is not None:
                await self._child.stop()
            if self._launch is not None:
                self._launch.tidy(self._socket)

    async def start(self) -> None:
        """Start the child where this store owns one, and connect.

        Raises:
            StoreUnavailable: nothing answers at the socket.
            WrongDimension: the store was made with another model or dimension.
            Misconfigured: the child does not come up.
        """
        async with self._connecting:
            await self._connect()

    async def _call(self, op: str, header: Mapping[str, Any], block: bytes = b"") -> dict[str, Any]:
        reply, _ = await self._exchange(op, header, block)
        return reply

    async def _exchange(
        self, op: str, header: Mapping[str, Any], block: bytes = b""
    ) -> tuple[dict[str, Any], bytes]:
        async with self._turns:
            connection = self._connection
            if connection is None or not connection.open:
                async with self._connecting:
                    try:
                        connection = await self._connect()
                    except Misconfigured as exc:
                        raise StoreUnavailable(f"the store does not start again: {exc}") from exc
            return await connection.call(op, header, block)

    async def _connect(self) -> "_Connection":
        """Return the open connection, making one, and the child behind it, where there is none."""
        if self._closed:
            raise StoreUnavailable("the store is closed")
        if self._connection is not None and self._connection.open:
            return self._connection
        if self._launch is not None and (self._child is None or not self._child.alive):
            self._child = await self._launch.start(self._socket, self._model, self._dimension)
        try:
            reader, writer = await asyncio.open_unix_connection(self._socket, limit=MAX_FRAME_BYTES // 32)
        except OSError as exc:
            raise StoreUnavailable(f"no store answers at {self._socket}: {exc}") from exc
        connection = _Connection(reader, writer)
        try:
            await self._greet(connection)
        except BaseException:
            await connection.close()
            raise
        self._connection = connection
        return connection

    async def _greet(self, connection: "_Connection") -> None:
        about, _ = await connection.call("hello", {})
        if (about["model"], about["dimension"]) != (self._model, self._dimension):
            raise WrongDimension(
                f"the store at {self._socket} holds vectors of {about['model']} with dimension "
                f"{about['dimension']}, and {self._model} with dimension {self._dimension} was asked for: "
                "choose the embedder it was made with, or another store"
            )

    def _check(self, vectors: Iterable[Vector]) -> None:
        for vector in vectors:
            if vector.shape != (self._dimension,):
                raise WrongDimension(
                    f"a vector of shape {vector.shape} for a store of dimension {self._dimension}: "
                    "choose the embedder that the store was made with"
                )


async def open_edge(
    data_dir: Path, embedder_name: str, dimension: int, *, cache_mb: int = 512, warm_mb: int = 1024
) -> EdgeStore:
    """Start the store of a data folder as a child (`data_dir/store`) and connect to it.

    Call it from a loop in the main thread (`lamina.sinks.children.start_child` says why). The socket's path
    stands in `data_dir/run/store.address`; the log is `data_dir/logs/store.log`. The child keeps the turns of
    namespaces that were asked lately in at most `cache_mb` MB, and maps `warm_mb` MB of its files at the
    start.

    Raises:
        WrongDimension: the folder's store was made with another embedder or dimension.
        Misconfigured: the child does not come up; the message holds its log.
        StoreUnavailable: the child ended again at once.
    """
    launch = _Launch(data_dir, cache_mb, warm_mb)
    store = EdgeStore(launch.socket(), embedder_name, dimension, launch)
    try:
        await store.start()
    except BaseException:
        await store.close()
        raise
    return store


async def connect_edge(socket: Path, embedder_name: str, dimension: int) -> EdgeStore:
    """Connect to a running store by its socket.

    Raises:
        StoreUnavailable: nothing answers there.
        WrongDimension: that store was made with another embedder or dimension.
    """
    store = EdgeStore(socket, embedder_name, dimension)
    await store.start()
    return store


@dataclass(frozen=True, slots=True)
class _Launch:
    """How the child of one data folder is started."""

    data_dir: Path
    cache_mb: int
    warm_mb: int

    def socket(self) -> Path:
        """Return where the child will listen: in the data folder, or in a short one made for it."""
        usual = self.data_dir / "run" / "store.sock"
        if len(bytes(usual)) <= _SOCKET_PATH_BYTES:
            return usual
        return Path(tempfile.mkdtemp(prefix=_SHORT_PREFIX)) / "store.sock"

    async def start(self, socket: Path, model: str, dimension: int) -> Child:
        """Start the child and return when it listens."""
        child = await start_child(
            [
                *(sys.executable, "-P", "-m", "lamina.sinks.edge_child"),
                *("--socket", str(socket), "--data", str(self.data_dir / "store")),
                *("--dimension", str(dimension), "--model", model),
                *("--cache-mb", str(self.cache_mb), "--warm-mb", str(self.warm_mb)),
            ],
            name="store",
            data_dir=self.data_dir,
            log_path=self.data_dir / "logs" / "store.log",
            # Its products are small: threads that wait for each other by spinning cost four times the work.
            env={"OPENBLAS_NUM_THREADS": "1", **os.environ},
        )

        async def listens() -> bool:
            try:
                _, writer = await asyncio.open_unix_connection(socket)
            except OSError:
                return False
            writer.close()
            return True

        try:
            await child.ready(listens, _READY_SECONDS)
        except ChildEnded as exc:
            if exc.code == EXIT_WRONG_MODEL:
                raise WrongDimension(exc.tail.splitlines()[-1]) from exc
            raise
        (self.data_dir / "run" / "store.address").write_text(str(socket))
        return child

    def tidy(self, socket: Path) -> None:
        """Remove what was made for the socket."""
        socket.unlink(missing_ok=True)
        if socket.parent.name.startswith(_SHORT_PREFIX):
            shutil.rmtree(socket.parent, ignore_errors=True)


class _Connection:
    """One connection; calls share it and are told apart by their numbers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[tuple[dict[str, Any], bytes]]] = {}
        self.open = True
        self._listening = asyncio.create_task(self._listen())

    async def call(
        self, op: str, header: Mapping[str, Any], block: bytes = b""
    ) -> tuple[dict[str, Any], bytes]:
        """Send a request and return its answer: its fields and its block.

        Raises:
            StoreUnavailable: the connection broke, no answer came in time, or the store reports an error.
        """
        number = next(self._numbers)
        answered: asyncio.Future[tuple[dict[str, Any], bytes]] = asyncio.get_running_loop().create_future()
        # Where sending fails first, nobody awaits this one, and its fault is the same.
        answered.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting[number] = answered
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                if not self.open:
                    raise ConnectionResetError("closed meanwhile")
                self._writer.write(pack({**header, "id": number, "op": op}, block))
                await self._writer.drain()
                reply, vectors = await answered
        except TimeoutError as exc:
            raise StoreUnavailable(f"the store did not answer within {_CALL_SECONDS:g} s") from exc
        except (OSError, MalformedFrame) as exc:
            raise StoreUnavailable(f"the connection to the store broke: {exc}") from exc
        finally:
            del self._waiting[number]
        if "error" in reply:
            raise StoreUnavailable(f"the store could not {op}: {reply['error']}")
        return reply, vectors

    async def close(self) -> None:
        """Close the connection; calls that wait for an answer fail."""
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    async def _listen(self) -> None:
        fault: Exception = ConnectionResetError("the store closed it")
        try:
            while frame := await read_frame(self._reader):
                answered = self._waiting.get(frame[0]["id"])
                if answered is not None and not answered.done():
                    answered.set_result(frame)
        except (OSError, MalformedFrame) as exc:
            fault = exc
        finally:
            self.open = False
            self._writer.close()
            for answered in self._waiting.values():
                if not answered.done():
                    answered.set_exception(fault)


def _batches(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _block(vectors: Sequence[Vector]) -> bytes:
    return np.stack(vectors).astype("<f4").tobytes()
