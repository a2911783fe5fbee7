"""Upkeep: the background loops beside the steps.

The outbox relay, idle merges and topology buffers by the wall clock, the sweep of units that a crash left
unindexed, and the gauges. Each runs through the guard, so an outage pauses it and never ends it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from lamina.agents.guard import Guard
from lamina.agents.wakeup import Wakeup
from lamina.sinks.outbox import relay
from lamina.streams.metrics import (
    BUFFER_WAITING,
    COMMANDS,
    INDEX_WAITING,
    LAG,
    MERGES_WAITING,
    OLDEST_AGE,
    OUTBOX_WAITING,
)
from lamina.streams.ports import Publisher
from lamina.streams.steps.buffer import issue_idle_buffers
from lamina.streams.steps.index import sweep
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.remember import ripen

IDLE_CHECK_SECONDS = 5.0
SWEEP_SECONDS = 5.0
GAUGE_SECONDS = 5.0
MARKS_SECONDS = 3600.0
MARKS_AT_ONCE = 1_000
"""Marks dropped in one transaction: other writers have their turns between two."""


async def relay_outbox(ports: Ports, publisher: Publisher, guard: Guard, committed: Wakeup) -> None:
    """Publish committed rows whenever a step says that there are some, and at least twice a second."""

    async def drain() -> None:
        await relay(ports.tables, publisher)

    while True:
        await _through(guard, "outbox", drain)
        await committed.wait()


async def issue_idle_merges(ports: Ports, guard: Guard, committed: Wakeup) -> None:
    """Issue merges of threads that have been quiet by the wall clock (in a replay, event time does it)."""

    async def check() -> None:
        if await ripen(ports):
            committed.set()

    await _every(IDLE_CHECK_SECONDS, guard, "idle", check)


async def issue_idle_topology(ports: Ports, guard: Guard, committed: Wakeup) -> None:
    """Let topology look at buffers that have not grown for a while by the wall clock."""

    async def check() -> None:
        idle = timedelta(seconds=ports.settings.topology_idle_seconds)
        if await issue_idle_buffers(ports.clock.now() - idle, ports):
            committed.set()

    await _every(IDLE_CHECK_SECONDS, guard, "idle_buffers", check)


async def sweep_index(ports: Ports, guard: Guard) -> None:
    """Copy units that a crash or an outage left marked."""

    async def check() -> None:
        await sweep(ports)

    await _every(SWEEP_SECONDS, guard, "index", check)


async def drop_old_marks(ports: Ports, guard: Guard) -> None:
    """Drop the marks of chats that are older than anyone is expected to go on with; a batch a transaction."""

    async def check() -> None:
        before = ports.clock.now() - timedelta(days=ports.settings.chat_marks_days)
        dropped = MARKS_AT_ONCE
        while dropped == MARKS_AT_ONCE:
            dropped = await ports.tables.drop_marks(before, MARKS_AT_ONCE)

    await _every(MARKS_SECONDS, guard, "marks", check)


async def set_gauges(ports: Ports, guard: Guard, lags: Callable[[], dict[str, int]]) -> None:
    """Keep the gauges of the catalogue current."""

    async def measure() -> None:
        tally = await ports.tables.tally()
        metrics = ports.metrics
        for state, count in tally.commands.items():
            metrics.set(COMMANDS, count, state=state)
        metrics.set(MERGES_WAITING, tally.merges_waiting)
        metrics.set(BUFFER_WAITING, tally.buffer_waiting)
        metrics.set(OUTBOX_WAITING, tally.outbox_waiting)
        metrics.set(INDEX_WAITING, tally.index_waiting)
        oldest = tally.oldest_unfinished
        age = (ports.clock.now() - oldest).total_seconds() if oldest else 0.0
        metrics.set(OLDEST_AGE, max(0.0, age))
        for step, behind in lags().items():
            metrics.set(LAG, behind, step=step)

    await _every(GAUGE_SECONDS, guard, "gauges", measure)


async def _every(seconds: float, guard: Guard, name: str, call: Callable[[], Awaitable[None]]) -> None:
    while True:
        await _through(guard, name, call)
        await asyncio.sleep(seconds)


async def _through(guard: Guard, name: str, call: Callable[[], Awaitable[None]]) -> None:
    """Run one round; an unknown fault is logged and counted, and the next round tries again."""
    fault = await guard.attempt(name, call)
    if fault is not None:
        await guard.is_poison(f"upkeep/{name}", fault)
