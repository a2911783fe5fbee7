"""A small client of the HTTP service."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar
from uuid import UUID

import httpx
from pydantic import BaseModel, ValidationError

from lamina.query.answer_models import AnswerResponse, ContextResponse
from lamina.query.models import Accepted, EventState, Problem, SearchResponse

M = TypeVar("M", bound=BaseModel)

FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 0.5
PAUSE_GROWTH = 1.5
REPLY_SECONDS = 60.0
ANSWER_SECONDS = 900.0
"""Of an answer: a chat model may be asked many times for it, and each may take a minute."""


class ServiceError(Exception):
    """The service did not do what was asked; the message is its own sentence.

    `status` is the HTTP status, None where no answer came. `retry_after` is what the service asked for, in
    seconds.
    """

    def __init__(self, sentence: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.retry_after = retry_after

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in {None, httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE}


class Client:
    """One connection pool to one service. Every method raises `ServiceError` and nothing else."""

    def __init__(
        self, base_url: str, *, api_key: str | None = None, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._http = httpx.AsyncClient(
            base_url=base_url, headers=headers, timeout=REPLY_SECONDS, transport=transport
        )

    async def __aenter__(self) -> Self:
        """Return the client itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def add(
        self,
        messages: Sequence[Mapping[str, Any]],
        user_id: str,
        *,
        run_id: str | None = None,
        agent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Accepted:
        """Send messages to remember; with an idempotency key the call may be repeated."""
        body = {
            "messages": list(messages),
            "user_id": user_id,
            "run_id": run_id,
            "agent_id": agent_id,
            "metadata": metadata,
            "idempotency_key": idempotency_key,
        }
        return await self._call(Accepted, "POST", "/v1/memories", body)

    async def event(self, event_id: UUID) -> EventState:
        """Ask what became of a request, or of one turn."""
        return await self._call(EventState, "GET", f"/v1/events/{event_id}")

    async def wait_until_done(
        self,
        event_id: UUID,
        *,
        timeout_seconds: float,
        progress: Callable[[EventState], None] | None = None,
    ) -> EventState:
        """Wait until every turn of an event is in a terminal state, and return that state.

        Asks again with growing pauses of at most half a second; a service that is away for a moment is
        asked again too.

        Args:
            event_id: of a request or a turn.
            timeout_seconds: how long to wait at most.
            progress: called with every state that was read.

        Raises:
            ServiceError: a refusal, or not done in time.
        """
        deadline = time.monotonic() + timeout_seconds
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                state = await self.event(event_id)
            except ServiceError as exc:
                if not exc.transient or time.monotonic() >= deadline:
                    raise
            else:
                if progress is not None:
                    progress(state)
                waiting = sum(not turn.status.terminal for turn in state.turns)
                if not waiting:
                    return state
                if time.monotonic() >= deadline:
                    raise ServiceError(
                        f"{waiting} of {len(state.turns)} turns are not done within {timeout_seconds:g} s"
                    )
            await asyncio.sleep(pause)
            pause = min(pause * PAUSE_GROWTH, LONGEST_PAUSE_SECONDS)

    async def search(self, query: str, user_id: str, **options: Any) -> SearchResponse:
        """Search a user's memory; the options are those of `POST /v1/memories/search`."""
        body = {"query": query, "user_id": user_id, **options}
        return await self._call(SearchResponse, "POST", "/v1/memories/search", body)

    async def context(self, query: str, user_id: str, **options: Any) -> ContextResponse:
        """Get one block for a prompt; the options are those of `POST /v1/context`."""
        return await self._call(
            ContextResponse, "POST", "/v1/context", {"query": query, "user_id": user_id, **options}
        )

    async def answer(self, query: str, user_id: str, **options: Any) -> AnswerResponse:
        """Answer a question from memory; the options are those of `POST /v1/answer`."""
        body = {"query": query, "user_id": user_id, **options}
        return await self._call(AnswerResponse, "POST", "/v1/answer", body, ANSWER_SECONDS)

    async def _call(
        self,
        kind: type[M],
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        timeout_seconds: float = REPLY_SECONDS,
    ) -> M:
        given = None if body is None else {name: value for name, value in body.items() if value is not None}
        try:
            response = await self._http.request(method, path, json=given, timeout=timeout_seconds)
        except httpx.HTTPError as exc:
            where = self._http.base_url
            raise ServiceError(
                f"no answer from {where} ({exc or type(exc).__name__}): is it running?"
            ) from exc
        if response.is_error:
            raise _error_of(response)
        try:
            return kind.model_validate_json(response.content)
        except ValidationError as exc:
            raise ServiceError(
                f"{path} answered with something else than expected: do client and service have one version?",
                status=response.status_code,
            ) from exc


def _error_of(response: httpx.Response) -> ServiceError:
    try:
        sentence = Problem.model_validate_json(response.content).detail
    except ValidationError:
        sentence = f"the service answered {response.status_code} {response.reason_phrase}"
    try:
        retry_after = float(response.headers["Retry-After"])
    except (KeyError, ValueError):
        retry_after = None
    return ServiceError(sentence, status=response.status_code, retry_after=retry_after)
