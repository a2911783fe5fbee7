"""The test server's plain conversation: what an OpenAI endpoint answers to a chat, at once or as a stream."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse


@dataclass(slots=True)
class Chatting:
    """What to reply, and what was asked. Without a prepared reply: `Reply N.`, N counting the requests."""

    replies: deque[str | Mapping[str, Any] | Response] = field(default_factory=deque)
    """Words, a whole message (with tool calls, say), or a response that stands for a fault."""
    bodies: list[Mapping[str, Any]] = field(default_factory=list)
    choices: int = 1
    finish: str = "stop"
    breaks_off: bool = False
    """The stream ends in the middle of the reply, its connection with it."""
    holds: bool = False
    """The stream waits after its first piece, for the client to hang up."""
    hold_seconds: float = 60.0
    hung_up: bool = False
    """Whether a stream that held has ended."""
    marks_end: bool = True
    """Whether a stream ends with `[DONE]`; some servers' do not."""
    raw: bytes | None = None
    """A stream's bytes, in the place of all its events."""

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """The history of the latest request."""
        return self.bodies[-1]["messages"]


async def chatted(chat: Chatting, request: Request, key: str) -> Response:
    """Answer one chat request."""
    body = json.loads(await request.body())
    chat.bodies.append(body)
    if request.headers.get("authorization") != f"Bearer {key}":
        error = {"message": f"Incorrect API key provided: {key}", "code": "invalid_api_key"}
        return JSONResponse({"error": error}, 401)
    reply = chat.replies.popleft() if chat.replies else f"Reply {len(chat.bodies)}."
    if isinstance(reply, Response):
        return reply
    message = {"role": "assistant", "content": reply} if isinstance(reply, str) else reply
    headers = {"x-request-id": f"req-{len(chat.bodies)}"}
    if body.get("stream"):
        return StreamingResponse(_events(chat, message), headers=headers, media_type="text/event-stream")
    return JSONResponse(
        {
            "id": "chatcmpl-test",
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model", ""),
            "choices": [
                {"index": n, "message": message, "finish_reason": chat.finish} for n in range(chat.choices)
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        },
        headers=headers,
    )


async def _events(chat: Chatting, message: Mapping[str, Any]) -> AsyncIterator[bytes]:
    if chat.raw is not None:
        for at in range(0, len(chat.raw), 7):
            yield chat.raw[at : at + 7]
            await asyncio.sleep(0)
        return
    words = message.get("content") or ""
    half = len(words) // 2
    deltas = [{"role": "assistant", "content": words[:half]}, {"content": words[half:]}]
    if "tool_calls" in message:
        deltas.append({"tool_calls": message["tool_calls"]})
    for number, delta in enumerate(deltas):
        if number == 1 and chat.holds:
            try:
                await asyncio.sleep(chat.hold_seconds)
            finally:  # cancelled when the client hangs up
                chat.hung_up = True
        if number == 1 and chat.breaks_off:
            raise ConnectionResetError
        for choice in range(chat.choices):
            yield _event({"index": choice, "delta": delta, "finish_reason": None})
    for choice in range(chat.choices):
        yield _event({"index": choice, "delta": {}, "finish_reason": chat.finish})
    if chat.marks_end:
        yield b"data: [DONE]\n\n"


def _event(choice: Mapping[str, Any]) -> bytes:
    chunk = {
        "id": "chatcmpl-test",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "m",
        "choices": [choice],
    }
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()
