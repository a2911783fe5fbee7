"""A worker of a production system: one part per process, by configuration alone."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path

from lamina.agents.folders import folders_of, writable
from lamina.agents.outside import open_embedder
from lamina.agents.process import Role, Running, process
from lamina.sinks.prometheus import PrometheusMetrics
from lamina.sinks.tables import open_tables
from lamina.streams.errors import Misconfigured
from lamina.streams.settings import Settings


class Part(StrEnum):
    """What a worker does: `ingest` is gate, embed and remember; `consolidate` intake and the executors."""

    INGEST = "ingest"
    CONSOLIDATE = "consolidate"
    QUERY = "query"


ROLES: dict[Part, frozenset[Role]] = {
    Part.INGEST: frozenset({"ingest"}),
    Part.CONSOLIDATE: frozenset({"consolidate"}),
    Part.QUERY: frozenset({"query"}),
}


async def store_command(settings: Settings) -> list[str]:
    """Return the command that serves the vector store on the socket `settings.store`.

    Raises:
        Misconfigured: no socket is named, or the embedder, which says how long vectors are, does not open.
    """
    if not settings.store:
        raise Misconfigured("LAMINA_STORE is not set: name the socket that the store shall answer on")
    folders = folders_of(settings)
    embedder = await open_embedder(settings, folders.cache, PrometheusMetrics())
    await embedder.close()
    data, socket = folders.data / "store", Path(settings.store)
    for folder in (data, socket.parent):
        await asyncio.to_thread(writable, folder, "--data-dir and LAMINA_STORE")
    module = [sys.executable, "-P", "-m", "lamina.sinks.edge_child"]
    where = ["--socket", str(socket), "--data", str(data)]
    model = ["--dimension", str(embedder.dimension), "--model", embedder.name]
    memory = ["--cache-mb", str(settings.store_cache_mb), "--warm-mb", str(settings.store_warm_mb)]
    return [*module, *where, *model, *memory]


async def mark_everything(settings: Settings) -> int:
    """Mark every visible unit for the index and return how many.

    Raises:
        Misconfigured, TablesUnavailable: the database does not open or answer.
    """
    tables = await open_tables(folders_of(settings).database_url(settings))
    try:
        return await tables.mark_for_index()
    finally:
        await tables.close()


@asynccontextmanager
async def working(settings: Settings, part: Part) -> AsyncIterator[Running]:
    """Run one part until the block ends.

    Raises:
        Misconfigured: broker, database or store are not named, or do not answer.
    """
    for value, variable, what in (
        (settings.broker, "LAMINA_BROKER", "the Kafka brokers"),
        (settings.database, "LAMINA_DATABASE", "the SQLAlchemy URL of the tables"),
        (settings.store, "LAMINA_STORE", "the socket of the vector store"),
    ):
        if not value:
            raise Misconfigured(f"{variable} is not set: a worker needs {what} (`lamina up` needs none)")
    async with process(
        settings, folders_of(settings), ROLES[part], bootstrap=settings.broker, group=part.value
    ) as running:
        yield running
