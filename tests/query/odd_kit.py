"""A service over real parts: the bundled embedder, the embedded store's process, SQLite."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid5

from lamina.sinks.embed_onnx import open_onnx_embedder
from lamina.sinks.in_memory import FixedClock, InMemoryPublisher
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.prometheus import PrometheusMetrics
from lamina.sinks.qdrant_edge import open_edge
from lamina.sinks.tables import open_tables
from lamina.streams.namespace import namespace_of
from lamina.streams.records import Link, Status, Unit
from lamina.streams.settings import Settings
from lamina.streams.steps.index import sweep
from lamina.streams.steps.ports import Ports

from .conftest import NOON, ROOT, World

Line = tuple[str, str, str]
"""When (ISO 8601, UTC), who, what."""


class RealWorld(World):
    """A `World` whose units reach the store as the sweeper brings them there, vectors and all."""

    async def keep(self, units: Sequence[Unit]) -> None:
        namespace = units[0].namespace
        async with self.tables.transaction([namespace]) as tx:
            await tx.insert_units(units)
            await tx.insert_links(
                [
                    Link(namespace=namespace, source=unit.id, target=turn, type="evidence")
                    for unit in units
                    for turn in unit.evidence
                ]
            )
        engine = ExtractiveEngine()
        await sweep(
            Ports(Settings(), self.tables, self.store, self.embedder, engine, self.clock, self.metrics)
        )

    async def told(self, *lines: Line, user: str = "ada", tenant: str = "local") -> dict[str, Unit]:
        """Remember what was said; every day is a session. Returns the turns by their text."""
        turns: list[Unit] = []
        for when, speaker, text in lines:
            said_at = datetime.fromisoformat(when).replace(tzinfo=UTC)
            session = said_at.date().isoformat()
            ordinal = sum(turn.session == session for turn in turns)
            turns.append(
                Unit(
                    id=uuid5(ROOT, f"{tenant} {user} {when} {ordinal} {text}"),
                    namespace=namespace_of(tenant, user),
                    kind="turn",
                    session=session,
                    ordinal=ordinal,
                    position=len(turns) + 1,
                    role="user",
                    speaker=speaker,
                    text=text,
                    said_at=said_at + timedelta(minutes=ordinal),
                    recorded_at=NOON,
                    status=Status.REMEMBERED,
                )
            )
        await self.keep(turns)
        return {turn.text: turn for turn in turns}


@asynccontextmanager
async def real_world(folder: Path, cache: Path) -> AsyncIterator[RealWorld]:
    """Open the parts, empty, and close them again."""
    metrics = PrometheusMetrics()
    embedder = await open_onnx_embedder(Settings(), cache, metrics)
    store = await open_edge(folder, embedder.name, embedder.dimension)
    tables = await open_tables(f"sqlite+aiosqlite:///{folder / 'lamina.db'}")
    try:
        yield RealWorld(tables, store, embedder, InMemoryPublisher(), FixedClock(NOON), metrics)
    finally:
        await tables.close()
        await store.close()
        await embedder.close()


def texts(results: Iterable[dict[str, Any]]) -> list[str]:
    """Return the texts of a response's results."""
    return [result["text"] for result in results]
