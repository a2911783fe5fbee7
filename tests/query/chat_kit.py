"""A running proxy over a real socket, the official OpenAI client before it, the test server behind it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from openai import AsyncOpenAI

from lamina.agents.http_server import bind, serving
from lamina.query.chat_upstream import open_upstream
from lamina.streams.codec import decode
from lamina.streams.records import Turn
from lamina.streams.settings import Settings
from tests.openai_chat import Chatting
from tests.openai_server import KEY, OpenAIServer
from tests.query.conftest import World


@dataclass
class Proxy:
    """One proxy and what stands on both sides of it."""

    url: str
    chat: Chatting
    world: World

    def client(self, key: str = "any", **options) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, **options)

    async def ask(self, messages, **fields) -> str:
        """Send one request and return the reply's words."""
        async with self.client() as client:
            given = await client.chat.completions.create(
                model="m", messages=messages, **{"user": "ada", **fields}
            )
        return given.choices[0].message.content or ""

    async def raw(self, messages, *, headers=None, **fields):
        """Send one request and return the whole response, headers included."""
        async with self.client() as client:
            return await client.chat.completions.with_raw_response.create(
                model="m", messages=messages, extra_headers=headers, **{"user": "ada", **fields}
            )

    @property
    def kept(self) -> list[tuple[str, str]]:
        """What was accepted, each turn once, in order: role and words."""
        turns = [decode(Turn, record.value) for record in self.world.publisher.records]
        return list({turn.id: (turn.role, turn.content) for turn in turns}.values())


def settings_for(server: OpenAIServer, **changes) -> Settings:
    return Settings(**{"llm_model": "m", "llm_base_url": server.url, "llm_api_key": KEY, **changes})


@asynccontextmanager
async def proxying(world: World, server: OpenAIServer, *, accept_rows=True, ports=None, **changes):
    """Serve a proxy until the end of the block."""
    server.chat = server.chat or Chatting()
    settings = settings_for(server, **changes)
    upstream = open_upstream(settings)
    api = world.api(settings, upstream=upstream, accept_rows=accept_rows, **(ports or {}))
    listener = bind("127.0.0.1", 0)
    try:
        async with serving(api, listener) as url:
            yield Proxy(url, server.chat, world)
    finally:
        listener.close()
        await upstream.close()


async def pieces_of(stream) -> AsyncIterator[str]:
    """Yield the words of a streamed reply."""
    async for chunk in stream:
        for choice in chunk.choices:
            if choice.delta.content:
                yield choice.delta.content


def user(text):
    return {"role": "user", "content": text}


def said(text):
    return {"role": "assistant", "content": text}
