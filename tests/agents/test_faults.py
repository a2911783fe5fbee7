"""What breaks in the middle: a child, a crash between two writes, a client that stops talking."""

import asyncio
import os
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import psutil
import pytest
from fastapi import FastAPI

from lamina.agents import http_server
from lamina.agents.app import build_app
from lamina.agents.connection import _running_url
from lamina.agents.demo import sample
from lamina.agents.embed import embed_step
from lamina.agents.embedded import embedded
from lamina.agents.folders import folders_of
from lamina.agents.gate import gate_step
from lamina.agents.guard import Step
from lamina.agents.intake import intake_step
from lamina.agents.process import Ending, _told_of_crash, unless_ended
from lamina.agents.recovery import republish_unfinished
from lamina.agents.remember import remember_step
from lamina.query.client import Client
from lamina.sinks.children import identity
from lamina.sinks.dead_letters import DeadLetters, Source
from lamina.sinks.in_memory import FixedClock, HashEmbedder, InMemoryMetrics, InMemoryPublisher, InMemoryStore
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.outbox import relay
from lamina.sinks.publisher import _check_size
from lamina.sinks.qdrant_edge import EdgeStore
from lamina.sinks.tables import open_tables
from lamina.streams import flow
from lamina.streams.codec import decode
from lamina.streams.errors import Fatal
from lamina.streams.facts import replaces
from lamina.streams.identity import turn_id_from_message
from lamina.streams.namespace import Namespace, namespace_of
from lamina.streams.placement import arrive, place
from lamina.streams.ports import Outgoing, Query
from lamina.streams.records import Command, Placement, Turn
from lamina.streams.settings import Settings
from lamina.streams.steps.carry_out import carry_out
from lamina.streams.steps.embed import embed
from lamina.streams.steps.gate import gate
from lamina.streams.steps.index import PAGE, index, sweep
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.remember import RecurrenceCache, remember
from lamina.streams.topics import ADMITTED, CONSOLIDATION, EMBEDDED, TURNS, Topic, full_name

from .dump import differences, dump
from .test_restart import by_session, lamina_up, send, wait_for

NOW = datetime(2026, 8, 1, tzinfo=UTC)
ADA, BEN = namespace_of("acme", "ada"), namespace_of("acme", "ben")
KIND, TEXT, VISIBLE = 1, 7, 21
"""Columns of `dump`'s units."""
BEES = "I keep bees behind the old barn"


# --- children ------------------------------------------------------------------------------------------


@pytest.mark.broker
async def test_a_killed_store_loses_no_turn_and_doubles_none(tmp_path: Path, weights_cache: Path) -> None:
    settings = Settings(data_dir=str(tmp_path), cache_dir=str(weights_cache), http_port=0)
    async with embedded(settings) as running, Client(running.url) as client:
        turns, ports = sample().turns[:80], running.outside.ports
        events = [event for session in by_session(turns) for event in await send(client, session)]
        while (await ports.tables.tally()).turns["remembered"] < 10:
            await asyncio.sleep(0.01)
        assert isinstance(ports.store, EdgeStore)
        os.kill(ports.store.child.pid, signal.SIGKILL)
        await wait_for(client, events)
        async with asyncio.timeout(30):
            while await ports.tables.dirty_namespaces(1):
                await asyncio.sleep(0.1)
        units = dump(tmp_path / "lamina.db")["units"]
        shown = {row[0] for row in units if row[VISIBLE]}
        nora, (vector,) = namespace_of("local", "nora"), await ports.embedder.embed(["Nora"])
        (hits,) = await ports.store.search([Query(nora, vector, ("turn", "episode", "fact"), 500)])
    assert Counter(row[TEXT] for row in units if row[KIND] == "turn") == Counter(t.content for t in turns)
    assert len(shown) > 20
    assert sorted(hit.id.hex for hit in hits) == sorted(UUID(str(key)).hex for key in shown)


@pytest.mark.broker
async def test_a_killed_broker_ends_the_process_and_the_next_start_finishes_every_accepted_turn(
    tmp_path: Path, weights_cache: Path
) -> None:
    turns = sample().turns[:60]
    async with lamina_up(tmp_path) as (process, url), Client(url) as client:
        events = [event for session in by_session(turns) for event in await send(client, session)]
        children = psutil.Process(process.pid).children(recursive=True)
        (broker,) = [child for child in children if "--storage-engine" in child.cmdline()]
        broker.kill()
        async with asyncio.timeout(25):
            said = await process.stdout.read()
            assert await process.wait() == 1
        assert b"lamina: the embedded broker ended: start again" in said
    async with lamina_up(tmp_path) as (process, url), Client(url) as client:
        await wait_for(client, events)
    kept = [row[TEXT] for row in dump(tmp_path / "lamina.db")["units"] if row[KIND] == "turn"]
    assert Counter(kept) == Counter(turn.content for turn in turns)


# --- a crash between two writes --------------------------------------------------------------------------


class Crash(BaseException):
    """The process is gone: nothing after this point happened."""


@dataclass
class Fuse:
    """Counts the writes of a run, by name; blows after the one it is set to."""

    blows_after: tuple[str, int] | None = None
    step: str = ""
    writes: Counter[str] = field(default_factory=Counter)

    def burn(self, write: str) -> None:
        name = f"{self.step}: {write}"
        self.writes[name] += 1
        if (name, self.writes[name]) == self.blows_after:
            raise Crash(name)


class Fused:
    """A port whose writes burn a fuse once they are done."""

    def __init__(self, port, fuse: Fuse, writes: dict[str, str]) -> None:
        self._port, self._fuse, self._writes = port, fuse, writes

    def __getattr__(self, name: str):
        found = getattr(self._port, name)
        if name not in self._writes:
            return found

        async def write(*args):
            answer = await found(*args)
            self._fuse.burn(self._writes[name])
            return answer

        return write


class FusedTables(Fused):
    @asynccontextmanager
    async def transaction(self, namespaces):
        async with self._port.transaction(namespaces) as tx:
            yield tx
        self._fuse.burn("commit")


class Log:
    """A broker whose log is in memory: gone after a crash."""

    def __init__(self) -> None:
        self.records: list[tuple[int, Outgoing]] = []

    async def publish(self, records: Sequence[Outgoing]) -> None:
        self.records += [(len(self.records) + n, record) for n, record in enumerate(records)]

    def take(self, topic, limit: int) -> list[SimpleNamespace]:
        taken = [each for each in self.records if each[1].topic is topic][:limit]
        self.records = [each for each in self.records if each not in taken]
        return [
            SimpleNamespace(
                topic=full_name(topic, "lamina"),
                partition=0,
                offset=offset,
                timestamp=NOW.timestamp(),
                key=record.key.encode(),
                value=record.value,
                headers=record.headers,
            )
            for offset, record in taken
        ]


async def run(ports: Ports, fuse: Fuse) -> None:
    """Do what an embedded process does from its start until nothing waits."""
    log = Fused(Log(), fuse, {"publish": "publish"})
    cache = RecurrenceCache(1000)
    steps: tuple[tuple[Topic, Step[Any]], ...] = (
        (TURNS, gate_step(ports, log)),
        (ADMITTED, embed_step(ports, log)),
        (EMBEDDED, remember_step(ports, cache, lambda: None)),
        (CONSOLIDATION, intake_step(ports, lambda _: None)),
    )
    fuse.step = "recovery"
    await republish_unfinished(ports.tables, log)
    busy = True
    while busy:
        busy = False
        for topic, step in steps:
            fuse.step = step.name
            if messages := log.take(topic, 7):
                await step.handle([step.decode(message) for message in messages])
                busy = True
        fuse.step = "outbox"
        busy = bool(await relay(ports.tables, log)) or busy
        fuse.step = "consolidate"
        while claim := await ports.tables.claim(str(uuid4()), NOW, 60):
            await carry_out(claim, ports, replaces)
    fuse.step = "sweep"
    await sweep(ports)


def arriving(turns: Sequence[Turn], namespace: Namespace) -> list[Placement]:
    return [
        arrive(namespace, turn, fallback_id=turn_id_from_message(namespace, turn.message_id), received_at=NOW)
        for turn in turns
    ]


@asynccontextmanager
async def fresh_ports(database: Path, **chosen) -> AsyncIterator[Ports]:
    settings = Settings(theta_sim=0.5, theta_count=2, merge_size=2).model_copy(update=chosen)
    tables = await open_tables(f"sqlite+aiosqlite:///{database}")
    try:
        yield Ports(
            settings,
            tables,
            InMemoryStore(),
            HashEmbedder(),
            ExtractiveEngine(),
            FixedClock(NOW),
            InMemoryMetrics(),
        )
    finally:
        await tables.close()


def fused(ports: Ports, fuse: Fuse) -> Ports:
    tables = {"published": "delete", "admit_commands": "admit", "claim": "claim"}
    store = {"upsert": "upsert", "delete": "delete"}
    return replace(
        ports, tables=FusedTables(ports.tables, fuse, tables), store=Fused(ports.store, fuse, store)
    )


def bees(number: int) -> list[Turn]:
    """An exchange that recurs, and whose reply is gated: done before its exchange is."""
    common = {"run_id": "bees", "timestamp": NOW + timedelta(minutes=number)}
    return [
        Turn(role="user", content=f"{BEES} {number}", message_id=f"bees {number}", **common),
        Turn(role="assistant", content="Wow, cool!", message_id=f"cool {number}", **common),
    ]


async def accepted(database: Path) -> None:
    """Accept the turns of two users, as HTTP does before it answers."""
    told = sample().turns[:16]
    turns = [turn for number in range(0, 16, 4) for turn in (*bees(number), *told[number : number + 4])]
    pairs = zip(arriving(turns, ADA), arriving(turns[8:] + turns[:8], BEN), strict=True)
    async with fresh_ports(database) as ports, ports.tables.transaction([ADA, BEN]) as tx:
        await place(tx, [each for pair in pairs for each in pair])


async def until_done(
    database: Path, blows_after: tuple[str, int] | None = None
) -> tuple[Counter[str], object]:
    """Run until all is done, starting again where the fuse blows; return the writes and the points."""
    async with fresh_ports(database) as ports:
        fuse = Fuse(blows_after)
        try:
            await run(fused(ports, fuse), fuse)
        except Crash:
            await run(ports, Fuse())
        else:
            assert blows_after is None, f"{blows_after} never came"
        assert isinstance(ports.store, InMemoryStore)
        return fuse.writes, sorted(str(key) for key in ports.store._homes)


POINTS = (
    "gate: commit",
    "gate: publish",
    "embed: publish",
    "remember: commit",
    "remember: upsert",
    "outbox: publish",
    "outbox: delete",
    "intake: admit",
    "consolidate: claim",
    "consolidate: commit",
    "consolidate: upsert",
    "consolidate: delete",
)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory):
    """A database of accepted turns, and the writes, the tables and the points of a run without a crash."""
    folder = tmp_path_factory.mktemp("undisturbed")
    asyncio.run(accepted(folder / "accepted.db"))
    shutil.copy(folder / "accepted.db", folder / "lamina.db")
    writes, points = asyncio.run(until_done(folder / "lamina.db"))
    return folder / "accepted.db", writes, dump(folder / "lamina.db"), points


def test_every_write_of_a_run_is_a_point_of_a_crash(undisturbed) -> None:
    _, writes, found, _ = undisturbed
    assert {name for name in writes if not name.startswith(("recovery", "sweep"))} == set(POINTS)
    assert {row[KIND] for row in found["units"]} == {"turn", "episode", "fact"}


@pytest.mark.parametrize("point", POINTS)
async def test_a_crash_after_any_write_leaves_the_memory_of_a_run_without_one(
    tmp_path: Path, undisturbed, point: str
) -> None:
    before, writes, expected, points = undisturbed
    middle = (writes[point] + 1) // 2
    for occurrence in {1, middle} if point.endswith("commit") else {middle}:
        database = tmp_path / f"{occurrence}.db"
        shutil.copy(before, database)
        _, found = await until_done(database, (point, occurrence))
        assert differences(expected, dump(database)) == [], f"after {point}, number {occurrence}"
        assert found == points


# --- users beside each other -----------------------------------------------------------------------------


async def test_users_interleaved_in_one_batch_get_what_they_get_alone(tmp_path: Path) -> None:
    turns = sample().turns[:48]
    users = (arriving(turns, ADA), arriving(turns[::-1], BEN))
    alone: dict[str, list[tuple[object, ...]]] = {}
    for number, placements in enumerate(users):
        async with fresh_ports(tmp_path / f"{number}.db") as ports:
            await flow.run(placements, ports, replaces)
        for name, rows in dump(tmp_path / f"{number}.db").items():
            alone[name] = alone.get(name, []) + rows
    async with fresh_ports(tmp_path / "together.db") as ports:
        mixed = [each for pair in zip(*users, strict=True) for each in pair]
        await flow.run(mixed, ports, replaces)
    together = dump(tmp_path / "together.db")
    assert differences(alone, together) == []
    assert len({row[1] for row in together["commands"]}) == 2


def said(*texts: str, start: int = 0, namespace: Namespace = ADA) -> list[Placement]:
    turns = [
        Turn(
            role="user" if number % 2 == 0 else "assistant",
            content=text,
            message_id=str(number),
            run_id="one",
            timestamp=NOW + timedelta(minutes=number),
        )
        for number, text in enumerate(texts, start=start)
    ]
    return arriving(turns, namespace)


async def through(placements: list[Placement], ports: Ports, cache: RecurrenceCache) -> None:
    judged = await gate(placements, ports)
    await remember(await embed(judged.forwarded, ports), ports, cache)


@pytest.mark.parametrize("meanwhile", [True, False])
async def test_exchanges_that_join_a_thread_while_its_engine_works_stay_in_it(
    tmp_path: Path, meanwhile: bool
) -> None:
    later = said(f"{BEES} with honey", f"{BEES} with honey", start=4)
    async with fresh_ports(tmp_path / "lamina.db", merge_size=4, gate_enabled=False) as ports:
        cache = RecurrenceCache(1000)

        class Slow(ExtractiveEngine):
            async def consolidate(self, claim, cluster, related):
                if meanwhile:
                    await through(later, ports, cache)
                return await super().consolidate(claim, cluster, related)

        await through(said(BEES, BEES, BEES, BEES), ports, cache)
        rows = await ports.tables.outbox(100)
        orders = [decode(Command, row.record.value) for row in rows if row.record.topic is CONSOLIDATION]
        await ports.tables.admit_commands(orders)
        claim = await ports.tables.claim("executor", NOW, 60)
        assert (await carry_out(claim, replace(ports, engine=Slow()), replaces)).state == "applied"
        if not meanwhile:
            await through(later, ports, cache)
        thread = await ports.tables.thread(ADA, claim.command.thread)
        assert (thread.members, len(thread.heads)) == (3, 1)


async def test_a_rebuild_of_the_index_never_holds_the_lock_for_more_than_a_page(tmp_path: Path) -> None:
    class Counting(InMemoryStore):
        largest = 0

        async def upsert(self, points) -> None:
            self.largest = max(self.largest, len(points))
            await super().upsert(points)

    async with fresh_ports(tmp_path / "lamina.db", gate_enabled=False) as ports:
        users = [namespace_of("acme", str(number)) for number in range(6)]
        for user in users:
            texts = [f"note {number} about the garden" for number in range(100)]
            await through(said(*texts, namespace=user), ports, RecurrenceCache(10_000))
        marked = await ports.tables.mark_for_index()
        store = Counting()
        assert await index(users, {}, replace(ports, store=store)) == marked >= 600
        assert store.largest <= PAGE
        assert await ports.tables.dirty_namespaces(1) == []


# --- poison, and what stops talking ----------------------------------------------------------------------


async def test_a_record_larger_than_any_topic_takes_is_dead_lettered_by_its_beginning() -> None:
    class Strict(InMemoryPublisher):
        async def publish(self, records) -> None:
            for record in records:
                _check_size(record)
            await super().publish(records)

    publisher = Strict()
    source = Source("lamina.turns", 0, 7, b"k" * 5_000_000, b"v" * 20_000_000, (("h", b"x" * 9_000_000),))
    await DeadLetters(publisher, InMemoryMetrics()).bury(
        source, step="gate", reason="invalid_turn", detail=""
    )
    (letter,) = publisher.records
    assert letter.headers["source-bytes"] == b"20000000"
    assert source.value.startswith(letter.value)
    assert len(letter.value) > 1_000_000


async def test_a_client_that_never_ends_its_request_does_not_hold_the_shutdown(monkeypatch) -> None:
    monkeypatch.setattr(http_server, "GRACE_SECONDS", 1)
    api = FastAPI()

    @api.post("/")
    async def read(body: dict[str, str]) -> dict[str, str]:
        return body

    async with http_server.serving(api, http_server.bind("127.0.0.1", 0)) as url:
        host, port = url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
        )
        await writer.drain()
        await asyncio.sleep(0.2)
        started = perf_counter()
    assert perf_counter() - started < 4
    writer.close()


async def test_the_address_of_a_killed_system_is_not_taken_for_another_one(tmp_path: Path) -> None:
    api = FastAPI()

    @api.get("/health/live")
    async def live() -> str:
        return "ok"

    folders = folders_of(Settings(data_dir=str(tmp_path)))
    folders.address_file.parent.mkdir()
    async with http_server.serving(api, http_server.bind("127.0.0.1", 0)) as url:
        owner = await identity(os.getpid())
        for left, expected in (
            (f"{url}\n{os.getpid()}\n{owner}\n", url),
            (f"{url}\n{os.getpid()}\nanother boot:1\n", None),
            (url, None),
        ):
            folders.address_file.write_text(left)
            assert await _running_url(folders) == expected


async def test_a_command_ends_with_the_fault_that_its_system_ended_with() -> None:
    ending = Ending()
    asyncio.get_running_loop().call_later(0.05, ending.of, Fatal("the embedded broker ended"))
    with pytest.raises(Fatal, match="broker ended"):
        async with asyncio.timeout(5), unless_ended(ending):
            await asyncio.Event().wait()


async def test_a_faust_app_that_stops_by_itself_ends_the_process() -> None:
    ending = Ending()
    crashed = SimpleNamespace(should_stop=True, crash_reason=RuntimeError("no consumer"))
    await _told_of_crash(crashed, ending)
    assert ending.told.is_set()
    assert "no consumer" in str(ending.fault)


def test_a_worker_writes_nothing_into_the_folder_it_is_started_in(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    build_app("ingest", "127.0.0.1:1", Settings())._create_directories()
    assert list(tmp_path.iterdir()) == []
