"""A service whose chat model writes the programs of a script: a real HTTP server and a real sandbox."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import orjson

from lamina.sinks.llm_openai import open_openai_model
from lamina.sinks.reader import open_reader
from lamina.sinks.sandbox import open_sandbox
from tests.openai_server import OpenAIServer

from .conftest import World

QUESTION = {"query": "Where did Ada grow up?", "user_id": "ada", "strategy": "deep"}


@asynccontextmanager
async def reading(world: World, server: OpenAIServer, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A caller of a service with the test server as its chat model, and a sandbox."""
    chosen = server.settings(**{"llm_calls_at_once": 50, **settings})
    model = open_openai_model(chosen, world.metrics)
    sandbox = await open_sandbox(chosen)
    reader = open_reader(model, world.tables, world.clock, chosen)
    try:
        async with world.caller(chosen, reader=reader, sandbox=sandbox) as http:
            yield http
    finally:
        await sandbox.close()
        await model.close()


def nothing(_: dict[str, Any]) -> tuple[str, Sequence[int]]:
    return "", []


def scripted(
    *programs: str,
    finds: Callable[[dict[str, Any]], tuple[str, Sequence[int]]] = nothing,
    forced: tuple[str, Sequence[int]] = ("", []),
) -> Callable[[Any, Any], dict[str, Any]]:
    """Write these programs, one a step and the last one again and again.

    Args:
        programs: the script.
        finds: what a reader finds: its data to a finding and turn numbers.
        forced: the forced answer and its evidence.
    """

    def answer(purpose: Any, data: Any) -> dict[str, Any]:
        if purpose == "sub_query":
            finding, turns = finds(data)
            return {"finding": finding, "turns": list(turns)}
        if "forced" in data:
            return {"answer": forced[0], "evidence": list(forced[1])}
        step = min(len(data["steps"]), len(programs) - 1)
        return {"plan": f"step {step + 1}", "program": programs[step]}

    return answer


def events_of(body: str) -> list[tuple[str, Any]]:
    """Read server-sent events, comments left out."""
    events = []
    for block in body.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in lines:
            events.append((lines["event"], orjson.loads(lines["data"])))
    return events
