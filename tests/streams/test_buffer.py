"""The topology buffer: what waits in it, and when topology looks."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from lamina.sinks.in_memory import FixedClock, HashEmbedder, InMemoryMetrics, InMemoryStore
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.tables import open_tables
from lamina.streams.buffer import Buffered, due, topology_command
from lamina.streams.codec import decode
from lamina.streams.identity import turn_id_from_message
from lamina.streams.namespace import namespace_of
from lamina.streams.placement import arrive
from lamina.streams.records import Command, Placement, Status, Turn
from lamina.streams.settings import Settings
from lamina.streams.steps.buffer import issue_due, issue_idle_buffers
from lamina.streams.steps.embed import embed
from lamina.streams.steps.gate import gate
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.remember import RecurrenceCache, remember
from lamina.streams.topics import CONSOLIDATION

ADA = namespace_of("acme", "ada")
BOB = namespace_of("acme", "bob")
NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
SETTINGS = Settings(topology_sessions=3, topology_buffer=4, salience=False)


@pytest.fixture
async def ports(tmp_path: Path) -> AsyncIterator[Ports]:
    tables = await open_tables(f"sqlite+aiosqlite:///{tmp_path / 'tables.db'}")
    embedder = HashEmbedder()
    store = InMemoryStore(dimension=embedder.dimension)
    yield Ports(SETTINGS, tables, store, embedder, ExtractiveEngine(), FixedClock(NOW), InMemoryMetrics())
    await tables.close()


def having(ports: Ports, **settings) -> Ports:
    return replace(ports, settings=ports.settings.model_copy(update=settings))


def rows(*numbers: int, at: datetime = NOW) -> list[Buffered]:
    return [Buffered(UUID(int=number), at) for number in numbers]


async def push(ports: Ports, buffered: list[Buffered], namespace=ADA) -> Command | None:
    async with ports.tables.transaction([namespace]) as tx:
        await tx.push_buffer(namespace, buffered)
        return await issue_due(namespace, tx, ports.settings, ports.clock.now())


async def issued(ports: Ports) -> list[Command]:
    outbox = await ports.tables.outbox(100)
    return [decode(Command, row.record.value) for row in outbox if row.record.topic is CONSOLIDATION]


def turns(session: str, *texts: str) -> list[Placement]:
    placed = []
    for number, text in enumerate(texts):
        turn = Turn(content=text, message_id=f"{session}-{number}", run_id=session, timestamp=NOW)
        key = turn_id_from_message(ADA, str(turn.message_id))
        placed.append(arrive(ADA, turn, fallback_id=key, received_at=NOW))
    return placed


async def through(ports: Ports, placements: list[Placement]):
    judged = await gate(placements, ports)
    return await remember(await embed(judged.forwarded, ports), ports, RecurrenceCache(1000))


@pytest.mark.parametrize(
    ("waiting", "sessions", "reason"),
    [(0, 9, None), (1, 2, None), (1, 3, "sessions"), (3, 0, None), (4, 0, "buffer_full"), (4, 3, "sessions")],
)
def test_topology_looks_after_enough_sessions_or_enough_units_and_never_at_nothing(
    waiting, sessions, reason
) -> None:
    assert due(waiting, sessions, SETTINGS) == reason


def test_the_same_units_give_the_same_command_in_their_namespace_only() -> None:
    command = topology_command(ADA, rows(1, 2), "sessions", position=7, now=NOW)
    later = topology_command(ADA, rows(1, 2), "buffer_full", position=9, now=NOW + timedelta(days=1))
    assert command.id == later.id
    assert command.units == (UUID(int=1), UUID(int=2))
    assert (command.kind, command.reason, command.position) == ("topology", "sessions", 7)
    others = [
        topology_command(BOB, rows(1, 2), "sessions", position=7, now=NOW),
        topology_command(ADA, rows(1, 3), "sessions", position=7, now=NOW),
    ]
    assert command.id not in {other.id for other in others}


async def test_a_full_buffer_issues_one_command_that_claims_all_that_waits(ports: Ports) -> None:
    assert await push(ports, rows(1, 2, 3)) is None
    command = await push(ports, rows(4, 5))
    assert command is not None
    assert (command.reason, [unit.int for unit in command.units]) == ("buffer_full", [1, 2, 3, 4, 5])
    assert await issued(ports) == [command]
    assert await push(ports, rows(1, 2, 3, 4, 5)) is None, "what was pushed once is not pushed again"
    assert await push(ports, rows(6)) is None


async def test_the_third_session_lets_topology_look_and_the_count_begins_again(ports: Ports) -> None:
    await push(ports, rows(1))
    for session in ("one", "two"):
        await gate(turns(session, "I keep bees behind the old barn"), ports)
        assert await issued(ports) == []
    await gate(turns("three", "Bees need flowers all summer long"), ports)
    assert [command.reason for command in await issued(ports)] == ["sessions"]
    await push(ports, rows(2))
    await gate(turns("four", "Honey is thick in October"), ports)
    assert len(await issued(ports)) == 1


async def test_a_session_that_begins_with_a_gated_turn_counts_and_counts_once(ports: Ports) -> None:
    await push(ports, rows(1))
    judged = await gate(turns("one", "ok"), ports)
    assert [each.unit.status for each in judged.gated] == [Status.GATED]
    for _ in range(3):
        await gate(turns("one", "ok"), ports)
    await gate(turns("two", "ok", "Bees need flowers all summer long"), ports)
    assert await issued(ports) == []
    await gate(turns("three", "ok"), ports)
    assert len(await issued(ports)) == 1


async def test_sessions_without_new_units_issue_nothing(ports: Ports) -> None:
    for session in ("one", "two", "three", "four"):
        await gate(turns(session, "I keep bees behind the old barn"), ports)
    assert await issued(ports) == []


async def test_an_idle_buffer_is_looked_at_once(ports: Ports) -> None:
    await push(ports, rows(1))
    await push(ports, rows(2, at=NOW + timedelta(minutes=10)))
    await push(ports, rows(3, at=NOW + timedelta(hours=5)), BOB)
    assert await issue_idle_buffers(NOW + timedelta(minutes=10), ports) == []
    commands = await issue_idle_buffers(NOW + timedelta(hours=1), ports)
    assert [(c.namespace, c.reason, len(c.units)) for c in commands] == [(ADA, "buffer_idle", 2)]
    assert await issue_idle_buffers(NOW + timedelta(hours=1), ports) == []


async def test_nothing_is_issued_or_counted_where_topology_is_off(ports: Ports) -> None:
    off = having(ports, topology=False)
    assert await push(off, rows(1, 2, 3, 4, 5)) is None
    assert await issue_idle_buffers(NOW + timedelta(days=1), off) == []
    for session in ("one", "two", "three", "four"):
        await gate(turns(session, "I keep bees behind the old barn"), off)
    assert await issued(off) == []


async def test_turns_are_buffered_where_topology_edits_all_kinds(ports: Ports) -> None:
    every = having(ports, topology_kinds="all", topology_buffer=3, gate_enabled=False)
    done = await through(every, turns("one", "I keep bees behind the barn", "Bees live behind the barn"))
    async with ports.tables.transaction([ADA]) as tx:
        waiting = await tx.buffer(ADA)
    assert [row.unit for row in waiting] == [unit.id for unit in done.units]
    await through(every, turns("one", "I keep bees behind the barn", "Bees live behind the barn"))
    assert await issued(ports) == [], "a repetition adds nothing"
    third = await through(every, turns("two", "Bees need flowers all summer long"))
    assert [(c.kind, c.reason, len(c.units)) for c in third.commands] == [("topology", "buffer_full", 3)]


async def test_turns_are_not_buffered_where_topology_edits_derived_kinds_only(ports: Ports) -> None:
    await through(ports, turns("one", "I keep bees behind the barn", "Bees live behind the barn"))
    async with ports.tables.transaction([ADA]) as tx:
        assert await tx.buffer(ADA) == []


async def test_a_write_that_fails_issues_nothing(ports: Ports) -> None:
    with pytest.raises(RuntimeError):
        async with ports.tables.transaction([ADA]) as tx:
            await tx.push_buffer(ADA, rows(1, 2, 3, 4))
            await issue_due(ADA, tx, ports.settings, NOW)
            raise RuntimeError("the process dies before the commit")
    assert await issued(ports) == []
    command = await push(ports, rows(1, 2, 3, 4))
    assert await issued(ports) == [command]
