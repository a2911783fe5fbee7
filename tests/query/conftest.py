"""A service over real SQLite tables and the in-memory store, publisher and embedder."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid5

import httpx
import pytest
from fastapi import FastAPI

from lamina.query.app import build_api
from lamina.sinks.in_memory import FixedClock, HashEmbedder, InMemoryPublisher, InMemoryStore
from lamina.sinks.prometheus import PrometheusMetrics
from lamina.sinks.tables import open_tables
from lamina.streams.codec import Vector
from lamina.streams.namespace import Namespace, namespace_of
from lamina.streams.ports import Leaf, Point, Tables
from lamina.streams.records import Link, Status, Unit
from lamina.streams.settings import Settings
from lamina.streams.steps.index import leaf_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROOT = UUID("00000000-0000-0000-0000-00000000a11a")


@dataclass
class World:
    """The ports of one service, and short ways to put things there."""

    tables: Tables
    store: InMemoryStore
    embedder: HashEmbedder
    publisher: InMemoryPublisher
    clock: FixedClock
    metrics: PrometheusMetrics

    def api(self, settings: Settings | None = None, **options) -> FastAPI:
        ports = {
            "tables": self.tables,
            "store": self.store,
            "embedder": self.embedder,
            "publisher": self.publisher,
            "clock": self.clock,
            "metrics": self.metrics,
            "exposition": self.metrics.exposition,
        }
        return build_api(settings or Settings(), **{**ports, **options})

    @asynccontextmanager
    async def caller(self, settings: Settings | None = None, **options) -> AsyncIterator[httpx.AsyncClient]:
        headers = options.pop("headers", None)
        transport = httpx.ASGITransport(self.api(settings, **options), raise_app_exceptions=False)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://lamina.test", headers=headers
        ) as http:
            yield http

    async def vector(self, text: str) -> Vector:
        vector: Vector = (await self.embedder.embed([text]))[0]
        return vector

    async def said(
        self,
        *texts: str,
        user: str = "ada",
        tenant: str = "local",
        session: str = "s1",
        start: datetime = NOON,
        status: Status = Status.REMEMBERED,
    ) -> list[Unit]:
        """Remember a session of alternating user and assistant turns, a minute apart."""
        namespace = namespace_of(tenant, user)
        turns = [
            Unit(
                id=uuid5(ROOT, f"{namespace} {session} {ordinal} {text}"),
                namespace=namespace,
                kind="turn",
                session=session,
                ordinal=ordinal,
                position=ordinal + 1,
                role="user" if ordinal % 2 == 0 else "assistant",
                speaker=user if ordinal % 2 == 0 else "assistant",
                text=text,
                said_at=start + timedelta(minutes=ordinal),
                recorded_at=start,
                visible=status in {Status.REMEMBERED, Status.CONSOLIDATED},
                status=status,
            )
            for ordinal, text in enumerate(texts)
        ]
        await self.keep(turns)
        return turns

    async def derived(self, kind: str, text: str, turns: Sequence[Unit], **fields) -> Unit:
        """Remember an episode or fact that rests on turns."""
        unit = Unit(
            id=uuid5(ROOT, f"{kind} {text} {turns[0].namespace}"),
            namespace=turns[0].namespace,
            kind=kind,
            session=turns[0].session,
            text=text,
            evidence=tuple(turn.id for turn in turns),
            said_at=turns[-1].said_at,
            recorded_at=NOON,
            engine="extractive",
            status=Status.REMEMBERED,
            **fields,
        )
        await self.keep([unit])
        return unit

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
        await self.store.upsert(
            [
                Point(
                    unit.id,
                    namespace,
                    unit.kind,
                    unit.session,
                    unit.speaker,
                    unit.said_at,
                    await self.vector(unit.text),
                    leaf=await self.leaf(unit) if unit.kind == "turn" else None,
                )
                for unit in units
                if unit.visible
            ]
        )

    async def leaf(self, turn: Unit) -> Leaf:
        vectors = await self.embedder.embed_turns([(None, turn.spoken)])
        return leaf_of(turn, vectors.tokens[0] if vectors.tokens else None)

    async def units_of(self, namespace: Namespace, ids) -> dict[UUID, Unit]:
        return await self.tables.units(namespace, [UUID(str(one)) for one in ids])


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    tables = await open_tables(f"sqlite+aiosqlite:///{tmp_path / 'lamina.db'}")
    yield World(
        tables, InMemoryStore(), HashEmbedder(), InMemoryPublisher(), FixedClock(NOON), PrometheusMetrics()
    )
    await tables.close()


@pytest.fixture
async def http(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """A caller of a service without API keys."""
    async with world.caller() as caller:
        yield caller
