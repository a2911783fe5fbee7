"""What chats cost of a tenant's budget."""

import asyncio
from datetime import timedelta

import openai
import pytest
from starlette.responses import JSONResponse

from lamina.query.chat_budget import REPLY_TOKENS
from lamina.sinks.in_memory import FixedClock
from lamina.streams.errors import TablesUnavailable
from lamina.streams.journal import Budget
from tests.query.chat_kit import proxying, user
from tests.query.conftest import NOON

HOUR = Budget(5_000, 3_600)
LIMITS = {"llm_budget_tokens": HOUR.tokens, "llm_budget_window_seconds": HOUR.window_seconds}


@pytest.fixture
async def proxy(world, openai_server):
    async with proxying(world, openai_server, **LIMITS) as running:
        yield running


async def settled(world, tokens: int) -> None:
    """Wait until the tenant has spent so much: a chat's settling goes on beside it."""
    async with asyncio.timeout(10):
        while await world.tables.spent("local", HOUR, NOON) != tokens:
            await asyncio.sleep(0.01)


async def test_a_chat_costs_what_the_endpoint_says(world, proxy):
    await proxy.ask([user("I keep bees.")])
    await settled(world, 2)
    await proxy.raw([user("A title, please.")], headers={"X-Lamina-Memory": "off"})
    await settled(world, 4)


async def test_a_stream_that_does_not_say_costs_its_length(world, proxy):
    proxy.chat.replies.append("b" * 400)
    async with proxy.client() as client:
        stream = await client.chat.completions.create(
            model="m", messages=[user("a" * 800)], user="ada", stream=True
        )
        async for _ in stream:
            pass
    await settled(world, 200 + 100)


async def test_what_an_endpoint_did_not_answer_is_not_owed(world, proxy):
    proxy.chat.replies.append(JSONResponse({"error": {"message": "slow down"}}, 429))
    with pytest.raises(openai.RateLimitError, match="slow down"):
        await proxy.ask([user("I keep bees.")])
    await settled(world, 0)


async def test_a_spent_budget_is_told_before_anything_is_asked(world, openai_server):
    await world.tables.hold_tokens("local", HOUR.tokens - REPLY_TOKENS, HOUR, NOON)
    async with proxying(world, openai_server, **LIMITS) as proxy:
        with pytest.raises(openai.RateLimitError, match="has spent its 5,000 tokens") as told:
            await proxy.ask([user("I keep bees.")])
        assert told.value.response.headers["retry-after"] == "3600"
        assert told.value.code == "budget_spent"
        assert proxy.chat.bodies == []
        # a short reply still fits
        await proxy.ask([user("I keep bees.")], max_completion_tokens=100)
    world.clock = FixedClock(NOON + timedelta(hours=1))
    async with proxying(world, openai_server, **LIMITS) as proxy:
        await proxy.ask([user("I keep bees.")])


async def test_a_chat_goes_on_where_the_budget_cannot_be_looked_up(world, openai_server):
    class Away:
        def __getattr__(self, name):
            raise TablesUnavailable("the database is away")

    async with proxying(world, openai_server, ports={"tables": Away()}, **LIMITS) as proxy:
        assert await proxy.ask([user("I keep bees.")]) == "Reply 1."
