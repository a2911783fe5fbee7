"""Upkeep of the topology buffer: a quiet one is looked at by the wall clock, and its fill is measured."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from lamina.agents.guard import Guard
from lamina.agents.upkeep import issue_idle_topology, set_gauges
from lamina.agents.wakeup import Wakeup
from lamina.sinks.dead_letters import DeadLetters
from lamina.sinks.in_memory import (
    FixedClock,
    HashEmbedder,
    InMemoryMetrics,
    InMemoryPublisher,
    InMemoryStore,
)
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.tables import open_tables
from lamina.streams.buffer import Buffered
from lamina.streams.metrics import BUFFER_WAITING
from lamina.streams.namespace import Namespace
from lamina.streams.settings import Settings
from lamina.streams.steps.ports import Ports

ANN = Namespace("acme/ann")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SETTINGS = Settings(topology_idle_seconds=600)
DEADLINE_SECONDS = 10


@pytest.fixture
async def ports(tmp_path: Path) -> AsyncIterator[Ports]:
    tables = await open_tables(f"sqlite+aiosqlite:///{tmp_path / 'tables.db'}")
    store, engine = InMemoryStore(dimension=HashEmbedder.dimension), ExtractiveEngine()
    clock, metrics = FixedClock(NOON), InMemoryMetrics()
    yield Ports(SETTINGS, tables, store, HashEmbedder(), engine, clock, metrics)
    await tables.close()


def guard_of(ports: Ports) -> Guard:
    return Guard(
        dead_letters=DeadLetters(InMemoryPublisher(), ports.metrics),
        tables=ports.tables,
        metrics=ports.metrics,
        settings=ports.settings,
        stop=lambda fault: pytest.fail(str(fault)),
    )


async def push(ports: Ports, *numbers: int) -> None:
    rows = [Buffered(UUID(int=number), ports.clock.now()) for number in numbers]
    async with ports.tables.transaction([ANN]) as tx:
        await tx.push_buffer(ANN, rows)


async def commands(ports: Ports) -> int:
    return (await ports.tables.tally()).open_commands


async def during(loop: Awaitable[None], until) -> None:
    """Run a background loop until a condition holds."""
    task = asyncio.ensure_future(loop)
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not await until():
                await asyncio.sleep(0.01)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_buffer_that_was_quiet_long_enough_is_looked_at_and_the_relay_is_woken(ports) -> None:
    await push(ports, 1, 2)
    ports.clock.advance(timedelta(minutes=11))
    woken = Wakeup(DEADLINE_SECONDS)

    async def issued() -> bool:
        return await commands(ports) == 1

    await during(issue_idle_topology(ports, guard_of(ports), woken), issued)
    async with asyncio.timeout(DEADLINE_SECONDS / 2):
        await woken.wait()


async def test_the_gauge_tells_how_many_units_wait(ports) -> None:
    await push(ports, 1, 2, 3)

    async def measured() -> bool:
        return ports.metrics.value(BUFFER_WAITING) == 3

    await during(set_gauges(ports, guard_of(ports), dict), measured)
