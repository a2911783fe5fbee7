"""Executors: lanes that run beside each other, leases that are held, work that is dropped with its lane."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from lamina.agents.executors import Executors
from lamina.agents.guard import Guard
from lamina.sinks.dead_letters import DeadLetters
from lamina.sinks.in_memory import InMemoryPublisher
from lamina.sinks.system_clock import SystemClock
from lamina.streams.engine import Cluster
from lamina.streams.errors import ModelUnavailable
from lamina.streams.metrics import COMMANDS_FINISHED
from lamina.streams.records import Command, Plan
from lamina.streams.steps.ports import Ports
from tests.streams.consolidation_kit import (
    ADA,
    BEES,
    BEN,
    HONEY,
    NOW,
    ScriptedEngine,
    nothing,
    one_episode,
    opened,
    recurrence,
    run,
    states,
    visible,
)

TALK = [BEES, HONEY] * 2


class SlowEngine(ScriptedEngine):
    """An engine that writes one episode once it is let; `started` counts."""

    def __init__(self) -> None:
        super().__init__(one_episode)
        self.started = self.dropped = 0
        self.let = asyncio.Event()

    async def consolidate(self, claim, cluster: Cluster, related) -> Plan:
        self.started += 1
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.dropped += 1
            raise
        return await super().consolidate(claim, cluster, related)


@asynccontextmanager
async def planned(folder: Path, *namespaces, **settings) -> AsyncIterator[Any]:
    """Ports with one planned command in each namespace."""
    async with opened(folder, ScriptedEngine(ModelUnavailable("away", retry_after=0)), **settings) as ports:
        for namespace in namespaces:
            await run_until_planned(ports, namespace)
        yield replace(ports, clock=SystemClock())


async def run_until_planned(ports: Ports, namespace) -> None:
    """Take turns as far as a command that waits, ready to be claimed."""
    away = ScriptedEngine(ModelUnavailable("away", retry_after=1))
    await run(replace(ports, engine=away), *TALK, namespace=namespace)


@asynccontextmanager
async def executing(ports: Ports, engine) -> AsyncIterator[Executors]:
    """Executors at work over the ports."""
    stopped: list[Exception] = []
    guard = Guard(
        dead_letters=DeadLetters(InMemoryPublisher(), ports.metrics),
        tables=ports.tables,
        metrics=ports.metrics,
        settings=ports.settings,
        stop=stopped.append,
    )
    executors = Executors(replace(ports, engine=engine), guard, lambda: None)
    task = asyncio.create_task(executors.run())
    try:
        yield executors
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert stopped == []


async def until(condition) -> None:
    async with asyncio.timeout(20):
        while not await condition():
            await asyncio.sleep(0.01)


async def test_a_slow_namespace_holds_back_no_other(tmp_path: Path) -> None:
    class SlowForAda(SlowEngine):
        async def consolidate(self, claim, cluster, related) -> Plan:
            if claim.command.namespace == ADA:
                return await super().consolidate(claim, cluster, related)
            return one_episode(cluster)

    async with planned(tmp_path, ADA, BEN, executors=2) as ports:
        engine = SlowForAda()
        async with executing(ports, engine):

            async def done() -> bool:
                return bool(await visible(ports, "episode", BEN)) and engine.started == 1

            await until(done)
            assert await visible(ports, "episode", ADA) == []
            engine.let.set()
            await until(lambda: applied(ports, 2))
        assert len(await visible(ports, "episode", ADA)) == 1


async def applied(ports: Ports, number: int) -> bool:
    return await states(ports) == {"applied": number}


async def test_a_lease_is_renewed_while_a_command_runs_so_that_no_other_takes_it(tmp_path: Path) -> None:
    async with planned(tmp_path, ADA, lease_seconds=0.6) as ports:
        engine = SlowEngine()
        async with executing(ports, engine):
            await until(lambda: begun(engine))
            for _ in range(10):
                await asyncio.sleep(0.15)
                assert await ports.tables.claim("another", ports.clock.now(), 60) is None
            engine.let.set()
            await until(lambda: applied(ports, 1))
        assert (engine.started, engine.dropped) == (1, 0)


async def begun(engine: SlowEngine) -> bool:
    return engine.started > 0


async def test_work_whose_lane_is_lost_is_dropped_and_done_again(tmp_path: Path) -> None:
    async with planned(tmp_path, ADA, lease_seconds=0.3) as ports:
        engine = SlowEngine()
        async with executing(ports, engine):
            await until(lambda: begun(engine))
            await ports.tables.free_lanes()

            async def dropped() -> bool:
                return engine.dropped == 1 and engine.started == 2

            await until(dropped)
            engine.let.set()
            await until(lambda: applied(ports, 1))
        assert len(await visible(ports, "episode")) == 1


async def test_a_stop_leaves_the_command_in_flight_to_its_lease(tmp_path: Path) -> None:
    async with planned(tmp_path, ADA) as ports:
        engine = SlowEngine()
        async with executing(ports, engine):
            await until(lambda: begun(engine))
        assert engine.dropped == 1
        (entry,) = await ports.tables.journal()
        assert entry.state in {"planned", "waiting"}
        assert await ports.tables.claim("another", ports.clock.now(), 60) is None


async def test_a_waiting_command_holds_no_executor(tmp_path: Path) -> None:
    class AwayForAda(ScriptedEngine):
        async def consolidate(self, claim, cluster, related) -> Plan:
            if claim.command.namespace == ADA:
                raise ModelUnavailable("away", retry_after=60)
            return one_episode(cluster)

    async with planned(tmp_path, ADA, BEN, executors=1) as ports, executing(ports, AwayForAda(nothing)):
        await until(lambda: visible(ports, "episode", BEN))
        await until(lambda: waits(ports))


async def waits(ports: Ports) -> bool:
    return await states(ports) == {"applied": 1, "waiting": 1}


async def test_a_command_of_an_unknown_kind_is_skipped_with_a_note_and_blocks_none(tmp_path: Path) -> None:
    async with planned(tmp_path, ADA) as ports:
        unknown = Command(
            id=UUID(int=7), namespace=BEN, kind="undo", reason="operator", position=0, issued_at=NOW
        )
        await ports.tables.admit_commands([unknown])
        async with executing(ports, ScriptedEngine(one_episode)):
            await until(lambda: ended(ports))
        (entry,) = await ports.tables.journal(BEN)
        assert (entry.state, "kind undo" in (entry.note or "")) == ("skipped", True)
        assert ports.metrics.value(COMMANDS_FINISHED, kind="undo", state="skipped") == 1


async def ended(ports: Ports) -> bool:
    return await states(ports) == {"applied": 1, "skipped": 1}


@pytest.mark.parametrize("fault", [ValueError("a bug"), ZeroDivisionError("another")])
async def test_a_command_that_always_fails_is_skipped_after_its_tries_and_its_exchanges_released(
    tmp_path: Path, fault: Exception
) -> None:
    async with planned(tmp_path, ADA, unknown_fault_attempts=2) as ports:
        engine = ScriptedEngine(fault)
        async with executing(ports, engine):
            await until(lambda: skipped(ports))
        (entry,) = await ports.tables.journal()
        assert str(fault) in (entry.note or "")
        assert len(engine.seen) == 2
        assert [each.state for each in (await recurrence(ports)).exchanges] == ["unconsolidated"] * 2


async def skipped(ports: Ports) -> bool:
    return await states(ports) == {"skipped": 1}
