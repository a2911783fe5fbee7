"""The embedded system: broker and store as child processes, everything else here under one Faust app."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import uuid4

from lamina.agents.folders import folders_of, held
from lamina.agents.process import Role, Running, process
from lamina.sinks.broker_embedded import start_broker
from lamina.sinks.children import Child, identity
from lamina.streams.errors import Fatal
from lamina.streams.settings import Settings

ALL_ROLES: frozenset[Role] = frozenset({"ingest", "consolidate", "query"})

EMBEDDED_SESSION_SECONDS = 2.0
"""Joining a group takes half of the session timeout on the embedded broker."""


@asynccontextmanager
async def embedded(settings: Settings) -> AsyncIterator[Running]:
    """Run the whole system until the block ends; no process is left behind.

    Raises:
        Misconfigured: the data folder, the port or a setting is not usable; the message says what to do.
    """
    folders = folders_of(settings)
    async with AsyncExitStack() as stack:
        stack.enter_context(held(folders))
        bootstrap, watched = settings.broker, None
        if not bootstrap:
            broker = await start_broker(folders.data)
            stack.push_async_callback(broker.stop)
            watched = broker.child
            bootstrap = broker.bootstrap
            # Its offsets begin at 0 again: ids made from them must not meet those of an earlier run.
            own = {"session_timeout_seconds": EMBEDDED_SESSION_SECONDS, "cluster": f"embedded-{uuid4()}"}
            settings = settings.model_copy(update=own)
        running = await stack.enter_async_context(
            process(
                settings,
                folders,
                ALL_ROLES,
                bootstrap=bootstrap,
                group="embedded",
                durable_log=bool(settings.broker),
            )
        )
        if watched is not None:
            stack.callback(asyncio.create_task(_told_of_end(watched, running)).cancel)
        folders.address_file.parent.mkdir(parents=True, exist_ok=True)
        owner = await identity(os.getpid())
        folders.address_file.write_text(f"{running.url}\n{os.getpid()}\n{owner}\n")
        stack.callback(folders.address_file.unlink, missing_ok=True)
        yield running


async def _told_of_end(broker: Child, running: Running) -> None:
    """End the process when the broker ends by itself: its log is gone, the next start publishes it again."""
    await broker.wait()
    running.ending.of(Fatal("the embedded broker ended: start again, every accepted turn is published again"))
