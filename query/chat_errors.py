"""Every fault of the chat proxy in OpenAI's shape: its clients read our sentences as they read its own."""

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field

from lamina.query.errors import Refused
from lamina.streams.errors import LaminaError, Rejected, Transient


class Fault(BaseModel):
    """What OpenAI's clients read of a fault."""

    message: str = Field(description="a sentence for a person")
    type: str = Field(examples=["invalid_request_error"])
    param: str | None = None
    code: str | None = Field(default=None, description="a short name for a program")


class OpenAIError(BaseModel):
    """A fault of the chat proxy, in OpenAI's shape."""

    error: Fault


class OpenAIRoute(APIRoute):
    """A route whose refusals, the missing API key's too, have OpenAI's shape."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which answers the faults that Lamina raises on purpose."""
        handler = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handler(request)
            except Refused as exc:
                return openai_error(
                    exc.status, exc.reason, exc.sentence, param=exc.field, headers=exc.headers
                )
            except RequestValidationError as exc:
                return openai_error(400, "invalid_request", str(exc.errors()[0]["msg"]))
            except LaminaError as exc:
                status = 503 if isinstance(exc, Transient) else 400 if isinstance(exc, Rejected) else 500
                return openai_error(status, exc.reason, str(exc))

        return answered


def openai_error(
    status: int, code: str, sentence: str, *, param: str | None = None, headers: dict[str, str] | None = None
) -> Response:
    """Return the response for a fault."""
    return Response(error_body(status, code, sentence, param), status, headers, media_type="application/json")


def error_body(status: int, code: str, sentence: str, param: str | None = None) -> bytes:
    """Return the body for a fault."""
    kind = "invalid_request_error" if status < 500 else "server_error"  # noqa: PLR2004  # HTTP's own border
    fault = Fault(message=sentence, type=kind, param=param, code=code)
    return orjson.dumps(OpenAIError(error=fault).model_dump())


def error_event(code: str, sentence: str) -> bytes:
    """Return the server-sent event that ends a stream which broke: OpenAI's clients raise it."""
    return b"data: " + error_body(502, code, sentence) + b"\n\n"
