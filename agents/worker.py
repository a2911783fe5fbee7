"""A worker of a production system: one part per process, by configuration alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum

from lamina.agents.folders import folders_of
from lamina.agents.process import Role, Running, process
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
