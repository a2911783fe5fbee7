"""Every fault as an HTTP answer of one shape: `Problem`.

A `Transient` fault is 503 with `Retry-After`, a `Rejected` one 422, a `Fatal` one 500; a spent budget of
tokens is 429, and a reply of the language model that cannot be read 502, which no change of the request
mends. What the doors refuse on their own (`Refused`) carries its status. Of an unknown fault the caller
learns only that it happened.
"""

import math
from collections.abc import Sequence

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from lamina.query.models import FieldProblem, Problem
from lamina.streams.errors import BudgetSpent, LaminaError, Rejected, Transient, UnusableReply

RETRY_AFTER_SECONDS = 1.0
"""Where a dependency does not say how long it will be away."""

PROBLEMS_OF_MODELS: dict[int | str, dict[str, object]] = {
    429: {
        "model": Problem,
        "description": "The tenant's tokens of this window are spent; ask again in the next, or by rules",
        "headers": {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer"}}},
    },
    502: {"model": Problem, "description": "The language model's reply cannot be read"},
}
"""What routes that ask a language model may answer beside the rest."""

_BAD_REQUEST = 400
_REASONS = {_BAD_REQUEST: "malformed_body", 401: "unauthorized", 404: "not_found", 405: "method_not_allowed"}


class Refused(Exception):
    """A request that breaks a rule of the service."""

    def __init__(
        self,
        status: int,
        reason: str,
        sentence: str,
        *,
        field: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.reason = reason
        self.sentence = sentence
        self.field = field
        self.headers = headers


def add_error_handlers(api: FastAPI) -> None:
    """Answer every fault with a `Problem`."""
    api.add_exception_handler(Refused, _refused)
    api.add_exception_handler(RequestValidationError, _invalid)
    api.add_exception_handler(LaminaError, _fault)
    api.add_exception_handler(HTTPException, _http)
    api.add_exception_handler(Exception, _unknown)


def problem(
    status: int,
    reason: str,
    sentence: str,
    *,
    errors: Sequence[FieldProblem] = (),
    headers: dict[str, str] | None = None,
) -> Response:
    """Return the response for a problem."""
    body = Problem(detail=sentence, reason=reason, errors=list(errors))
    return Response(body.model_dump_json(), status, headers, media_type="application/json")


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)  # noqa: S101 - registered for this class alone
    errors = [FieldProblem(field=error.field, message=error.sentence)] if error.field else []
    return problem(error.status, error.reason, error.sentence, errors=errors, headers=error.headers)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class alone
    errors = [
        FieldProblem(field=_place(e["loc"]), message=str(e["msg"]).removeprefix("Value error, "))
        for e in error.errors()
    ]
    sentence = "; ".join(f"{e.field}: {e.message}" for e in errors)
    return problem(422, "invalid_request", sentence, errors=errors)


def _place(location: Sequence[str | int]) -> str:
    """Name a field as the caller wrote it: without the leading `body`, `query` or `path`."""
    return ".".join(map(str, location[1:])) or str(location[0])


async def _fault(_: Request, error: Exception) -> Response:
    assert isinstance(error, LaminaError)  # noqa: S101 - registered for this class alone
    if isinstance(error, Transient):
        seconds = math.ceil(error.retry_after or RETRY_AFTER_SECONDS)
        status = 429 if isinstance(error, BudgetSpent) else 503
        return problem(status, error.reason, str(error), headers={"Retry-After": str(seconds)})
    if isinstance(error, UnusableReply):
        sentence = f"the language model's reply cannot be read: {error}"
        return problem(502, error.reason, sentence)
    if isinstance(error, Rejected):
        return problem(422, error.reason, str(error))
    return problem(500, error.reason, str(error))


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class alone
    reason = _REASONS.get(error.status_code, "http_error")
    headers = dict(error.headers) if error.headers else None
    # FastAPI's own 400: bytes that are no UTF-8, or a nesting without end.
    sentence = (
        "the body cannot be read: send JSON, as UTF-8" if error.status_code == _BAD_REQUEST else error.detail
    )
    return problem(error.status_code, reason, str(sentence), headers=headers)


async def _unknown(_: Request, __: Exception) -> Response:
    return problem(500, "internal_error", "the service met a fault it does not know; its log has the details")
