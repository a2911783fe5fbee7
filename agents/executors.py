"""Executors: carry out planned commands, one lane per namespace, several namespaces at once.

LLM calls run here and never in a Faust agent: one slow agent stalls every agent of its process. The lease is
renewed while a command runs; a command that waits for its model holds nothing here.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from uuid import uuid4

from lamina.agents.guard import Guard
from lamina.agents.wakeup import Wakeup
from lamina.streams.errors import Transient
from lamina.streams.facts import replaces
from lamina.streams.metrics import COMMAND_SECONDS, COMMANDS_FINISHED
from lamina.streams.ports import Claim
from lamina.streams.steps.carry_out import carry_out
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.release import release

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
        """Carry out a command and hold its lane meanwhile; when another has taken the lane, drop the work."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        work = asyncio.create_task(self._work(claim))
        hold = asyncio.create_task(self._hold(claim))
        try:
            await asyncio.wait({work, hold}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                log.warning("command %s: its lane was lost", claim.command.id)
        finally:
            for task in (work, hold):
                task.cancel()
            ended = await asyncio.gather(work, hold, return_exceptions=True)
        for fault in ended:
            if isinstance(fault, Exception):
                raise fault
        self._ports.metrics.observe(COMMAND_SECONDS, loop.time() - started, kind=claim.command.kind)

    async def _work(self, claim: Claim) -> None:
        async def execute() -> None:
            outcome = await carry_out(claim, self._ports, replaces)
            log.debug("command %s: %s %s", claim.command.id, outcome.state, outcome.note or "")

        fault = await self._guard.attempt("executor", execute)
        if fault is not None:
            await self._give_up(claim, fault)

    async def _hold(self, claim: Claim) -> None:
        """Renew the lease until another owner has the lane; an outage leaves it to run out."""
        lease, command = self._ports.settings.lease_seconds, claim.command.id
        held, entry = True, None
        while held:
            await asyncio.sleep(lease / 3)
            try:
                held = await self._ports.tables.renew(claim, self._ports.clock.now(), lease)
                entry = None if held else await self._ports.tables.journal_entry(command)
            except Transient as fault:
                log.warning("command %s: its lease was not renewed: %s", command, fault)
        if entry is not None and entry.state in {"applied", "no_op", "skipped"}:
            await asyncio.Event().wait()  # it has ended; what is left of the work is the copy to the store

    async def _give_up(self, claim: Claim, fault: Exception) -> None:
        """Skip a command that failed for good, with the reason in the journal; else give the lane back."""
        note = f"{type(fault).__name__}: {fault}"[:500]
        if not await self._guard.is_poison(f"command/{claim.command.id}", fault):
            await self._guard.attempt("executor", partial(self._ports.tables.release, claim))
            return

        async def skip() -> None:
            await release(claim, self._ports, "skipped", note)

        async def skip_only() -> None:
            async with self._ports.tables.transaction([claim.command.namespace]) as tx:
                await tx.finish_command(claim, "skipped", None, note=note)

        failed = await self._guard.attempt("executor", skip)
        if failed is not None:  # what is wrong with it is wrong with its exchanges, too: let the others go on
            log.error("command %s: its exchanges are not released: %r", claim.command.id, failed)
            await self._guard.attempt("executor", skip_only)
        self._ports.metrics.count(COMMANDS_FINISHED, kind=claim.command.kind, state="skipped")
