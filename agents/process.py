"""One process: the roles it plays, started in order and ended in reverse.

`ingest` runs gate, embed and remember; `consolidate` runs intake and the executors; `query` serves HTTP.
The embedded system plays all three under one Faust app.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from faust.contrib.asgi import faust_app_running

from lamina.agents.app import DrainedApp, attach, build_app, joined, lag
from lamina.agents.embed import embed_step
from lamina.agents.executors import Executors
from lamina.agents.folders import Folders
from lamina.agents.gate import gate_step
from lamina.agents.http_server import bind, serving
from lamina.agents.intake import intake_step
from lamina.agents.outside import Outside, api_of, outside
from lamina.agents.recovery import republish_unfinished
from lamina.agents.remember import remember_step
from lamina.agents.upkeep import (
    drop_old_marks,
    issue_idle_merges,
    issue_idle_topology,
    relay_outbox,
    set_gauges,
    sweep_index,
)
from lamina.agents.wakeup import Wakeup
from lamina.agents.watchdog import watched
from lamina.sinks.kafka_topics import ensure_topics
from lamina.streams.errors import Fatal, Misconfigured
from lamina.streams.settings import Settings
from lamina.streams.steps.remember import RecurrenceCache
from lamina.streams.topics import ADMITTED, CONSOLIDATION, EMBEDDED, TURNS

Role = Literal["ingest", "consolidate", "query"]

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
"""Where a service without API keys may listen."""

RELAY_SECONDS = 0.5
"""Longest time a committed row waits for the relay when nobody woke it."""

WATCH_SECONDS = 0.5
"""How often it is looked whether Faust still runs."""


@dataclass(slots=True)
class Ending:
    """Whether the process must end, and why when it is for a fault."""

    told: asyncio.Event = field(default_factory=asyncio.Event)
    fault: Fatal | None = None

    def of(self, fault: Fatal) -> None:
        """End the process for a fault; the first one is told."""
        self.fault = self.fault or fault
        self.told.set()


@dataclass(slots=True)
class Running:
    """A process at work."""

    outside: Outside
    ending: Ending
    url: str | None = None
    """Where the query service listens, when the process plays that role."""


@asynccontextmanager
async def process(
    settings: Settings,
    folders: Folders,
    roles: frozenset[Role],
    *,
    bootstrap: str,
    group: str,
    durable_log: bool = True,
) -> AsyncIterator[Running]:
    """Run the roles until the block ends.

    Args:
        settings: for every part.
        folders: of the embedded parts.
        roles: what this process does.
        bootstrap: the broker.
        group: name of the Faust app, its consumer group.
        durable_log: whether the broker's log outlives this process. If not, accepted turns are written to the
            tables before they are acknowledged, and unfinished ones are published again at the start.

    Raises:
        Misconfigured, WrongDimension: something is not usable as configured; nothing was started.
    """
    if "query" in roles and not settings.api_keys and settings.http_host not in LOOPBACK:
        raise Misconfigured(
            f"without API keys the service listens on loopback only, not on {settings.http_host}: "
            "set LAMINA_API_KEYS"
        )
    ending = Ending()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(watched(settings.watchdog_seconds))
        # The port first: it is what is most often taken, and nothing is started in vain.
        listener = bind(settings.http_host, settings.http_port) if "query" in roles else None
        if listener is not None:
            stack.callback(listener.close)
        await ensure_topics(bootstrap, settings)
        opened = outside(settings, folders, bootstrap=bootstrap, stop=ending.of)
        doors = await stack.enter_async_context(opened)
        running = Running(doors, ending)
        if not durable_log:
            exchanges = settings.count_unit == "exchange"
            await republish_unfinished(doors.ports.tables, doors.publisher, exchanges=exchanges)
        app: DrainedApp | None = None
        if roles & {"ingest", "consolidate"}:
            app = build_app(group, bootstrap, settings)
            await stack.enter_async_context(_workers(app, roles, doors, ending))
        if listener is not None:
            api = api_of(doors, readiness=lambda: _readiness(app, ending), accept_rows=not durable_log)
            running.url = await stack.enter_async_context(serving(api, listener))
        yield running


@asynccontextmanager
async def _workers(
    app: DrainedApp, roles: frozenset[Role], doors: Outside, ending: Ending
) -> AsyncIterator[None]:
    """Run the Faust app and the loops beside it."""
    ports, publisher, guard, settings = doors.ports, doors.publisher, doors.guard, doors.ports.settings
    committed = Wakeup(RELAY_SECONDS)
    loops = [
        relay_outbox(ports, publisher, guard, committed),
        set_gauges(ports, guard, lambda: lag(app, settings)),
    ]
    if "ingest" in roles:
        cache = RecurrenceCache(settings.recurrence_cache_exchanges)
        attach(app, TURNS, gate_step(ports, publisher), guard, settings)
        attach(app, ADMITTED, embed_step(ports, publisher), guard, settings)
        attach(app, EMBEDDED, remember_step(ports, cache, committed.set), guard, settings)
        loops += [issue_idle_merges(ports, guard, committed), sweep_index(ports, guard)]
        loops += [issue_idle_topology(ports, guard, committed), drop_old_marks(ports, guard)]
    if "consolidate" in roles:
        executors = Executors(ports, guard, committed.set)
        attach(app, CONSOLIDATION, intake_step(ports, executors.wake), guard, settings)
        loops.append(executors.run())
    tasks = [asyncio.create_task(loop) for loop in loops]
    for task in tasks:
        task.add_done_callback(partial(_told_of_bug, ending=ending))
    try:
        async with faust_app_running(app, discover=False):
            await joined(app, settings.session_timeout_seconds + 30)
            watch = asyncio.create_task(_told_of_crash(app, ending))
            try:
                yield
            finally:
                watch.cancel()
                if ending.fault is not None:
                    app.drain_seconds = 0.0  # what is in flight waits for what does not come
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # what one ended with was told


def _told_of_bug(loop: asyncio.Task[None], *, ending: Ending) -> None:
    """End the process when a background loop ends: it never should, so something is wrong with us."""
    if not loop.cancelled():
        ending.of(Fatal(f"a background loop ended: {loop.exception()!r}"))


async def _told_of_crash(app: DrainedApp, ending: Ending) -> None:
    """End the process when Faust has stopped by itself: nothing would be consumed any more."""
    while not app.should_stop:  # noqa: ASYNC110  # faust has no event for it
        await asyncio.sleep(WATCH_SECONDS)
    ending.of(Fatal(f"the Faust app stopped: {app.crash_reason!r}; start again, nothing accepted is lost"))


@asynccontextmanager
async def unless_ended(ending: Ending) -> AsyncIterator[None]:
    """Run the block; when the process must end for a fault meanwhile, cancel it and raise the fault."""

    async def watch(scope: asyncio.Timeout) -> None:
        await ending.told.wait()
        scope.reschedule(asyncio.get_running_loop().time())

    try:
        async with asyncio.timeout(None) as scope:
            watching = asyncio.create_task(watch(scope))
            try:
                yield
            finally:
                watching.cancel()
    except TimeoutError:
        if ending.fault is None:
            raise
        raise ending.fault from None


async def _readiness(app: DrainedApp | None, ending: Ending) -> Mapping[str, str | bool]:
    checks: dict[str, str | bool] = {"process": str(ending.fault) if ending.fault else True}
    if app is not None:
        consumer = app._consumer  # noqa: SLF001  # the public property creates one
        assigned = consumer is not None and bool(consumer.assignment())
        checks["broker"] = assigned or "the worker has no partitions"
    return checks
