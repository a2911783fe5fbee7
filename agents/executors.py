"""Executors: carry out planned commands, one lane per namespace, several namespaces at once.

LLM calls run here and never in a Faust agent: one slow agent stalls every agent of its process.
"""

import asyncio
import logging
from collections.abc import Callable
from uuid import uuid4

from lamina.agents.guard import Guard
from lamina.agents.wakeup import Wakeup
from lamina.streams.facts import replaces
from lamina.streams.metrics import COMMAND_SECONDS
from lamina.streams.ports import Claim
from lamina.streams.steps.consolidate import consolidate
from lamina.streams.steps.ports import Ports

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""Longest time a planned command waits for an executor that nobody woke."""


class Executors:
    """A bounded set of tasks that claim commands and carry them out."""

    def __init__(self, ports: Ports, guard: Guard, committed: Callable[[], None]) -> None:
        """Wire the executors; `committed` is called after each command, to wake the outbox relay."""
        self._ports = ports
        self._guard = guard
        self._committed = committed
        self._owner = f"executor-{uuid4()}"
        self._idle: list[Wakeup] = []

    def wake(self, commands: int) -> None:
        """Say that so many commands arrived; a busy executor looks for more by itself."""
        for lane in self._idle[:commands]:
            lane.set()

    async def run(self) -> None:
        """Carry out commands until cancelled; a command in flight is then left to its lease."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._ports.settings.executors):
                tasks.create_task(self._lane(f"{self._owner}/{number}"))

    async def _lane(self, owner: str) -> None:
        woken = Wakeup(POLL_SECONDS)
        while True:
            claim = await self._claim(owner)
            if claim is None:
                self._idle.append(woken)
                await woken.wait()
                self._idle.remove(woken)
            else:
                await self._carry_out(claim)
                self._committed()

    async def _claim(self, owner: str) -> Claim | None:
        claim: Claim | None = None

        async def take() -> None:
            nonlocal claim
            claim = await self._ports.tables.claim(
                owner, self._ports.clock.now(), self._ports.settings.lease_seconds
            )

        fault = await self._guard.attempt("executor", take)
        if fault is not None:  # no command is at fault alone; what is wrong must at least be seen
            await self._guard.is_poison("executor/claim", fault)
        return claim

    async def _carry_out(self, claim: Claim) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()

        async def execute() -> None:
            outcome = await consolidate(claim, self._ports, replaces)
            log.debug("command %s: %s", claim.command.id, outcome.state)

        fault = await self._guard.attempt("executor", execute)
        if fault is not None:
            await self._give_up(claim, fault)
        self._ports.metrics.observe(COMMAND_SECONDS, loop.time() - started, kind=claim.command.kind)

    async def _give_up(self, claim: Claim, fault: Exception) -> None:
        """Skip a command that failed for good, with the reason in the journal; else give the lane back."""
        poison = await self._guard.is_poison(f"command/{claim.command.id}", fault)

        async def end() -> None:
            if not poison:
                await self._ports.tables.release(claim)
                return
            async with self._ports.tables.transaction([claim.command.namespace]) as tx:
                await tx.finish_command(claim, "skipped", {"fault": f"{type(fault).__name__}: {fault}"})

        await self._guard.attempt("executor", end)
