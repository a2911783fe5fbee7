"""A client for the command line: of a named service, of the running system, or of one started for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx

from lamina.agents.embedded import embedded
from lamina.agents.folders import Folders, folders_of, held
from lamina.agents.outside import api_of, outside
from lamina.agents.process import Running, unless_ended
from lamina.query.client import Client
from lamina.sinks.children import identity
from lamina.streams.errors import Misconfigured
from lamina.streams.settings import Settings
from lamina.streams.steps.index import sweep

PROBE_SECONDS = 2.0
POLL_SECONDS = 0.5
CONSOLIDATE_SECONDS = 120.0


@asynccontextmanager
async def connected(
    settings: Settings, *, url: str | None, api_key: str | None, writes: bool
) -> AsyncIterator[Client]:
    """Yield a client of the service at `url`, else of the system running on the data folder, else of our own.

    Args:
        settings: names the data folder.
        url: of a service, or None.
        api_key: for that service, or None.
        writes: whether the caller adds turns; without, only the doors that reading needs are opened.

    Raises:
        Misconfigured: nothing runs, and nothing can be started as configured.
    """
    found = url or await _running_url(folders_of(settings))
    if found:
        async with _client(found, api_key) as client:
            yield client
    elif writes:
        own = settings.model_copy(update={"http_port": 0})
        async with embedded(own) as running, unless_ended(running.ending):
            async with Client(running.url or "", api_key=api_key) as client:
                yield client
            await _consolidated(running)
    else:
        async with _reading(settings, api_key) as client:
            yield client


async def _consolidated(running: Running) -> None:
    """Wait for the commands that the new turns led to; what is left after that waits for the next start."""
    try:
        async with asyncio.timeout(CONSOLIDATE_SECONDS):
            while not running.ending.told.is_set():
                tally = await running.outside.ports.tables.tally()
                if not tally.open_commands:
                    return
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        return


def _client(url: str, api_key: str | None) -> Client:
    try:
        return Client(url, api_key=api_key)
    except httpx.InvalidURL as exc:
        raise Misconfigured(f"{url} is no URL like http://127.0.0.1:8321: {exc}") from exc


async def _running_url(folders: Folders) -> str | None:
    """Return the URL of the system that runs on the data folder, if one answers there.

    A killed system leaves its address behind, where another one, on another folder, may answer by now.
    """
    try:
        url, pid, owner = folders.address_file.read_text().split("\n")[:3]
        if await identity(int(pid)) != owner:
            return None
    except (OSError, ValueError):
        return None
    async with httpx.AsyncClient(base_url=url, timeout=PROBE_SECONDS) as probe:
        try:
            response = await probe.get("/health/live")
        except (httpx.HTTPError, httpx.InvalidURL):
            return None
    return url if response.is_success else None


@asynccontextmanager
async def _reading(settings: Settings, api_key: str | None) -> AsyncIterator[Client]:
    """Open tables, store and embedder, and call the service in this process, without broker or workers."""
    folders = folders_of(settings)
    async with AsyncExitStack() as stack:
        stack.enter_context(held(folders))
        doors = await stack.enter_async_context(
            outside(settings, folders, bootstrap=None, stop=lambda _: None)
        )
        while await sweep(doors.ports):  # what a killed system had not made findable yet
            pass
        transport = httpx.ASGITransport(app=api_of(doors))
        yield await stack.enter_async_context(
            Client("http://in-process", api_key=api_key, transport=transport)
        )
