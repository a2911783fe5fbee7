"""SIGKILL at any moment: every accepted turn is remembered once, without sending anything again."""

import asyncio
import os
import signal
import sqlite3
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import psutil
import pytest

from lamina.agents.demo import sample
from lamina.query.client import Client
from lamina.streams.records import Turn

from .dump import differences, dump

USER = "nora"


@asynccontextmanager
async def lamina_up(data_dir: Path):
    """A system in a process of its own, as `lamina up` runs it; killed when the block ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "lamina.agents.cli", "up", "--data-dir", str(data_dir), "--port", "0"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "COLUMNS": "300"},
    )
    try:
        async with asyncio.timeout(60):
            while b"lamina is up at " not in (line := await process.stdout.readline()):
                assert line, "lamina up ended before it was up"
        yield process, line.split(b" at ")[1].split()[0].decode()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def send(client: Client, turns: tuple[Turn, ...]) -> list[UUID]:
    """Send turns in requests of five; return the events that were accepted before the system went away."""
    events = []
    for start in range(0, len(turns), 5):
        part = turns[start : start + 5]
        messages = [
            {
                "role": turn.role,
                "name": turn.name,
                "content": turn.content,
                "message_id": turn.message_id,
                "timestamp": turn.timestamp.isoformat(),
            }
            for turn in part
        ]
        events.append((await client.add(messages, USER, run_id=part[0].run_id)).event_id)
    return events


async def wait_for(client: Client, events: list[UUID]) -> None:
    for event in events:
        state = await client.wait_until_done(event, timeout_seconds=90)
        assert state.status in {"remembered", "gated", "consolidated"}


async def wait_until_quiet(database: Path) -> None:
    """Wait until no command and no record waits; the kill was without warning, so much may be left."""
    queries = (
        "SELECT count(*) FROM commands WHERE state IN ('issued', 'planned')",
        "SELECT count(*) FROM outbox",
        "SELECT count(*) FROM units WHERE dirty",
    )
    async with asyncio.timeout(90):
        while True:
            with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
                if not any(connection.execute(query).fetchone()[0] for query in queries):
                    return
            await asyncio.sleep(0.2)


def by_session(turns: tuple[Turn, ...]) -> list[tuple[Turn, ...]]:
    sessions = dict.fromkeys(turn.run_id for turn in turns)
    return [tuple(turn for turn in turns if turn.run_id == session) for session in sessions]


@pytest.mark.broker
@pytest.mark.parametrize("seconds", [0.3, 1.2])
async def test_sigkill_during_ingest_loses_and_doubles_nothing(
    tmp_path: Path, weights_cache: Path, seconds: float
) -> None:
    turns = sample().turns
    accepted: list[UUID] = []
    children: list[int] = []
    async with lamina_up(tmp_path) as (process, url), Client(url) as client:
        for session in by_session(turns):
            accepted += await send(client, session)
        await asyncio.sleep(seconds)
        children = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
        process.send_signal(signal.SIGKILL)
        await process.wait()
    assert len(children) >= 2
    async with asyncio.timeout(10):
        while any(psutil.pid_exists(child) for child in children):
            await asyncio.sleep(0.05)
    async with lamina_up(tmp_path) as (process, url), Client(url) as client:
        await wait_for(client, accepted)
        await wait_until_quiet(tmp_path / "lamina.db")
        first = await client.search("What is Nora allergic to?", USER, top_k=3)
        before = dump(tmp_path / "lamina.db")
        said = [row for row in before["units"] if row[1] == "turn"]
        assert len(said) == len(turns)
        assert sorted(str(row[7]) for row in said) == sorted(turn.content for turn in turns)
        for session in by_session(turns):
            await wait_for(client, await send(client, session))
        await wait_until_quiet(tmp_path / "lamina.db")
        assert differences(before, dump(tmp_path / "lamina.db")) == []
        process.terminate()
        assert await process.wait() == 0
    async with lamina_up(tmp_path) as (process, url), Client(url) as client:
        again = await client.search("What is Nora allergic to?", USER, top_k=3)
        assert again.results == first.results
