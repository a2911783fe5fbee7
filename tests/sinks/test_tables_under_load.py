"""Many writers, killed writers, lost servers: nothing committed is lost and nobody waits for ever."""

import asyncio
import contextlib
import os
import signal
import socket
import sqlite3
import sys
from itertools import permutations
from uuid import UUID

import pytest

from lamina.sinks import database
from lamina.sinks.tables import open_tables
from lamina.streams.errors import Misconfigured, TablesUnavailable
from lamina.streams.namespace import Namespace

from .tables_kit import ANN, BOB, NOW, a_turn, insert

WRITER = """
import asyncio, sys
from datetime import UTC, datetime
from uuid import uuid4
from lamina.sinks.tables import open_tables
from lamina.streams.records import Unit

async def main():
    tables = await open_tables(sys.argv[1])
    while True:
        async with tables.transaction(["acme/ann"]) as transaction:
            first = await transaction.advance("acme/ann", 3)
            units = [
                Unit(id=uuid4(), namespace="acme/ann", kind="turn", session="s", ordinal=n, position=n,
                     text="x", said_at=datetime.now(UTC), recorded_at=datetime.now(UTC))
                for n in range(first, first + 3)
            ]
            await transaction.insert_units(units)
        print(*(unit.id for unit in units), flush=True)

asyncio.run(main())
"""


async def test_overlapping_transactions_do_not_deadlock(tables):
    names = [Namespace(f"acme/u{n}") for n in range(3)]

    async def write(order) -> None:
        for _ in range(5):
            async with tables.transaction(order) as transaction:
                for name in order:
                    await transaction.advance(name, 1)
                    await asyncio.sleep(0)

    async with asyncio.timeout(60):
        await asyncio.gather(*(write(order) for order in permutations(names)))
    async with tables.transaction(names) as transaction:
        assert [await transaction.position(name) for name in names] == [30, 30, 30]


async def test_eight_writers_give_every_change_its_own_number(database_url):
    pools = [await open_tables(database_url) for _ in range(2)]  # as two processes would
    numbers: list[int] = []

    async def write(tables) -> None:
        for _ in range(5):
            async with tables.transaction([ANN]) as transaction:
                changes = await transaction.record_changes([(a_turn(), "created")] * 3, NOW)
            numbers.extend(change.seq for change in changes)

    await asyncio.gather(*(write(pools[n % 2]) for n in range(8)))
    assert sorted(numbers) == list(range(1, 8 * 5 * 3 + 1))
    assert len(await pools[0].outbox(1_000)) == len(numbers)
    for tables in pools:
        await tables.close()


async def test_readers_do_not_wait_for_a_writer(tables):
    turn = a_turn()
    async with asyncio.timeout(5), tables.transaction([ANN]) as transaction:
        await transaction.insert_units([turn])
        assert await tables.units(ANN, [turn.id]) == {}
        await tables.tally()
        await tables.check()
    assert await tables.units(ANN, [turn.id]) == {turn.id: turn}


async def test_a_cancelled_writer_frees_its_lock_and_leaves_nothing(tables):
    turn = a_turn()
    entered = asyncio.Event()

    async def stuck() -> None:
        async with tables.transaction([ANN]) as transaction:
            await transaction.insert_units([turn])
            entered.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(stuck())
    await entered.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    async with asyncio.timeout(5), tables.transaction([ANN]) as transaction:
        assert await transaction.units([turn.id]) == {}


async def test_sigkill_loses_nothing_committed(database_url):
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, database_url, stdout=asyncio.subprocess.PIPE
    )
    acknowledged: list[UUID] = []
    async for line in writer.stdout:
        acknowledged += map(UUID, line.decode().split())
        if len(acknowledged) >= 60:
            break
    os.kill(writer.pid, signal.SIGKILL)
    rest = (await writer.stdout.read()).decode()
    acknowledged += [
        UUID(word) for line in rest.splitlines(keepends=True) if line[-1] == "\n" for word in line.split()
    ]
    await writer.wait()

    tables = await open_tables(database_url)
    assert set(await tables.units(ANN, acknowledged)) == set(acknowledged)
    async with tables.transaction([ANN]) as transaction:
        kept = await transaction.session_slice(ANN, "s", 0, 10**9)
        assert len(kept) == await transaction.position(ANN)  # whole batches, and the counter with them
    await tables.close()


async def test_a_locked_file_is_a_reason_to_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "WAIT_SECONDS", 0.2)
    tables = await open_tables(f"sqlite+aiosqlite:///{tmp_path / 'tables.db'}")
    other = sqlite3.connect(tmp_path / "tables.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TablesUnavailable, match="locked"):
        await insert(tables, a_turn())
    other.execute("ROLLBACK")
    other.close()
    await insert(tables, a_turn())

    with pytest.raises(TablesUnavailable, match="another writer"):
        async with tables.transaction([ANN]):
            await insert(tables, a_turn(BOB))
    await insert(tables, a_turn())
    await tables.close()


async def test_a_lost_connection_is_a_reason_to_wait_and_the_next_call_succeeds(postgres_server):
    url = await postgres_server.new_database()
    tables = await open_tables(url)
    with pytest.raises(TablesUnavailable):
        async with tables.transaction([ANN]) as transaction:
            await transaction.advance(ANN, 1)
            name = url.rpartition("/")[2]
            killed = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
            await postgres_server.run(f"{killed} '{name}'")
            await transaction.advance(ANN, 1)
    async with tables.transaction([ANN]) as transaction:
        assert await transaction.advance(ANN, 1) == 1
    await tables.check()
    await tables.close()


async def test_a_deadlock_is_a_reason_to_wait(postgres_server):
    tables = await open_tables(await postgres_server.new_database())
    async with tables.transaction([ANN, BOB]):
        pass
    both = asyncio.Barrier(2)

    async def cross(first, second) -> None:
        async with tables.transaction([first]) as transaction:
            await both.wait()
            transaction._locked |= {second}  # against the rule
            await transaction.advance(second, 1)

    results = await asyncio.gather(cross(ANN, BOB), cross(BOB, ANN), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["NoneType", "TablesUnavailable"]
    await tables.close()


async def test_a_server_that_is_away_is_a_reason_to_wait():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(TablesUnavailable):
        await open_tables(f"postgresql+asyncpg://nobody@127.0.0.1:{port}/none")


async def test_what_an_operator_must_mend_is_not_retried(tmp_path, postgres_server):
    (tmp_path / "not.db").write_bytes(b"not a database" * 1_000)
    for url in (
        "postgresql://host/db",
        "sqlite+aiosqlite://",
        "nonsense",
        f"sqlite+aiosqlite:///{tmp_path / 'missing' / 'tables.db'}",
        f"sqlite+aiosqlite:///{tmp_path / 'not.db'}",
        postgres_server.url("no_such_database"),
    ):
        with pytest.raises(Misconfigured, match="LAMINA_DATABASE"):
            await open_tables(url)


async def test_a_mistake_of_ours_stays_what_it_is(tables):
    with pytest.raises(Exception, match="time zone") as caught:
        await insert(tables, a_turn(said_at=NOW.replace(tzinfo=None)))
    assert not isinstance(caught.value, TablesUnavailable)
