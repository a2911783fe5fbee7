"""One conversation in memory, as the benchmark of recall asks it."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from lamina.bench.conversation import Conversation
from lamina.bench.replay import namespace_for, placements_of, replay
from lamina.sinks.in_memory import FixedClock, InMemoryMetrics, InMemoryStore
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.qdrant_edge import open_edge
from lamina.sinks.tables import open_tables
from lamina.streams.identity import turn_id_from_message
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Embedder, Tables, VectorStore
from lamina.streams.records import Placement, Unit
from lamina.streams.settings import Settings
from lamina.streams.steps.embed import embed
from lamina.streams.steps.gate import gate
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.remember import RecurrenceCache, remember


@dataclass(frozen=True, slots=True)
class Memory:
    """What a strategy may read, and the names by which its results are checked."""

    conversation: str
    """The data set's name of it."""
    namespace: Namespace
    tables: Tables
    store: VectorStore
    embedder: Embedder
    settings: Settings
    turns: tuple[Unit, ...]
    """Every turn that was said, gated ones too, in order: what the plain baselines rank."""
    names: Mapping[UUID, str]
    """The data set's names of the turns, by id."""
    asked_at: datetime
    """When the questions are asked: what the data set says, else the time of the last turn."""


@asynccontextmanager
async def remembered(
    conversation: Conversation,
    embedder: Embedder,
    settings: Settings,
    *,
    edge: bool,
    told: Callable[[int], None],
) -> AsyncIterator[Memory]:
    """Play a conversation into a fresh memory without a language model, and give it.

    Args:
        conversation: all of its turns are played, in order.
        embedder: of turns and questions.
        settings: of the pipeline.
        edge: keep vectors in Qdrant Edge, in a process of its own; else in this process.
        told: the number of turns of each batch that was taken.
    """
    placements = placements_of(conversation)
    clock, metrics = FixedClock(placements[0].said_at), InMemoryMetrics()
    with TemporaryDirectory(prefix="lamina-bench-", ignore_cleanup_errors=True) as folder:
        tables = await open_tables(f"sqlite+aiosqlite:///{folder}/tables.db")
        try:
            store: VectorStore = InMemoryStore(embedder.dimension)
            if edge:
                store = await open_edge(Path(folder), embedder.name, embedder.dimension)
            try:
                ports = Ports(settings, tables, store, embedder, ExtractiveEngine(), clock, metrics)
                await _play(placements, ports, clock, told)
                yield await _memory(conversation, ports)
            finally:
                await store.close()
        finally:
            await tables.close()


async def _play(
    placements: list[Placement], ports: Ports, clock: FixedClock, told: Callable[[int], None]
) -> None:
    cache = RecurrenceCache(ports.settings.recurrence_cache_exchanges)

    async def take(batch: Sequence[Placement]) -> None:
        judged = await gate(batch, ports)
        if judged.forwarded:
            await remember(await embed(judged.forwarded, ports), ports, cache)

    await replay(placements, take, ports, clock, told)


async def _memory(conversation: Conversation, ports: Ports) -> Memory:
    namespace = namespace_for(conversation)
    names = {turn_id_from_message(namespace, turn.id): turn.id for turn in conversation.turns}
    units = await ports.tables.units(namespace, names.keys())
    turns = tuple(sorted(units.values(), key=lambda unit: unit.position))
    asked_at = conversation.asked_at or turns[-1].said_at
    return Memory(
        conversation=conversation.id,
        namespace=namespace,
        tables=ports.tables,
        store=ports.store,
        embedder=ports.embedder,
        settings=ports.settings,
        turns=turns,
        names=names,
        asked_at=asked_at,
    )
