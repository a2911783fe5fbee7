"""The client against a real server on a free port."""

import asyncio
import socket
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import uvicorn

from lamina.query.client import Client, ServiceError
from lamina.query.models import EventState
from lamina.streams.namespace import namespace_of
from lamina.streams.records import Status
from lamina.streams.settings import Settings

MESSAGES = [
    {"role": "user", "content": "My spare key is with Grace.", "timestamp": "2026-01-02T10:00:00Z"},
    {"role": "assistant", "content": "Noted 🔑"},
]


@pytest.fixture
async def url(world) -> AsyncIterator[str]:
    api = world.api(Settings(api_keys={"secret": "acme"}), accept_rows=True)
    server = uvicorn.Server(uvicorn.Config(api, log_level="warning", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        await task


@pytest.fixture
async def client(url) -> AsyncIterator[Client]:
    async with Client(url, api_key="secret") as client:
        yield client


async def test_the_whole_way_over_a_real_connection(world, client):
    accepted = await client.add(MESSAGES, "ada", run_id="s1", idempotency_key="k")
    assert await client.add(MESSAGES, "ada", run_id="s1", idempotency_key="k") == accepted
    states: list[EventState] = []

    async def remember():
        await asyncio.sleep(0.1)
        namespace = namespace_of("acme", "ada")
        units = await world.tables.units(namespace, accepted.turn_ids)
        kept = [
            unit.model_copy(update={"status": Status.REMEMBERED, "visible": True}) for unit in units.values()
        ]
        async with world.tables.transaction([namespace]) as tx:
            await tx.update_units(kept)
        await world.keep(kept)
        async with world.tables.transaction([namespace]) as tx:
            await tx.mark_indexed(kept)

    remembering = asyncio.create_task(remember())
    state = await client.wait_until_done(accepted.event_id, timeout_seconds=10, progress=states.append)
    await remembering
    assert state.status == "remembered"
    assert states[0].status == "accepted"
    assert states[-1] == state

    found = await client.search("where is the spare key", "ada", include=["turns"])
    assert found.results[0].id == accepted.turn_ids[0]
    assert [turn.id for turn in found.results[0].turns or []] == accepted.turn_ids[:1]
    assert "Grace" in (await client.context("spare key", "ada", max_tokens=200)).context
    assert "Grace" in (await client.answer("Who has the spare key?", "ada")).answer


async def test_waiting_ends_at_its_deadline(client):
    accepted = await client.add(MESSAGES, "ada")
    with pytest.raises(ServiceError, match="2 of 2 turns are not done"):
        await client.wait_until_done(accepted.event_id, timeout_seconds=0.1)


async def test_a_refusal_is_the_services_own_sentence(client, url):
    with pytest.raises(ServiceError, match="top_k") as refused:
        await client.search("x", "ada", top_k=5000)
    assert (refused.value.status, refused.value.transient) == (422, False)
    with pytest.raises(ServiceError, match="no event"):
        await client.wait_until_done(uuid4(), timeout_seconds=5)
    async with Client(url, api_key="wrong") as stranger:
        with pytest.raises(ServiceError, match="not known"):
            await stranger.search("x", "ada")


async def test_a_service_that_is_not_there_is_said_not_to_be_there():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with Client(f"http://127.0.0.1:{port}") as client:
        with pytest.raises(ServiceError, match="is it running") as away:
            await client.search("x", "ada")
    assert away.value.transient
