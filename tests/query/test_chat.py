"""The chat proxy: it passes everything on, remembers what was said, and never fails because memory does."""

import asyncio
import json

import httpx
import openai
import pytest
from starlette.responses import JSONResponse, Response

from lamina.query.chat_upstream import open_upstream
from lamina.sinks.in_memory import InMemoryPublisher, InMemoryStore
from lamina.streams.errors import BrokerUnavailable, StoreUnavailable, TablesUnavailable
from lamina.streams.settings import Settings
from tests.openai_server import KEY
from tests.query.chat_kit import pieces_of, proxying, said, user

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Lisbon"}'}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "18 degrees"}


@pytest.fixture
async def proxy(world, openai_server):
    async with proxying(world, openai_server) as running:
        yield running


async def test_a_chat_passes_unchanged_and_both_sides_are_remembered(proxy):
    assert await proxy.ask([user("I keep bees.")]) == "Reply 1."
    assert proxy.chat.messages == [user("I keep bees.")]
    assert proxy.kept == [("user", "I keep bees."), ("assistant", "Reply 1.")]


async def test_the_answer_says_what_memory_did_and_the_event_can_be_asked_for(proxy):
    raw = await proxy.raw([user("I keep bees.")])
    assert raw.headers["X-Lamina-Context"] == "unchanged"
    assert raw.headers["X-Lamina-Remembered"] == "said, reply"
    assert "X-Lamina-Fault" not in raw.headers
    assert raw.headers["x-request-id"] == "req-1"
    async with httpx.AsyncClient(base_url=proxy.url) as http:
        event = (await http.get(f"/v1/events/{raw.headers['X-Lamina-Event-Id']}")).json()
        metrics = (await http.get("/metrics")).text
    assert 'lamina_chats_total{context="unchanged"} 1.0' in metrics
    for what in ("said", "reply"):
        assert f'lamina_chats_remembered_total{{outcome="kept",what="{what}"}} 1.0' in metrics
    assert [turn["status"] for turn in event["turns"]] == ["accepted"]


async def test_fields_that_lamina_does_not_know_pass_untouched(proxy):
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    await proxy.ask(
        [user("Weather?")],
        tools=tools,
        temperature=0.3,
        response_format={"type": "json_object"},
        extra_body={"top_k_of_some_server": 7, "metadata": {"lamina_run_id": "r", "team": "x"}},
    )
    body = proxy.chat.bodies[-1]
    assert body["tools"] == tools
    assert (body["temperature"], body["response_format"]) == (0.3, {"type": "json_object"})
    assert (body["top_k_of_some_server"], body["metadata"]) == (7, {"team": "x"})
    assert (body["model"], body["user"]) == ("m", "ada")


async def test_the_configured_model_stands_in_for_lamina(world, openai_server):
    async with proxying(world, openai_server, chat_model="big") as proxy, proxy.client() as client:
        await client.chat.completions.create(model="lamina", messages=[user("hi")], user="ada")
        await client.chat.completions.create(model="other", messages=[user("hi")], user="ada")
    assert [body["model"] for body in proxy.chat.bodies] == ["big", "other"]


async def test_a_stream_passes_and_is_remembered_when_it_ends(proxy):
    proxy.chat.replies.append("Die Bienen 🐝 schlafen.")
    async with proxy.client() as client:
        stream = await client.chat.completions.create(
            model="m", messages=[user("And now?")], user="ada", stream=True
        )
        assert [piece async for piece in pieces_of(stream)] == ["Die Bienen ", "🐝 schlafen."]
    assert proxy.kept == [("user", "And now?"), ("assistant", "Die Bienen 🐝 schlafen.")]


async def test_a_stream_comes_as_it_is_said_not_at_its_end(proxy):
    proxy.chat.holds = True
    async with proxy.client() as client:
        stream = await client.chat.completions.create(
            model="m", messages=[user("Tell me")], user="ada", stream=True
        )
        async with asyncio.timeout(10):
            assert await anext(pieces_of(stream)) == "Repl"
        await stream.close()


async def test_a_client_that_hangs_up_is_remembered_without_half_a_reply(proxy):
    proxy.chat.holds = True
    async with proxy.client() as client:
        stream = await client.chat.completions.create(
            model="m", messages=[user("Tell me a long story")], user="ada", stream=True
        )
        await anext(pieces_of(stream))
        await stream.close()
    async with asyncio.timeout(10):
        while not proxy.chat.hung_up:  # the upstream's answer is ended too: nobody pays for the rest
            await asyncio.sleep(0.01)
    assert proxy.kept == [("user", "Tell me a long story")]
    proxy.chat.holds = False
    # the client kept the half: then it is part of the conversation
    await proxy.ask([user("Tell me a long story"), said("Once upon"), user("go on")])
    assert proxy.kept[1:] == [("assistant", "Once upon"), ("user", "go on"), ("assistant", "Reply 2.")]


async def test_a_stream_that_breaks_off_is_an_error_not_an_end(proxy):
    proxy.chat.breaks_off = True
    async with proxy.client() as client:
        stream = await client.chat.completions.create(
            model="m", messages=[user("Tell me")], user="ada", stream=True
        )
        with pytest.raises(openai.APIError, match="broke off"):
            async for _ in stream:
                pass
    assert proxy.kept == [("user", "Tell me")]


async def test_a_stream_without_an_end_marker_is_remembered_when_it_is_finished(proxy):
    proxy.chat.marks_end = False
    async with proxy.client() as client:
        stream = await client.chat.completions.create(
            model="m", messages=[user("Hello")], user="ada", stream=True
        )
        assert "".join([piece async for piece in pieces_of(stream)]) == "Reply 1."
    assert proxy.kept == [("user", "Hello"), ("assistant", "Reply 1.")]


async def test_the_stream_s_bytes_are_the_upstream_s(proxy):
    proxy.chat.raw = (
        b": a comment\r\n\r\nevent: x\r\ndata: "
        + json.dumps({"choices": [{"index": 0, "delta": {"content": "Gr\u00fcezi"}}]}).encode()
        + b"\r\n\r\n"
        + b'data:{"choices":[{"index":0,"delta":{"content":" wohl"},"finish_reason":"stop"}]}\n\n'
        + b'data: {"choices": [], "usage": {"total_tokens": 3}}\n\ndata: [DONE]\n\n'
    )
    async with httpx.AsyncClient(base_url=proxy.url) as http:
        answer = await http.post(
            "/v1/chat/completions", json={"messages": [user("hi")], "user": "ada", "stream": True}
        )
    assert answer.content == proxy.chat.raw
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert proxy.kept[-1] == ("assistant", "Grüezi wohl")


async def test_tools_pass_both_ways_and_only_words_are_remembered(proxy):
    proxy.chat.replies.extend([CALLING, "It is 18 degrees."])
    asked = [user("How warm is it in Lisbon?")]
    async with proxy.client() as client:
        first = await client.chat.completions.create(model="m", messages=asked, user="ada")
        assert first.choices[0].message.tool_calls[0].function.name == "weather"
        second = await client.chat.completions.create(
            model="m", messages=[*asked, CALLING, RESULT], user="ada"
        )
    assert second.choices[0].message.content == "It is 18 degrees."
    assert proxy.chat.messages == [*asked, CALLING, RESULT]
    assert proxy.kept == [("user", "How warm is it in Lisbon?"), ("assistant", "It is 18 degrees.")]


async def test_of_several_choices_the_one_that_comes_back_is_remembered(proxy):
    proxy.chat.choices = 2
    await proxy.raw([user("Name a bee")], n=2)
    assert proxy.kept == [("user", "Name a bee")]
    proxy.chat.choices = 1
    await proxy.ask([user("Name a bee"), said("Maya"), user("Another")])
    assert proxy.kept[1] == ("assistant", "Maya")


async def test_whose_memory_is_told_by_field_or_header_and_the_tenant_by_the_key(world, openai_server):
    keys = {"key-a": "acme", "key-b": "globex"}
    async with proxying(world, openai_server, api_keys=keys) as proxy:
        for key in keys:
            async with proxy.client(key) as client:
                await client.chat.completions.create(model="m", messages=[user("hi")], user="ada")
        async with httpx.AsyncClient(base_url=proxy.url) as http:
            await http.post(
                "/v1/chat/completions",
                json={"messages": [user("hi")], "user": "someone else"},
                headers={"X-API-Key": "key-a", "X-Lamina-User": "Zoë".encode()},
            )
        async with proxy.client("wrong") as client:
            with pytest.raises(openai.AuthenticationError, match="not known"):
                await client.chat.completions.create(model="m", messages=[user("hi")], user="ada")
            with pytest.raises(openai.AuthenticationError):
                await client.models.list()
    assert [record.key for record in world.publisher.records[::2]] == [
        "acme/ada",
        "globex/ada",
        "acme/Zo%C3%AB",
    ]
    assert len(proxy.chat.bodies) == 3


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"user": "ada"}', "messages"),
        (b'{"user": "ada", "messages": []}', "messages"),
        (b'{"user": "ada", "messages": ["hi"]}', "messages"),
        (b'{"messages": [{"role": "user", "content": "hi"}]}', "X-Lamina-User"),
        (b'{"messages": [{"role": "user", "content": "hi"}], "user": 7}', "X-Lamina-User"),
        (b'{"messages": [{"role": "user"}], "user": "%s"}' % (b"x" * 800), "768"),
        (b'{"messages": [{"role": "user"}], "user": "a", "metadata": {"lamina_run_id": 7}}', "lamina_run_id"),
        (b'{"messages": [{"role": "user", "content": "\\ud800"}], "user": "ada"}', "not JSON"),
    ],
)
async def test_a_request_that_breaks_a_rule_says_so_in_openai_s_shape(proxy, body, says):
    async with httpx.AsyncClient(base_url=proxy.url) as http:
        answer = await http.post("/v1/chat/completions", content=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert says in error["message"]
    assert error["type"] == "invalid_request_error"
    assert not proxy.chat.bodies


async def test_memory_can_be_declined(proxy):
    messages = [user("Give this chat a title")]
    off = await proxy.raw(messages, headers={"X-Lamina-Memory": "off"}, user=openai.NOT_GIVEN)
    read = await proxy.raw(messages, headers={"X-Lamina-Memory": "read"})
    with pytest.raises(openai.BadRequestError, match="on, read and off"):
        await proxy.raw(messages, headers={"X-Lamina-Memory": "maybe"})
    assert off.headers["X-Lamina-Context"] == "off"
    assert read.headers["X-Lamina-Remembered"] == "nothing"
    assert proxy.kept == []


async def test_faults_of_the_endpoint_keep_their_status_and_words(proxy):
    proxy.chat.replies.append(
        JSONResponse({"error": {"message": "slow down", "code": "rate"}}, 429, {"retry-after": "7"})
    )
    with pytest.raises(openai.RateLimitError, match="slow down") as busy:
        await proxy.ask([user("I keep bees.")])
    assert busy.value.response.headers["retry-after"] == "7"
    assert busy.value.response.headers["X-Lamina-Remembered"] == "said"
    proxy.chat.replies.append(Response("<html>oops", 500))
    with pytest.raises(openai.InternalServerError, match="answered 500"):
        await proxy.ask([user("I keep bees.")])
    proxy.chat.replies.append(JSONResponse({"error": {"message": "too long", "code": "length"}}, 400))
    with pytest.raises(openai.BadRequestError, match="too long"):
        await proxy.ask([user("I keep bees.")], stream=True)
    # said once, however often the client tried
    assert proxy.kept == [("user", "I keep bees.")]


async def test_a_wrong_key_of_ours_is_not_the_client_s_fault_and_stays_secret(world, openai_server):
    async with proxying(world, openai_server, llm_api_key="sk-wrong") as proxy:
        with pytest.raises(openai.InternalServerError, match="LAMINA_CHAT_API_KEY") as fault:
            await proxy.ask([user("hi")])
        assert fault.value.status_code == 502
        openai_server.chat.replies.append(JSONResponse({"error": {"message": "hm"}}, 400))
    async with proxying(world, openai_server) as proxy:
        proxy.chat.replies.clear()
        proxy.chat.replies.append(JSONResponse({"error": {"message": f"bad {KEY}"}}, 400))
        with pytest.raises(openai.BadRequestError, match=r"bad \*\*\*"):
            await proxy.ask([user("hi")])


async def test_an_endpoint_that_does_not_answer_is_502_and_what_was_said_is_kept(world, openai_server):
    async with proxying(world, openai_server, llm_base_url="http://127.0.0.1:9/v1") as proxy:
        with pytest.raises(openai.InternalServerError, match="no answer of the chat endpoint") as fault:
            await proxy.ask([user("I keep bees.")])
    assert fault.value.status_code == 502
    assert fault.value.response.headers["X-Lamina-Remembered"] == "said"
    assert proxy.kept == [("user", "I keep bees.")]


async def test_too_many_chats_at_once_are_told_to_come_again(world, openai_server, monkeypatch):
    monkeypatch.setattr("lamina.query.chat_upstream.WAIT_SECONDS", 0.05)
    async with (
        proxying(world, openai_server, chat_calls_at_once=1) as proxy,
        proxy.client() as client,
    ):
        proxy.chat.holds = True
        held = await client.chat.completions.create(
            model="m", messages=[user("long")], user="ada", stream=True
        )
        with pytest.raises(openai.InternalServerError, match="CHAT_CALLS_AT_ONCE") as fault:
            await proxy.ask([user("me too")])
        assert (fault.value.status_code, fault.value.response.headers["retry-after"]) == (503, "1")
        await held.close()


async def test_without_an_endpoint_the_proxy_says_what_to_set(http):
    for answer in (
        await http.post("/v1/chat/completions", json={"messages": [user("hi")], "user": "ada"}),
        await http.get("/v1/models"),
    ):
        assert answer.status_code == 501
        assert "LAMINA_LLM_BASE_URL" in answer.json()["error"]["message"]


async def test_the_list_of_models_passes_through(proxy):
    async with proxy.client() as client:
        assert [model.id async for model in client.models.list()] == ["test-model"]


async def test_a_key_goes_to_its_own_endpoint_alone():
    both = Settings(
        llm_base_url="http://a/v1", llm_api_key="sk-a", llm_model="m", chat_base_url="http://b/v1"
    )
    upstream = open_upstream(both)
    assert upstream is not None
    assert "authorization" not in upstream._http.headers
    assert upstream.model == ""
    await upstream.close()
    assert open_upstream(Settings()) is None
    assert open_upstream(both.model_copy(update={"chat_enabled": False})) is None


class Away:
    """Tables of which nothing comes."""

    def __getattr__(self, name):
        raise TablesUnavailable("the database is away")


async def test_a_chat_goes_on_without_tables_and_says_so(world, openai_server):
    await world.said("My bees live in Lisbon.")
    async with proxying(world, openai_server, chat_threshold_characters=0, ports={"tables": Away()}) as proxy:
        raw = await proxy.raw([user("I keep bees.")])
        assert raw.parse().choices[0].message.content == "Reply 1."
        assert raw.headers["X-Lamina-Context"] == "unavailable"
        assert raw.headers["X-Lamina-Remembered"] == "nothing"
        assert raw.headers["X-Lamina-Fault"] == "the database is away"
    assert proxy.chat.messages == [user("I keep bees.")]


async def test_a_chat_goes_on_without_recall_and_remembers(world, openai_server):
    class NoStore(InMemoryStore):
        async def search(self, queries):
            raise StoreUnavailable("the store is away")

        async def pool(self, query):
            raise StoreUnavailable("the store is away")

    async with proxying(
        world, openai_server, chat_threshold_characters=0, ports={"store": NoStore()}
    ) as proxy:
        raw = await proxy.raw([user("I keep bees.")])
    assert raw.headers["X-Lamina-Context"] == "unavailable"
    assert raw.headers["X-Lamina-Remembered"] == "said, reply"
    assert raw.headers["X-Lamina-Fault"] == "the store is away"


@pytest.mark.parametrize("fault", [BrokerUnavailable("the broker is away"), RuntimeError("secret")])
async def test_what_an_outage_left_out_is_remembered_with_the_next_request(world, openai_server, fault):
    class Sometimes(InMemoryPublisher):
        away = True

        async def publish(self, records):
            if self.away:
                raise fault
            await super().publish(records)

    world.publisher = Sometimes()
    history = [user("I keep bees."), said("Reply 1."), user("In Lisbon.")]
    async with proxying(world, openai_server) as proxy:
        raw = await proxy.raw(history[:1])
        assert raw.headers["X-Lamina-Remembered"] == "nothing"
        assert "secret" not in raw.headers["X-Lamina-Fault"]
        async with httpx.AsyncClient(base_url=proxy.url) as http:
            body = {"messages": history[:1], "user": "ada", "stream": True}
            stream = await http.post("/v1/chat/completions", json=body)
        assert stream.headers["X-Lamina-Remembered"] == "nothing"
        assert ": the reply is not remembered: " in stream.text  # a comment, which clients skip
        assert stream.text.endswith("data: [DONE]\n\n")
        world.publisher.away = False
        await proxy.ask(history)
    assert proxy.kept == [(one["role"], one["content"]) for one in history] + [("assistant", "Reply 3.")]


async def test_a_chat_does_not_wait_for_slow_memory(world, openai_server):
    class Slow(InMemoryPublisher):
        async def publish(self, records):
            await asyncio.sleep(0.5)
            await super().publish(records)

    world.publisher = Slow()
    async with proxying(world, openai_server, chat_memory_seconds=0.05) as proxy:
        raw = await proxy.raw([user("I keep bees.")])
        assert raw.headers["X-Lamina-Remembered"] == "nothing"
        assert "within 0.05 s" in raw.headers["X-Lamina-Fault"]
        async with asyncio.timeout(10):
            while not proxy.kept:  # it was not given up: only not waited for
                await asyncio.sleep(0.02)
    assert proxy.kept == [("user", "I keep bees.")]


async def test_what_no_turn_can_hold_is_left_out_and_told(proxy):
    long = "x" * (256 * 1024 + 1)
    raw = await proxy.raw([user(long)])
    assert "256 KB" in raw.headers["X-Lamina-Fault"]
    raw = await proxy.raw([user(long), said("Reply 1."), user("Shorter.")])
    assert "X-Lamina-Fault" not in raw.headers
    assert [words for _, words in proxy.kept] == ["Reply 1.", "Shorter.", "Reply 2."]
