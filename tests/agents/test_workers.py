"""The same agents as separate workers, by configuration alone: any Kafka, any database, one store."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer

from lamina.agents.demo import sample
from lamina.query.client import Client, ServiceError
from lamina.sinks.broker_embedded import start_broker
from lamina.streams.codec import decode
from lamina.streams.records import Change

from .test_restart import by_session, send, wait_for


@asynccontextmanager
async def a_worker(*words: str, environment: dict[str, str], says: bytes | None):
    """One `lamina` process; waits for the words that it prints when it is up."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "lamina.agents.cli", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "COLUMNS": "300", **environment},
    )
    try:
        line = b""
        if says is not None:
            async with asyncio.timeout(60):
                while says not in line:
                    line = await process.stdout.readline()
                    assert line, f"lamina {words} ended before it was up"
        yield line.decode()
        process.terminate()
        await asyncio.wait_for(process.wait(), 40)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.broker
async def test_three_workers_over_kafka_and_postgresql_remember_answer_and_report_changes(
    tmp_path: Path, weights_cache: Path, postgres_server
) -> None:
    turns = sample().turns[:80]
    socket = tmp_path / "store.socket"
    async with AsyncExitStack() as stack:
        broker = await start_broker(tmp_path)
        stack.push_async_callback(broker.stop)
        environment = {
            "LAMINA_BROKER": broker.bootstrap,
            "LAMINA_DATABASE": await postgres_server.new_database(),
            "LAMINA_STORE": str(socket),
            "LAMINA_DATA_DIR": str(tmp_path / "data"),
            "LAMINA_SESSION_TIMEOUT_SECONDS": "2",
            "LAMINA_HTTP_PORT": "0",
            "LAMINA_API_KEYS": '{"secret": "acme", "other": "globex"}',
        }
        await stack.enter_async_context(a_worker("store", environment=environment, says=None))
        async with asyncio.timeout(30):
            while not socket.exists():
                await asyncio.sleep(0.05)
        for part in ("ingest", "consolidate"):
            words = ("worker", part)
            await stack.enter_async_context(a_worker(*words, environment=environment, says=b"is up"))
        up = a_worker("worker", "query", environment=environment, says=b"is up at ")
        url = (await stack.enter_async_context(up)).split(" at ")[1].strip()
        client = await stack.enter_async_context(Client(url, api_key="secret"))
        stranger = await stack.enter_async_context(Client(url, api_key="other"))
        events = [event for session in by_session(turns) for event in await send(client, session)]
        await wait_for(client, events)
        async with asyncio.timeout(60):  # the fact is found when consolidation has written it
            while not (answer := await client.answer("What is Nora allergic to?", "nora")).grounded:
                await asyncio.sleep(0.2)
        assert "penicillin" in answer.answer
        async with asyncio.timeout(60):
            kinds: set[str] = set()
            while not {"episode", "fact"} & kinds:
                found = await client.search("half marathon training", "nora", top_k=20)
                kinds = {result.kind for result in found.results}
                await asyncio.sleep(0.2)
        assert (await stranger.search("What is Nora allergic to?", "nora")).results == []
        with pytest.raises(ServiceError):
            await stranger.event(events[0])
        changes = await read_changes(broker.bootstrap)
        assert {change.type for change in changes} >= {"created"}
        # Two workers relay one outbox: a change may come twice, and none is missing.
        seqs = {change.seq for change in changes}
        assert seqs == set(range(1, max(seqs) + 1))


async def read_changes(bootstrap: str) -> list[Change]:
    consumer = AIOKafkaConsumer("lamina.changes", bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        found = []
        while batches := await consumer.getmany(timeout_ms=3000):
            found += [decode(Change, record.value) for batch in batches.values() for record in batch]
        return found
    finally:
        await consumer.stop()
