"""How long a search takes through HTTP, its question's embedding included, and how many a second there are.

The service runs in a process of its own; who measures shares its machine. The client writes and reads plain
HTTP/1.1 over one kept connection, so that little of what is measured is its own; how little is measured, too,
by asking `/health/live`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from time import perf_counter
from urllib.parse import urlsplit

import numpy as np
import orjson

from lamina.streams.errors import Fatal
from lamina.streams.ports import Embedder

WARMING = 30
"""Requests before the clock counts, of each row."""
ROW_SECONDS = 60.0
"""After so long no row asks any more, however slow its strategy; `n` says how many were answered."""


class Unexpected(Fatal):
    """The service did not answer a request of the benchmark with success."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What one row of requests took."""

    strategy: str
    units: int
    """Of the namespace that was asked; 0 where none was."""
    clients: int
    seconds: tuple[float, ...]
    """Of each request, as its client saw it."""
    wall: float
    """From the first request's begin to the last one's end, in seconds."""
    stages: Mapping[str, tuple[float, ...]]
    """Milliseconds of each request by stage, as the service told them."""

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.seconds) / self.wall


@dataclass(frozen=True, slots=True)
class Row:
    """One row to measure."""

    strategy: str
    units: int
    users: Sequence[str]
    clients: int
    questions: Sequence[str]
    """As many requests; asked in turn of the users, whose order is drawn."""


async def measure_floor(url: str, count: int) -> Taken:
    """Time `GET /health/live`, which touches nothing: what HTTP and the client cost by themselves."""
    async with _connection(url) as connection:
        for _ in range(WARMING):
            await connection.get("/health/live")
        begun = perf_counter()
        seconds = []
        for _ in range(count):
            before = perf_counter()
            await connection.get("/health/live")
            seconds.append(perf_counter() - before)
        return Taken("/health/live", 0, 1, tuple(seconds), perf_counter() - begun, {})


async def measure(url: str, row: Row, told: Callable[[int], None] = lambda _: None) -> Taken:
    """Ask the questions of a row, each once, from as many clients as it names, each over its own connection.

    Every request takes ten results and asks for the timings. Some questions are asked before the clock runs.

    Args:
        url: of the service.
        row: what to ask of whom.
        told: of each answered request.

    Raises:
        Unexpected: the service answers with an error, or not as it should.
    """
    chance = np.random.default_rng(2)
    users = cycle([row.users[place] for place in chance.permutation(len(row.users))])
    bodies = [
        orjson.dumps(
            {"query": text, "user_id": next(users), "strategy": row.strategy, "include": ["timings"]}
        )
        for text in row.questions
    ]
    seconds: list[float] = []
    stages: list[dict[str, float]] = []

    async def ask(connection: _Connection, waiting: Iterator[bytes]) -> None:
        for body in waiting:
            before = perf_counter()
            if before - begun > ROW_SECONDS:
                return
            answer = await connection.post("/v1/memories/search", body)
            seconds.append(perf_counter() - before)
            stages.append(orjson.loads(answer)["timings"])
            told(1)

    async with _connections(url, row.clients) as connections:
        for body in bodies[:WARMING]:
            await connections[0].post("/v1/memories/search", body.replace(b"?", b"?!", 1))
        shared = iter(bodies)
        begun = perf_counter()
        await asyncio.gather(*(ask(connection, shared) for connection in connections))
        wall = perf_counter() - begun
    if not seconds:
        raise Unexpected(f"no request of {row.strategy} was answered within {ROW_SECONDS:g} s")
    names = list(dict.fromkeys(name for each in stages for name in each))
    by_stage = {name: tuple(each.get(name, 0.0) for each in stages) for name in names}
    return Taken(row.strategy, row.units, row.clients, tuple(seconds), wall, by_stage)


async def embedder_rate(embedder: Embedder, questions: Sequence[str]) -> float:
    """Return how many questions a second the embedder takes at batch 1: one after another, one caller."""
    for text in questions[:WARMING]:
        await embedder.embed([text])
    begun = perf_counter()
    for text in questions:
        await embedder.embed([text])
    return len(questions) / (perf_counter() - begun)


class _Connection:
    """One kept HTTP/1.1 connection, one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader = reader
        self._writer = writer
        self._host = host.encode()

    async def get(self, path: str) -> bytes:
        return await self._exchange(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path.encode(), self._host))

    async def post(self, path: str, body: bytes) -> bytes:
        return await self._exchange(
            b"POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (path.encode(), self._host, len(body), body)
        )

    async def _exchange(self, request: bytes) -> bytes:
        self._writer.write(request)
        try:
            status, *headers = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
            lengths = [int(header[15:]) for header in headers if header[:15].lower() == b"content-length:"]
            body = await self._reader.readexactly(lengths[0]) if lengths else b""
        except (OSError, asyncio.IncompleteReadError) as exc:
            raise Unexpected(f"the service broke off: {exc}") from exc
        if status.split(b" ")[1] != b"200":
            raise Unexpected(f"{status.decode()}: {body.decode()}")
        return body


@asynccontextmanager
async def _connection(url: str) -> AsyncIterator[_Connection]:
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        yield _Connection(reader, writer, where.netloc)
    finally:
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def _connections(url: str, count: int) -> AsyncIterator[list[_Connection]]:
    if not count:
        yield []
        return
    async with _connection(url) as first, _connections(url, count - 1) as others:
        yield [first, *others]
