"""The route that answers a question from memory: by the chat model where there is one, else by rules."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from fastapi import APIRouter, Request, Response

from lamina.query.answer_models import AnswerResponse, Ask, Engine, citation
from lamina.query.auth import Tenant
from lamina.query.deep import EVENT_STREAM, answer_deep
from lamina.query.errors import PROBLEMS_OF_MODELS, Refused
from lamina.query.finding import Stopwatch, check_top_k, find, said, utc
from lamina.query.service import Doors, Service
from lamina.streams.answering import Evidence, answer
from lamina.streams.answering_prompted import answer_from
from lamina.streams.errors import BudgetSpent, Misconfigured, ModelUnavailable, UnusableReply
from lamina.streams.llm import Reader
from lamina.streams.namespace import Namespace, namespace_of
from lamina.streams.ports import Tables
from lamina.streams.recall.context import Packing, pack
from lamina.streams.recall.found import Filters, Found, in_time, known
from lamina.streams.recall.standing import standing
from lamina.streams.records import Unit


def answer_routes() -> APIRouter:
    """Return the route that answers."""
    routes = APIRouter(tags=["recall"])
    routes.add_api_route(
        "/v1/answer",
        ask,
        methods=["POST"],
        summary="Answer a question from memory",
        response_model=AnswerResponse,
        responses={**PROBLEMS_OF_MODELS, **EVENT_STREAM},
    )
    return routes


async def ask(body: Ask, tenant: Tenant, doors: Doors, request: Request) -> AnswerResponse | Response:
    """Answer from memory alone, and name the evidence; says so where memory holds no answer."""
    if body.strategy == "deep":
        return await answer_deep(body, namespace_of(tenant, body.user_id), doors, request)
    if body.top_k is not None:
        check_top_k(body.top_k, doors)
    if body.stream:
        sentence = f"stream: `{body.strategy}` has no steps to stream; only `deep` has"
        raise Refused(422, "invalid_request", sentence, field="stream")
    reader = _reader(body.engine, doors)
    namespace = namespace_of(tenant, body.user_id)
    watch = Stopwatch(body.strategy, doors.metrics)
    filters = Filters(as_of=utc(body.as_of))
    found = await find(
        body.query, namespace, doors, watch, filters=filters, top_k=body.top_k, options=body.options
    )
    if reader is None:
        return await _by_rules(body.query, found)
    try:
        return await _by_model(body, reader, found, namespace, doors)
    except (ModelUnavailable, BudgetSpent, UnusableReply, Misconfigured) as fault:
        if not body.fallback:
            raise
        given = await _by_rules(body.query, found)
        return given.model_copy(update={"fallback": fault.reason})


def _reader(engine: Engine | None, service: Service) -> Reader | None:
    """Return what answers: the model where it is wanted, or nothing else was said and there is one."""
    if engine == "extractive":
        return None
    if engine == "model" and service.reader is None:
        sentence = (
            "engine: this service has no chat model; set LAMINA_LLM_MODEL, or send `extractive` to be "
            "answered by rules"
        )
        raise Refused(422, "no_model", sentence, field="engine")
    return service.reader


async def _by_rules(question: str, found: Sequence[Found]) -> AnswerResponse:
    evidence = [Evidence(one.unit, one.cosine, one.turns) for one in found]
    # Very long turns take seconds to read through: other requests go on meanwhile.
    given = await asyncio.to_thread(answer, question, evidence)
    return AnswerResponse(
        answer=given.text,
        grounded=given.grounded,
        engine=given.engine,
        evidence=[said(turn) for turn in given.turns],
        cited=[citation(turn) for turn in given.turns],
    )


async def _by_model(
    body: Ask, reader: Reader, found: Sequence[Found], namespace: Namespace, service: Service
) -> AnswerResponse:
    as_of = utc(body.as_of)
    told = await standing(found, namespace, service.tables, as_of)
    packed = await asyncio.to_thread(pack, found, body.max_tokens, Packing(numbered=True), told)
    asked_at = as_of or service.clock.now()
    given = await answer_from(packed, body.query, asked_at, reader.ask(namespace))
    turns = await _turns_of(given.cited, namespace, service.tables, as_of)
    return AnswerResponse(
        answer=given.text,
        grounded=given.grounded,
        engine=reader.name,
        evidence=[said(turn) for turn in turns],
        cited=[citation(unit) for unit in given.cited],
    )


async def _turns_of(
    cited: Sequence[Unit], namespace: Namespace, tables: Tables, as_of: datetime | None
) -> tuple[Unit, ...]:
    """Return the turns that cited memories are, or rest on, in time order."""
    turns: dict[UUID, Unit] = {unit.id: unit for unit in cited if unit.kind == "turn"}
    rests = {turn for unit in cited for turn in unit.evidence} - turns.keys()
    if rests:
        turns |= await tables.units(namespace, rests)
    return in_time(turn for turn in turns.values() if known(turn, as_of))
