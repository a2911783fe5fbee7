"""The embedded system: broker and store as child processes, everything else here under one Faust app."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from lamina.agents.folders import folders_of, held
from lamina.agents.process import Role, Running, process
from lamina.sinks.broker_embedded import start_broker
from lamina.streams.errors import Misconfigured
from lamina.streams.settings import Settings

ALL_ROLES: frozenset[Role] = frozenset({"ingest", "consolidate", "query"})

LOOPBACK = {"127.0.0.1", "::1", "localhost"}

EMBEDDED_SESSION_SECONDS = 2.0
"""Joining a group takes half of the session timeout on the embedded broker."""


@asynccontextmanager
async def embedded(settings: Settings) -> AsyncIterator[Running]:
    """Run the whole system until the block ends; no process is left behind.

    Raises:
        Misconfigured: the data folder, the port or a setting is not usable; the message says what to do.
    """
    if settings.http_host not in LOOPBACK and not settings.api_keys:
        raise Misconfigured(
            f"without API keys the service listens on loopback only, not on {settings.http_host}: "
            "set LAMINA_API_KEYS"
        )
    folders = folders_of(settings)
    settings = settings.model_copy(update={"session_timeout_seconds": EMBEDDED_SESSION_SECONDS})
    async with AsyncExitStack() as stack:
        stack.enter_context(held(folders))
        bootstrap = settings.broker
        if not bootstrap:
            broker = await start_broker(folders.data)
            stack.push_async_callback(broker.stop)
            bootstrap = broker.bootstrap
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
        folders.address_file.parent.mkdir(parents=True, exist_ok=True)
        folders.address_file.write_text(running.url or "")
        stack.callback(folders.address_file.unlink, missing_ok=True)
        yield running
