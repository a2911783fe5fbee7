"""MemoryChat: the proxy's promises for a program that holds the conversation itself."""

import httpx
import pytest
from openai import APIConnectionError, AsyncOpenAI, OpenAI, RateLimitError
from starlette.responses import JSONResponse

from lamina.query.chat_history import OPEN
from lamina.query.client import Client
from lamina.query.memory_chat import MemoryChat
from lamina.sinks.in_memory import InMemoryPublisher
from lamina.streams.codec import decode
from lamina.streams.errors import BrokerUnavailable
from lamina.streams.records import Turn
from tests.openai_chat import Chatting
from tests.openai_server import KEY
from tests.query.chat_kit import said, user

KEY_FACT = "My spare key is with Grace next door."


class Broker(InMemoryPublisher):
    away = False

    async def publish(self, records):
        if self.away:
            raise BrokerUnavailable("the broker is away")
        await super().publish(records)


@pytest.fixture
async def memory(world):
    world.publisher = Broker()
    async with Client(
        "http://lamina.test", transport=httpx.ASGITransport(world.api(accept_rows=True))
    ) as client:
        yield client


@pytest.fixture
def model(openai_server):
    openai_server.chat = Chatting()
    return openai_server


@pytest.fixture(params=[AsyncOpenAI, OpenAI])
def a_chat(request, model, memory):
    """A conversation with either kind of the official client."""
    opened = request.param(base_url=model.url, api_key=KEY, max_retries=0)
    return lambda **fields: MemoryChat(opened, memory, **{"user_id": "ada", "model": "m", **fields})


def kept(world):
    turns = {turn.id: turn for turn in (decode(Turn, one.value) for one in world.publisher.records)}
    return [(turn.role, turn.content) for turn in turns.values()]


async def test_it_replies_and_remembers_both_sides(world, model, a_chat):
    chat = a_chat(system="Be brief.")
    assert await chat.send("I keep bees.", temperature=0.5) == "Reply 1."
    assert [piece async for piece in chat.stream("Two hives.")] == ["Repl", "y 2."]
    assert chat.fault is None
    assert model.chat.bodies[0]["temperature"] == 0.5
    assert model.chat.messages[0] == {"role": "system", "content": "Be brief."}
    assert model.chat.messages[1:] == chat.history[:3]
    assert kept(world) == [(one["role"], one["content"]) for one in chat.history]
    assert {decode(Turn, one.value).run_id for one in world.publisher.records} == {chat.run_id}


async def test_a_conversation_that_is_begun_again_doubles_nothing(world, a_chat):
    chat = a_chat()
    await chat.send("go on")
    await chat.send("go on")
    again = a_chat(run_id=chat.run_id, history=chat.history)
    await again.send("go on")
    assert kept(world) == [(one["role"], one["content"]) for one in again.history]
    assert [words for _, words in kept(world)].count("go on") == 3


async def test_beyond_the_threshold_the_end_goes_with_what_memory_holds(world, model, a_chat):
    await world.said(KEY_FACT)
    chat = a_chat(threshold=1000, last=3, system="Be brief.")
    for number in range(4):
        await chat.send(f"question {number} " + "x" * 200)
    assert len(model.chat.messages) == 8
    await chat.send("x" * 200 + " Who has my spare key?")
    system, *talk, question = model.chat.messages
    assert (system["content"], talk) == ("Be brief.", chat.history[6:8])
    assert question["content"].startswith(OPEN)
    assert KEY_FACT in question["content"]
    assert not any(OPEN in one["content"] for one in chat.history)
    assert not any(KEY_FACT in words for _, words in kept(world))


async def test_a_chat_goes_on_without_memory_and_makes_good_later(world, a_chat):
    world.publisher.away = True
    chat = a_chat()
    assert await chat.send("I keep bees.") == "Reply 1."
    assert chat.fault == "the broker is away"
    assert kept(world) == []
    world.publisher.away = False
    await chat.send("Two hives.")
    assert chat.fault is None
    assert kept(world) == [(one["role"], one["content"]) for one in chat.history]


async def test_without_a_service_it_is_a_plain_chat(model):
    async with (
        Client("http://127.0.0.1:9") as nowhere,
        AsyncOpenAI(base_url=model.url, api_key=KEY) as client,
    ):
        chat = MemoryChat(client, nowhere, user_id="ada", model="m", recall="always")
        assert await chat.send("hi") == "Reply 1."
    assert "is it running?" in (chat.fault or "")


async def test_a_send_that_fails_is_no_part_of_the_history_and_said_again_is_said_once(world, model, a_chat):
    model.chat.replies.append(JSONResponse({"error": {"message": "slow down"}}, 429))
    chat = a_chat()
    with pytest.raises(RateLimitError):
        await chat.send("I keep bees.")
    assert chat.history == []
    await chat.send("I keep bees.")
    assert kept(world) == [("user", "I keep bees."), ("assistant", "Reply 2.")]


async def test_half_a_reply_is_not_remembered(world, model, a_chat):
    chat = a_chat()
    pieces = chat.stream("Tell me a story")
    assert await anext(pieces) == "Repl"
    await pieces.aclose()
    assert kept(world) == [("user", "Tell me a story")]
    assert chat.history == []
    model.chat.breaks_off = True
    with pytest.raises(Exception, match=r".") as fault:
        async for _ in chat.stream("Tell me a story"):
            pass
    assert not isinstance(fault.value, AssertionError)
    assert kept(world) == [("user", "Tell me a story")]


async def test_a_history_from_elsewhere_is_remembered_and_cleaned(world, a_chat):
    chat = a_chat(history=[user(f"{OPEN}\nold\n</lamina-memory>\n\nhi"), said("hello")])
    await chat.send("bye")
    assert kept(world)[:2] == [("user", "hi"), ("assistant", "hello")]
    assert chat.history[0] == user("hi")


async def test_a_model_that_is_not_there_is_the_client_s_own_fault(memory):
    async with AsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key=KEY, max_retries=0) as client:
        with pytest.raises(APIConnectionError):
            await MemoryChat(client, memory, user_id="ada", model="m").send("hi")
