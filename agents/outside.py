"""Open the doors that a process needs, and close them in reverse."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI

from lamina.agents.folders import Folders, writable
from lamina.agents.guard import Guard
from lamina.query.app import build_api, nothing_more
from lamina.query.chat_upstream import Upstream, open_upstream
from lamina.query.service import Readiness
from lamina.sinks.dead_letters import DeadLetters
from lamina.sinks.embed_onnx import open_onnx_embedder
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.no_broker import NoBroker
from lamina.sinks.prometheus import PrometheusMetrics
from lamina.sinks.publisher import KafkaPublisher
from lamina.sinks.qdrant_edge import connect_edge, open_edge
from lamina.sinks.system_clock import SystemClock
from lamina.sinks.tables import open_tables
from lamina.streams.engine import Engine
from lamina.streams.errors import Fatal
from lamina.streams.llm import Reader
from lamina.streams.ports import Clock, Embedder, Metrics, Publisher, Tables, VectorStore
from lamina.streams.recall.deep.sandbox import Sandbox
from lamina.streams.settings import Settings
from lamina.streams.steps.ports import Ports


@dataclass(frozen=True, slots=True)
class Outside:
    """Everything a process is wired to."""

    ports: Ports
    publisher: Publisher
    guard: Guard
    metrics: PrometheusMetrics
    bootstrap: str | None
    reader: Reader | None
    """The chat model that answers; None: by rules."""
    upstream: Upstream | None
    """What the chat proxy passes to; None: no proxy."""
    sandbox: Sandbox | None
    """Runs the programs of `deep`; None without a chat model."""


@asynccontextmanager
async def outside(
    settings: Settings, folders: Folders, *, bootstrap: str | None, stop: Callable[[Fatal], None]
) -> AsyncIterator[Outside]:
    """Open tables, store, embedder and publisher.

    Args:
        settings: which doors, and their limits.
        folders: where the embedded ones keep their data.
        bootstrap: the broker; None opens no publisher (reading only).
        stop: told of a fault that the process cannot survive.

    Raises:
        Misconfigured, WrongDimension: a door does not open; the message says what to do.
    """
    metrics = PrometheusMetrics()
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        embedder = await open_embedder(settings, folders.cache, metrics)
        stack.push_async_callback(embedder.close)
        tables = await open_tables(folders.database_url(settings))
        stack.push_async_callback(tables.close)
        store = await _store(settings, folders.data, embedder)
        stack.push_async_callback(store.close)
        publisher: Publisher = NoBroker()
        if bootstrap is not None:
            kafka = await KafkaPublisher.open(bootstrap, settings)
            stack.push_async_callback(kafka.close)
            publisher = kafka
        guard = Guard(
            dead_letters=DeadLetters(publisher, metrics),
            tables=tables,
            metrics=metrics,
            settings=settings,
            stop=stop,
        )
        engine, reader = _models(settings, tables, clock, metrics, stack)
        ports = Ports(settings, tables, store, embedder, engine, clock, metrics)
        upstream = open_upstream(settings)
        if upstream is not None:
            stack.push_async_callback(upstream.close)
        sandbox = await _sandbox(settings, stack)
        yield Outside(ports, publisher, guard, metrics, bootstrap, reader, upstream, sandbox)


def api_of(doors: Outside, *, readiness: Readiness = nothing_more, accept_rows: bool = False) -> FastAPI:
    """Build the query service over open doors; the arguments are those of `build_api`."""
    return build_api(
        doors.ports.settings,
        tables=doors.ports.tables,
        store=doors.ports.store,
        embedder=doors.ports.embedder,
        publisher=doors.publisher,
        clock=doors.ports.clock,
        metrics=doors.metrics,
        exposition=doors.metrics.exposition,
        readiness=readiness,
        accept_rows=accept_rows,
        reader=doors.reader,
        upstream=doors.upstream,
        sandbox=doors.sandbox,
    )


async def open_embedder(settings: Settings, cache: Path, metrics: Metrics) -> Embedder:
    """Open the engine that the settings name.

    Raises:
        Misconfigured: no weights, no folder for them, or an endpoint that cannot be used.
    """
    if settings.embedder == "openai":
        # The openai package takes 0.7 s to import, which only this engine shall cost.
        from lamina.sinks.embed_openai import open_openai_embedder  # noqa: PLC0415

        return open_openai_embedder(settings, metrics)
    await asyncio.to_thread(writable, cache, "LAMINA_CACHE_DIR")
    return await open_onnx_embedder(settings, cache, metrics)


def _models(
    settings: Settings, tables: Tables, clock: Clock, metrics: Metrics, stack: AsyncExitStack
) -> tuple[Engine, Reader | None]:
    """Open what consolidates and what answers: the chat model that the settings name, else rules."""
    if not settings.llm_model:
        return ExtractiveEngine(), None
    from lamina.sinks.llm_openai import open_openai_model  # noqa: PLC0415  # as for the embedder
    from lamina.sinks.llm_prompted import PromptedEngine  # noqa: PLC0415
    from lamina.sinks.reader import open_reader  # noqa: PLC0415
    from lamina.sinks.replies import asking  # noqa: PLC0415

    model = open_openai_model(settings, metrics)
    stack.push_async_callback(model.close)
    asks = asking(model, tables, clock, metrics, settings)
    engine = PromptedEngine(asks, model.name, settings.episodic)
    return engine, open_reader(model, tables, clock, settings)


async def _sandbox(settings: Settings, stack: AsyncExitStack) -> Sandbox | None:
    """Open what runs the programs of `deep`, where there is a model to write them."""
    if not settings.llm_model:
        return None
    from lamina.sinks.sandbox import open_sandbox  # noqa: PLC0415  # as for the embedder

    sandbox = await open_sandbox(settings)
    stack.push_async_callback(sandbox.close)
    return sandbox


async def _store(settings: Settings, data: Path, embedder: Embedder) -> VectorStore:
    if settings.store:
        return await connect_edge(Path(settings.store), embedder.name, embedder.dimension)
    await asyncio.to_thread(writable, data, "--data-dir (LAMINA_DATA_DIR)")
    return await open_edge(
        data,
        embedder.name,
        embedder.dimension,
        cache_mb=settings.store_cache_mb,
        warm_mb=settings.store_warm_mb,
    )
