"""The Faust wiring and the plain loop give the same memory, whatever the batches and the timing."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lamina.agents.demo import sample
from lamina.agents.embedded import embedded
from lamina.sinks.embed_onnx import open_onnx_embedder
from lamina.sinks.in_memory import FixedClock, InMemoryMetrics
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.qdrant_edge import open_edge
from lamina.sinks.tables import open_tables
from lamina.streams import flow
from lamina.streams.codec import encode
from lamina.streams.facts import replaces
from lamina.streams.identity import turn_id_from_message
from lamina.streams.namespace import namespace_of
from lamina.streams.placement import arrive
from lamina.streams.ports import Outgoing
from lamina.streams.records import Placement, Status, Turn
from lamina.streams.settings import Settings
from lamina.streams.steps.ports import Ports
from lamina.streams.topics import TURNS

from .dump import differences, dump, weights

NAMESPACE = namespace_of("local", "nora")
NOW = datetime(2026, 8, 1, tzinfo=UTC)


def placements(turns: Sequence[Turn]) -> list[Placement]:
    return [
        arrive(NAMESPACE, turn, fallback_id=turn_id_from_message(NAMESPACE, turn.message_id), received_at=NOW)
        for turn in turns
    ]


async def by_loop(turns: Sequence[Turn], folder: Path, cache: Path, batch_size: int):
    settings = Settings(batch_size=batch_size, topology=False)
    metrics = InMemoryMetrics()
    embedder = await open_onnx_embedder(settings, cache, metrics)
    tables = await open_tables(f"sqlite+aiosqlite:///{folder / 'loop.db'}")
    store = await open_edge(folder, embedder.name, embedder.dimension)
    try:
        ports = Ports(settings, tables, store, embedder, ExtractiveEngine(), FixedClock(NOW), metrics)
        await flow.run(placements(turns), ports, replaces, batch_size=batch_size)
    finally:
        await store.close()
        await tables.close()
        await embedder.close()
    return dump(folder / "loop.db")


async def by_faust(turns: Sequence[Turn], folder: Path, cache: Path, batch_size: int, pause: float):
    # What stands in topology's buffer when it looks depends on how fast commands were carried out.
    settings = Settings(
        data_dir=str(folder), cache_dir=str(cache), http_port=0, batch_size=batch_size, topology=False
    )
    async with embedded(settings) as running:
        for start in range(0, len(turns), 10):
            part = turns[start : start + 10]
            records = [Outgoing(TURNS, NAMESPACE, encode(turn)) for turn in part]
            await running.outside.publisher.publish(records)
            await asyncio.sleep(pause)
        async with asyncio.timeout(90):
            while not await settled(running.outside.ports.tables, len(turns)):
                await asyncio.sleep(0.1)
    return dump(folder / "lamina.db")


async def settled(tables, total: int) -> bool:
    tally = await tables.tally()
    done = sum(count for status, count in tally.turns.items() if Status(status).terminal)
    return done == total and not tally.open_commands and not tally.outbox_waiting and not tally.index_waiting


@pytest.mark.broker
async def test_faust_and_the_loop_give_the_same_memory(tmp_path: Path, weights_cache: Path) -> None:
    turns = sample().turns
    runs = {}
    for name in ("whole", "small", "faust", "slow"):
        (tmp_path / name).mkdir()
    runs["loop in batches of 64"] = await by_loop(turns, tmp_path / "whole", weights_cache, 64)
    runs["loop in batches of 7"] = await by_loop(turns, tmp_path / "small", weights_cache, 7)
    runs["faust, all at once"] = await by_faust(turns, tmp_path / "faust", weights_cache, 64, 0.0)
    runs["faust, in drips"] = await by_faust(turns, tmp_path / "slow", weights_cache, 5, 0.3)
    expected = runs.pop("loop in batches of 64")
    assert len(expected["commands"]) >= 3
    assert any(row[1] == "episode" for row in expected["units"])
    for name, found in runs.items():
        unlike = differences(expected, found)
        assert not unlike, f"{name}:\n" + "\n".join(unlike)
    expected_weights = weights(tmp_path / "whole" / "loop.db")
    for folder in ("faust", "slow"):
        assert weights(tmp_path / folder / "lamina.db") == pytest.approx(expected_weights, abs=1e-4)


@pytest.mark.broker
async def test_turns_that_come_again_change_nothing(tmp_path: Path, weights_cache: Path) -> None:
    turns = sample().turns[:60]
    once = await by_loop(turns, _folder(tmp_path, "once"), weights_cache, 16)
    again = await by_loop([*turns, *turns[::-1], *turns], _folder(tmp_path, "again"), weights_cache, 16)
    assert differences(once, again) == []


def _folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name
