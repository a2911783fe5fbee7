"""The chat proxy: OpenAI's chat completions in front of the configured endpoint, with memory beside it.

RLM-Memory §4.1's MemoryChat as a service. What passes is remembered, what memory holds is added, and neither
ever makes a chat fail: the headers `X-Lamina-Context` and `X-Lamina-Remembered` say what was done,
`X-Lamina-Fault` what could not be.
"""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from lamina.query.auth import Tenant
from lamina.query.chat_background import Background, Outcome
from lamina.query.chat_budget import UNPAID, Held, hold
from lamina.query.chat_errors import OpenAIError, OpenAIRoute, error_body, error_event
from lamina.query.chat_memory import Kept
from lamina.query.chat_request import MEMORY_HEADER, RUN_HEADER, USER_HEADER, read_chat
from lamina.query.chat_stream import DONE, ReplyReader, whole_reply
from lamina.query.chat_turn import Turn, header_of, prepare
from lamina.query.chat_upstream import Upstream, check_key_accepted, named, passed_back
from lamina.query.errors import Refused
from lamina.query.service import Doors, Service

_EVENTS = "text/event-stream"
_FAULTS: dict[int | str, dict[str, Any]] = {
    400: {"model": OpenAIError, "description": "The request breaks a rule, or names no user"},
    401: {"model": OpenAIError, "description": "No valid API key"},
    429: {"model": OpenAIError, "description": "The tenant's tokens of this window are spent"},
    501: {"model": OpenAIError, "description": "No chat endpoint is configured"},
    502: {"model": OpenAIError, "description": "The chat endpoint does not answer, or not to us"},
    503: {"model": OpenAIError, "description": "Too many chats at once; send the same request again"},
    504: {"model": OpenAIError, "description": "The chat endpoint is too slow"},
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["messages"],
                    "additionalProperties": True,
                    "properties": {
                        "model": {"type": "string"},
                        "messages": {"type": "array", "items": {"type": "object"}, "minItems": 1},
                        "stream": {"type": "boolean", "default": False},
                        "user": {"type": "string", "description": "whose memory"},
                    },
                }
            }
        },
    },
    "parameters": [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": words}
        for name, words in (
            (USER_HEADER, "whose memory, in the place of `user`"),
            (RUN_HEADER, "which conversation; also taken from `metadata.lamina_run_id`"),
            (MEMORY_HEADER, "`on`, `read` (nothing is remembered) or `off`"),
        )
    ],
}


def chat_routes() -> APIRouter:
    """Return the routes of the chat proxy."""
    routes = APIRouter(tags=["chat"], route_class=OpenAIRoute)
    background = Background()

    async def complete(request: Request, tenant: Tenant, doors: Doors) -> Response:
        """Pass a chat completion to the configured endpoint, with what memory holds, and remember it."""
        return await _completed(request, tenant, doors, background)

    routes.add_api_route(
        "/v1/chat/completions",
        complete,
        methods=["POST"],
        summary="Chat, with memory",
        responses=_FAULTS,
        openapi_extra=_BODY,
        response_class=Response,
    )
    routes.add_api_route(
        "/v1/models",
        models,
        methods=["GET"],
        summary="List the chat endpoint's models",
        responses=_FAULTS,
        response_class=Response,
    )
    return routes


async def models(_: Tenant, doors: Doors) -> Response:
    """Pass the chat endpoint's list of models on."""
    upstream = _upstream(doors)
    return await _whole(await upstream.models(), upstream)


async def _completed(request: Request, tenant: str, service: Service, background: Background) -> Response:
    upstream = _upstream(service)
    chat = await read_chat(request, tenant, upstream.model)
    turn = await prepare(chat, service, background)
    held = None
    try:
        held = await hold(chat.body, turn.messages, tenant, service, background)
        answer = await upstream.begin({**chat.body, "messages": turn.messages})
        said = await turn.outcome_of_said()
        if answer.is_success and answer.headers.get("content-type", "").startswith(_EVENTS):
            headers = {**passed_back(answer.headers), **turn.headers(said)}
            return StreamingResponse(_passing(answer, turn, said, held), answer.status_code, headers)
        response = await _whole(answer, upstream)
    except Refused as exc:
        if held is not None and exc.reason in UNPAID:
            held.settle(0)
        exc.headers = {**(exc.headers or {}), **turn.headers(await turn.outcome_of_said())}
        raise
    if not answer.is_success:
        held.settle(0)
        response.headers.update(turn.headers(said))
        return response
    text, usage, characters = whole_reply(bytes(response.body))
    held.settle_reply(usage, characters)
    reply = await turn.outcome_of_reply(text, said) if text is not None else None
    response.headers.update(turn.headers(said, reply))
    return response


async def _passing(
    answer: httpx.Response, turn: Turn, said: Outcome[Kept], held: Held
) -> AsyncIterator[bytes]:
    """Pass a stream on as it comes; its end marker waits until the reply is accepted.

    A client that hangs up ends the upstream's answer too; half a reply is not remembered.
    """
    reader = ReplyReader()
    try:
        async for chunk in answer.aiter_raw():
            if passed := reader.feed(chunk):
                yield passed
            if reader.done:
                break
        if passed := reader.flush():
            yield passed
        if reader.text is not None and turn.said is not None:
            reply = await turn.outcome_of_reply(reader.text, said)
            if reply.fault:
                yield f": the reply is not remembered: {header_of(reply.fault)}\n\n".encode()
        if reader.done:
            yield DONE
    except httpx.HTTPError as exc:
        yield error_event("upstream_broke_off", f"the chat endpoint's answer broke off: {named(exc)}")
    finally:
        held.settle_reply(reader.usage, reader.characters)
        await answer.aclose()


async def _whole(answer: httpx.Response, upstream: Upstream) -> Response:
    """Read an answer and pass it on; a fault of the endpoint keeps its status, and has OpenAI's shape.

    Raises:
        Refused: 502 for an answer that breaks off, or refuses our key.
    """
    try:
        body = await answer.aread()
    except httpx.HTTPError as exc:
        raise Refused(
            502, "upstream_broke_off", f"the chat endpoint's answer broke off: {named(exc)}"
        ) from exc
    finally:
        await answer.aclose()
    headers = passed_back(answer.headers)
    if answer.is_success:
        return Response(body, answer.status_code, headers)
    check_key_accepted(answer.status_code)
    status = answer.status_code if answer.is_error else 502
    if not _says_error(body):
        headers["content-type"] = "application/json"
        body = error_body(status, "upstream_error", f"the chat endpoint answered {answer.status_code}")
    return Response(upstream.safe(body), status, headers)


def _says_error(body: bytes) -> bool:
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(said, dict) and isinstance(said.get("error"), dict)


def _upstream(service: Service) -> Upstream:
    if service.upstream is None:
        raise Refused(
            501,
            "no_chat_endpoint",
            "no chat endpoint is configured: set LAMINA_CHAT_BASE_URL, or LAMINA_LLM_BASE_URL or "
            "LAMINA_LLM_API_KEY, and leave LAMINA_CHAT_ENABLED on",
        )
    return service.upstream
