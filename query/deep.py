"""`deep` over HTTP: the whole answer at once, or every step as a server-sent event.

Whoever hangs up ends the run, at once and with it every call that it would have made.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict
from time import perf_counter
from typing import Any, TypeVar

import orjson
from fastapi import Request, Response
from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic import BaseModel

from lamina.query.answer_models import AnswerResponse, Ask, citation
from lamina.query.deep_models import DeepCost
from lamina.query.errors import Refused
from lamina.query.finding import said, utc
from lamina.query.service import Service
from lamina.streams.errors import LaminaError, ModelUnavailable, Transient, UnusableReply
from lamina.streams.llm import Ask as AskModel
from lamina.streams.llm import Prompt
from lamina.streams.metrics import RECALL_SECONDS
from lamina.streams.namespace import Namespace
from lamina.streams.recall.deep.budget import Budget
from lamina.streams.recall.deep.doors import Doors, Question, Reading
from lamina.streams.recall.deep.events import (
    Answered,
    Event,
    Forced,
    HistoryRead,
    Looked,
    Printed,
    ProgramWritten,
    SubQueries,
    SubReplies,
)
from lamina.streams.recall.deep.strategy import deep
from lamina.streams.settings import Settings

R = TypeVar("R", bound=BaseModel)

PING_SECONDS = 15.0
"""Silence after which a comment is sent, so that nobody on the way takes the connection for dead."""
_HUNG_UP = 499

EVENTS: Mapping[type[Event], str] = {
    HistoryRead: "history",
    ProgramWritten: "program",
    Looked: "look",
    SubQueries: "sub_queries",
    SubReplies: "sub_replies",
    Printed: "printed",
    Forced: "forced",
    Answered: "answer",
}
"""The names of the events. `error` is sent in the place of the last one where a dependency fails."""

EVENT_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "text/event-stream": {
                "schema": {"type": "string"},
                "example": 'event: history\ndata: {"turns":419,"sessions":19,"cut":false}\n\n',
            }
        },
        "description": "The answer; with `stream` the steps of `deep` as server-sent events named "
        + ", ".join(f"`{name}`" for name in EVENTS.values())
        + ", or `error` in the place of the last",
    }
}
"""What the route adds to its description."""


async def answer_deep(
    body: Ask, namespace: Namespace, service: Service, request: Request
) -> AnswerResponse | Response:
    """Answer by reading the history: as one response, or with `stream` as events.

    Args:
        body: the question.
        namespace: whose history.
        service: the ports; it needs a reader and a sandbox.
        request: whoever sent it may hang up.

    Raises:
        Refused: this service cannot, or the request asks for what `deep` does not have.
        TablesUnavailable, SandboxBusy: before anything was answered.
        ModelUnavailable, BudgetSpent, Misconfigured: without `stream`; with it they are the last event.
    """
    events = _events(body, namespace, service)
    if body.stream:
        first = await anext(events)
        assert isinstance(first, HistoryRead)  # noqa: S101 - what `deep` promises
        return EventSourceResponse(
            _sent(first, events, _engine(service)),
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
    work = asyncio.ensure_future(_last(events, _engine(service)))
    gone = asyncio.ensure_future(_hung_up(request))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        return await work if work.done() else Response(status_code=_HUNG_UP)
    finally:
        await _stopped(work, gone)


def _events(body: Ask, namespace: Namespace, service: Service) -> AsyncGenerator[Event, None]:
    settings = service.settings
    if service.reader is None or service.sandbox is None:
        sentence = (
            "strategy: `deep` reads with a chat model, and this service has none; set LAMINA_LLM_MODEL, or "
            "ask with another strategy"
        )
        raise Refused(422, "no_model", sentence, field="strategy")
    for field, wanted in (("engine", body.engine == "extractive"), ("fallback", body.fallback)):
        if wanted:
            sentence = f"{field}: `deep` has no answer by rules; ask with another strategy"
            raise Refused(422, "invalid_request", sentence, field=field)
    if body.top_k is not None:
        sentence = "top_k: `deep` reads the history itself; ask with another strategy to choose how much"
        raise Refused(422, "invalid_request", sentence, field="top_k")
    return _timed(
        deep(
            Question(body.query, namespace, utc(body.as_of)),
            Doors(
                service.tables,
                _AtOnce(service.reader.ask(namespace), settings.deep_workers),
                service.sandbox,
                service.clock,
                asyncio.timeout,
            ),
            _budget(body, settings),
            Reading(settings.deep_turns, settings.deep_characters, settings.deep_sub_query_characters),
        ),
        service,
    )


def _budget(body: Ask, settings: Settings) -> Budget:
    """Return what the request asks for, within what the settings allow."""
    asked = body.options.deep
    return Budget(
        min(asked.programs or settings.deep_programs, settings.deep_programs),
        min(asked.calls or settings.deep_calls, settings.deep_calls),
        min(asked.tokens or settings.deep_tokens, settings.deep_tokens),
        min(asked.seconds or settings.deep_seconds, settings.deep_seconds),
    )


def _engine(service: Service) -> str:
    return "" if service.reader is None else service.reader.name


async def _timed(events: AsyncGenerator[Event, None], service: Service) -> AsyncGenerator[Event, None]:
    """Pass the events on, and measure the whole however it ends."""
    begun = perf_counter()
    try:
        async with aclosing(events) as running:
            async for event in running:
                yield event
    finally:
        service.metrics.observe(RECALL_SECONDS, perf_counter() - begun, strategy="deep", stage="answer")


async def _last(events: AsyncGenerator[Event, None], engine: str) -> AnswerResponse:
    history = HistoryRead(0, 0, cut=False)
    response: AnswerResponse | None = None
    async with aclosing(events) as running:
        async for event in running:
            if isinstance(event, HistoryRead):
                history = event
            if isinstance(event, Answered):
                response = _response(event, history, engine)
    assert response is not None  # noqa: S101 - what `deep` promises
    return response


def _response(answered: Answered, history: HistoryRead, engine: str) -> AnswerResponse:
    return AnswerResponse(
        answer=answered.text,
        grounded=answered.grounded,
        engine=engine,
        evidence=[said(turn) for turn in answered.evidence],
        cited=[citation(turn) for turn in answered.evidence],
        deep=DeepCost(
            programs=answered.programs,
            calls=answered.calls,
            tokens=answered.tokens,
            forced=answered.forced,
            turns=history.turns,
            cut=history.cut,
        ),
    )


async def _sent(
    history: HistoryRead, events: AsyncGenerator[Event, None], engine: str
) -> AsyncIterator[bytes]:
    """Return the stream: every event by its name, a comment in long silences, the answer or a fault last."""
    yield _line(EVENTS[HistoryRead], orjson.dumps(history))
    following = asyncio.ensure_future(_next(events))
    try:
        while True:
            await asyncio.wait({following}, timeout=PING_SECONDS)
            if not following.done():
                yield format_sse_event(comment="")
                continue
            event = following.result()
            if event is None:
                return
            if isinstance(event, Answered):
                yield _line(EVENTS[Answered], _response(event, history, engine).model_dump_json().encode())
            else:
                yield _line(EVENTS[type(event)], orjson.dumps(asdict(event)))
            following = asyncio.ensure_future(_next(events))
    except LaminaError as fault:
        yield _line("error", orjson.dumps(_fault(fault)))
    finally:
        await _stopped(following)
        await events.aclose()


async def _next(events: AsyncGenerator[Event, None]) -> Event | None:
    return await anext(events, None)


def _line(name: str, data: bytes) -> bytes:
    return format_sse_event(event=name, data_str=data.decode())


def _fault(fault: LaminaError) -> dict[str, Any]:
    """Return a fault as a `Problem` has it, with the delay that its header would have named."""
    told: dict[str, Any] = {"detail": str(fault), "reason": fault.reason}
    if isinstance(fault, Transient) and fault.retry_after is not None:
        told["retry_after"] = fault.retry_after
    return told


async def _hung_up(request: Request) -> None:
    """Return when whoever asked has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _stopped(*tasks: asyncio.Future[Any]) -> None:
    """Cancel what still runs, and wait until it has ended."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError, Exception):
            await task


class _AtOnce:
    """An `Ask` whose `many` sends so many at once (RLM-Memory §4.3) and leaves out what is not answered."""

    def __init__(self, ask: AskModel, most: int) -> None:
        self._ask = ask
        self._most = most

    async def one(self, prompt: Prompt[R], ordinal: int = 0, *, repair: bool = True) -> R:
        """Pass a prompt on."""
        return await self._ask.one(prompt, ordinal, repair=repair)

    async def many(
        self, prompts: Sequence[Prompt[R]], *, first: int = 0, repair: bool = True
    ) -> list[R | Exception]:
        """Ask several prompts; `UnusableReply` or `ModelUnavailable` stands in the place of a failed one.

        Raises:
            BudgetSpent, Misconfigured, TablesUnavailable: of the first that met it; the others are ended.
        """
        places = asyncio.Semaphore(self._most)

        async def asked(prompt: Prompt[R], ordinal: int) -> R | Exception:
            async with places:
                try:
                    return await self._ask.one(prompt, ordinal, repair=repair)
                except (UnusableReply, ModelUnavailable) as fault:
                    return fault

        tasks = [
            asyncio.ensure_future(asked(prompt, ordinal)) for ordinal, prompt in enumerate(prompts, first)
        ]
        try:
            return await asyncio.gather(*tasks)
        finally:
            await _stopped(*tasks)
