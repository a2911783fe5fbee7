"""A test tool: a real HTTP server that speaks OpenAI's chat completions, and misbehaves on request.

It serves on a thread of its own, so it answers whatever the test's event loop does. Every request is
recorded with its purpose, version and digest, so that "paid once" is counted, not believed.
"""

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from typing import Any, Literal

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from lamina.streams.settings import Settings

from .openai_asked import Asked, asked_of
from .openai_chat import Chatting, chatted
from .openai_filler import HOSTILE, INVENTED, Filling, filled

Mode = Literal[
    "sensible",  # `OpenAIServer.answer`
    "invalid",  # words that are no JSON
    "misfit",  # JSON of another form
    "truncated",  # the first half of a sensible reply, finish_reason length
    "empty",
    "refused",  # OpenAI's `refusal` in the place of content
    "ungrounded",  # of the form, but all is invented: ids, words, numbers out of range
    "hostile_prose",  # an order to delete and to reveal, as plain words
    "hostile_fields",  # of the form, with that order in every string and numbers that exist
    "busy",  # 429 with Retry-After
    "broken",  # 500
    "stalled",  # nothing for `stall_seconds`, then a sensible reply
    "reset",  # the connection is closed in the middle of the reply
]

MODEL = "test-model"
KEY = "sk-test-0123456789"

Answer = Callable[[Any, Mapping[str, Any]], Mapping[str, Any]]


_AT_QUERY_TIME: Mapping[str, Mapping[str, Any]] = {
    "answer": {"evidence": [1], "in_memory": True, "answer": "Boston"},
    "deep": {"plan": "Turn 1 says it.", "program": "FINAL('Boston', [1])"},
    "sub_query": {"finding": "Boston", "turns": [1]},
    "judge": {"reason": "it says the same", "correct": True},
}


def rehearsed(purpose: Any, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer by the rules of the benchmark's rehearsal model; what is asked at query time always alike."""
    if purpose in _AT_QUERY_TIME:
        return _AT_QUERY_TIME[purpose]
    from lamina.bench import rehearsal  # every test imports this module by conftest, few need the rules

    return rehearsal.answer(purpose, data)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request: what was asked, and what was done with it."""

    asked: Asked
    digest: str
    """Of its messages: the same prompt has the same."""
    mode: Mode | None
    """None where the request was refused before it came to that."""
    status: int
    tokens_in: int
    tokens_out: int
    """Both 0 where nothing was billed. A stalled or reset reply is billed, as a real server would."""
    body: Mapping[str, Any]


@dataclass(slots=True)
class OpenAIServer:
    """The running server: what it was asked, and what it is to do next. All may be changed at any time."""

    url: str = ""
    answer: Answer = rehearsed
    """Sensible replies: purpose and data of the prompt to the JSON of the reply."""
    mode: Mode = "sensible"
    """Of every request that `once` and `by_purpose` say nothing of."""
    by_purpose: dict[str, Mode] = field(default_factory=dict)
    stall_seconds: float = 30.0
    retry_after: str | None = "7"
    forms: set[str] = field(default_factory=lambda: {"json_schema", "json_object"})
    """Values of response_format.type that it knows; another is refused."""
    refuses: dict[str, str] = field(default_factory=dict)
    """Request fields that it refuses, and in what words."""
    refusal_status: int = 400
    refusal_words: str | None = None
    """Said of every refused form in the place of its name."""
    written: str | None = None
    """A text that takes the place of every sensible reply's."""
    raw: Mapping[str, Any] | None = None
    """JSON that takes the place of every reply."""
    page: bytes | None = None
    """Bytes that do."""
    date: str | None = None
    """The clock of error replies, as their Date header."""
    usage: bool = True
    """Whether replies say what they cost."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Values by field name, in replies that are made from the form alone."""
    chat: Chatting | None = None
    """Takes the place of all the above: plain conversation, streamed or not."""
    requests: list[Recorded] = field(default_factory=list)
    most_at_once: int = 0
    """Requests that were under way at the same time, at most."""
    _next: deque[Mode] = field(default_factory=deque)
    _under_way: int = 0

    def settings(self, **changes: Any) -> Settings:
        """Return settings that lead to this server."""
        known = {"llm_model": MODEL, "llm_base_url": self.url, "llm_api_key": KEY}
        return Settings(**{**known, **changes})

    def once(self, *modes: Mode) -> None:
        """Take these modes for the next requests, one each."""
        self._next.extend(modes)

    def asked(self, purpose: str | None = None) -> list[Recorded]:
        """Return the requests that came, of one purpose or all."""
        return [one for one in self.requests if purpose in {None, one.asked.purpose}]

    def billed(self, purpose: str | None = None) -> list[Recorded]:
        """Return the requests that cost something, of one purpose or all."""
        return [one for one in self.asked(purpose) if one.tokens_in]


class Host:
    """The process's side of the server: where it listens, and the state that a request meets."""

    def __init__(self) -> None:
        self.url = ""
        self.state = OpenAIServer()
        self.closing = False

    def fresh(self) -> OpenAIServer:
        """Put a new state in the place of the last, and return it."""
        self.state = OpenAIServer(self.url)
        return self.state

    async def complete(self, request: Request) -> Response:
        """Answer POST /v1/chat/completions."""
        state = self.state
        state._under_way += 1
        state.most_at_once = max(state.most_at_once, state._under_way)
        try:
            if state.chat is not None:
                return await chatted(state.chat, request, KEY)
            return await _completed(state, request, lambda: self.closing)
        finally:
            state._under_way -= 1

    async def models(self, _: Request) -> Response:
        """Answer GET /v1/models."""
        return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model"}]})


@contextmanager
def running() -> Iterator[Host]:
    """Serve on a free port of this machine until the end of the block."""
    host = Host()
    api = Starlette(
        routes=[
            Route("/v1/chat/completions", host.complete, methods=["POST"]),
            Route("/v1/models", host.models),
        ]
    )
    # no log: a reply that ends in the middle is on purpose
    server = uvicorn.Server(
        uvicorn.Config(api, port=0, log_config=None, log_level=60, lifespan="off", date_header=False)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    host.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    try:
        yield host
    finally:
        host.closing = True
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def openai_host() -> Iterator[Host]:
    """Serve chat completions for the whole run."""
    with running() as host:
        yield host


@pytest.fixture
def openai_server(openai_host: Host) -> OpenAIServer:
    """Give a test the server as if it had just been started."""
    return openai_host.fresh()


def count_tokens(text: str) -> int:
    """Count in the vocabulary of OpenAI's present models, o200k_base."""
    return len(_vocabulary().encode_ordinary(text))


@cache
def _vocabulary() -> Any:
    from bpe_openai import get_encoding  # as above

    return get_encoding("o200k_base")


async def _completed(state: OpenAIServer, request: Request, closing: Callable[[], bool]) -> Response:
    body = json.loads(await request.body())
    asked = asked_of(body)
    digest = blake2b(f"{asked.system}\0{asked.user}".encode(), digest_size=16).hexdigest()

    def recorded(mode: Mode | None, status: int, tokens: tuple[int, int] = (0, 0)) -> None:
        state.requests.append(Recorded(asked, digest, mode, status, *tokens, body))

    mode: Mode | None = None
    failure = _refusal(state, request.headers.get("authorization", ""), body, asked)
    if failure is None:
        mode = state._next.popleft() if state._next else state.by_purpose.get(asked.purpose, state.mode)
        failure = _failure(state, mode)
    if failure is not None:
        recorded(mode, failure.status_code)
        return failure
    try:
        text, reason = await asyncio.to_thread(_written, state, mode, asked)
    except Exception as exc:  # noqa: BLE001  # a fault of the test's own answer: say it where the test sees it
        return _error(500, f"answer() failed: {exc!r}")
    tokens = (
        count_tokens(asked.system) + count_tokens(asked.user) + count_tokens(json.dumps(asked.schema)),
        count_tokens(text),
    )
    recorded(mode, 200, tokens)
    if mode == "stalled":
        await _stalled(state.stall_seconds, request, closing)
    if state.page is not None:
        return Response(state.page)
    if state.raw is not None:
        return Response(json.dumps(state.raw), media_type="application/json")
    reply = _reply(text, reason, tokens if state.usage else None, refused=mode == "refused")
    return _Broken(reply) if mode == "reset" else JSONResponse(reply)


def _refusal(state: OpenAIServer, key: str, body: Mapping[str, Any], asked: Asked) -> Response | None:
    if key != f"Bearer {KEY}":
        return _error(401, f"Incorrect API key provided: {key}", "invalid_api_key")
    if body["model"] != MODEL:
        return _error(404, f"The model `{body['model']}` does not exist", "model_not_found")
    for name, words in state.refuses.items():
        if name in body:
            return _error(state.refusal_status, words)
    if asked.form not in state.forms | {"text"}:
        return _error(
            state.refusal_status,
            f"'response_format' of type '{asked.form}' is not supported with this model.",
        )
    return None


def _failure(state: OpenAIServer, mode: Mode) -> Response | None:
    if mode == "busy":
        headers = {"retry-after": state.retry_after, "date": state.date}
        return _error(429, "Rate limit reached", "rate_limit_exceeded", headers)
    if mode == "broken":
        return _error(500, "The server had an error while processing your request")
    return None


def _written(state: OpenAIServer, mode: Mode, asked: Asked) -> tuple[str, str]:
    """Return the text of a reply and its finish_reason."""
    match mode:
        case "invalid":
            return "Certainly! The episode is: {text: 'a walk', turns: [1,", "stop"
        case "misfit":
            return json.dumps({"verdict": "fine", "items": [{"id": "x"}]}), "stop"
        case "empty" | "refused":
            return "", "stop"
        case "hostile_prose":
            return HOSTILE.string, "stop"
        case "ungrounded" | "hostile_fields":
            one = INVENTED if mode == "ungrounded" else HOSTILE
            filling = Filling(one.string, one.integer, one.number, state.overrides)
            return json.dumps(filled(asked.schema, filling)), "stop"
    text = state.written or json.dumps(state.answer(asked.purpose, asked.data), ensure_ascii=False)
    return (text[: len(text) // 2], "length") if mode == "truncated" else (text, "stop")


def _reply(text: str, reason: str, tokens: tuple[int, int] | None, *, refused: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if refused:
        message |= {"content": None, "refusal": "I'm sorry, I can't help with that."}
    reply: dict[str, Any] = {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 0,
        "model": f"{MODEL}-2026-01-01",
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
    }
    if tokens is not None:
        reply["usage"] = {
            "prompt_tokens": tokens[0],
            "completion_tokens": tokens[1],
            "total_tokens": sum(tokens),
        }
    return reply


def _error(
    status: int, words: str, code: str | None = None, headers: Mapping[str, str | None] | None = None
) -> Response:
    error = {"message": words, "type": "error", "param": None, "code": code}
    said = {name: value for name, value in (headers or {}).items() if value is not None}
    return JSONResponse({"error": error}, status, headers=said)


async def _stalled(seconds: float, request: Request, closing: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not closing() and not await request.is_disconnected():
        await asyncio.sleep(0.02)


class _Broken(JSONResponse):
    """Half of a reply that announces all of it: the server closes the connection when it ends there."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        half = bytes(self.body)[: len(self.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
