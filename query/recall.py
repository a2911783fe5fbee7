"""Routes that read memory: search, context, answer."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from time import perf_counter

from fastapi import APIRouter

from lamina.query.auth import Tenant
from lamina.query.errors import Refused
from lamina.query.models import (
    AnswerResponse,
    Ask,
    Citation,
    ContextRequest,
    ContextResponse,
    MemoryLink,
    Result,
    Said,
    Search,
    SearchResponse,
)
from lamina.query.service import Doors, Service
from lamina.streams.answering import Evidence, answer
from lamina.streams.metrics import RECALL_SECONDS
from lamina.streams.namespace import Namespace, namespace_of
from lamina.streams.ports import Metrics
from lamina.streams.recall.context import pack, tokens_of
from lamina.streams.recall.found import TIERS, Asked, Filters, Found, Sources
from lamina.streams.recall.options import Options, Strategy
from lamina.streams.recall.strategies import recall
from lamina.streams.recall.tiers import Budget
from lamina.streams.records import Unit

MILLISECONDS = 1000.0


def recall_routes() -> APIRouter:
    """Return the routes that read memory."""
    routes = APIRouter(tags=["recall"])
    routes.add_api_route(
        "/v1/memories/search",
        search,
        methods=["POST"],
        summary="Search a user's memory",
        response_model_exclude_unset=True,
    )
    routes.add_api_route("/v1/context", context, methods=["POST"], summary="Get one block for a prompt")
    routes.add_api_route("/v1/answer", ask, methods=["POST"], summary="Answer a question from memory")
    return routes


async def search(body: Search, tenant: Tenant, doors: Doors) -> SearchResponse:
    """Search by meaning; every result names the turns it rests on. A user without memories has no results."""
    _check_top_k(body.top_k, doors)
    filters = _filters(body)
    namespace = namespace_of(tenant, body.user_id)
    watch = _Stopwatch(body.strategy, doors.metrics)
    found = await _recall(
        body.query, namespace, doors, watch, filters=filters, top_k=body.top_k, options=body.options
    )
    if body.max_tokens is not None:
        found = _within(found, body.max_tokens)
    results = [_result(one) for one in found]
    if "turns" in body.include:
        for result, one in zip(results, found, strict=True):
            result.turns = [_said(turn) for turn in one.turns]
    if "why" in body.include:
        for result, one in zip(results, found, strict=True):
            result.why = {**one.why}
    if "links" in body.include:
        for result in results:
            links = await doors.tables.links_of(namespace, result.id)
            result.links = [MemoryLink.model_validate(link, from_attributes=True) for link in links]
    response = SearchResponse(strategy=body.strategy, results=results)
    if "timings" in body.include:
        response.timings = watch.timings
    return response


async def context(body: ContextRequest, tenant: Tenant, doors: Doors) -> ContextResponse:
    """Pack what memory holds on a question into one block, facts first, every line with its citation."""
    namespace = namespace_of(tenant, body.user_id)
    watch = _Stopwatch(body.strategy, doors.metrics)
    filters = Filters(as_of=_utc(body.as_of))
    packed = pack(await _recall(body.question, namespace, doors, watch, filters=filters), body.max_tokens)
    citations = [
        Citation(id=unit.id, kind=unit.kind, speaker=unit.speaker, said_at=unit.said_at)
        for unit in packed.citations
    ]
    return ContextResponse(context=packed.text, citations=citations, tokens=packed.tokens)


async def ask(body: Ask, tenant: Tenant, doors: Doors) -> AnswerResponse:
    """Answer from memory alone, and name the evidence; says so where memory holds no answer."""
    if body.top_k is not None:
        _check_top_k(body.top_k, doors)
    namespace = namespace_of(tenant, body.user_id)
    watch = _Stopwatch(body.strategy, doors.metrics)
    filters = Filters(as_of=_utc(body.as_of))
    found = await _recall(body.query, namespace, doors, watch, filters=filters, top_k=body.top_k)
    evidence = [Evidence(one.unit, one.cosine, one.turns) for one in found]
    # Very long turns take seconds to read through: other requests go on meanwhile.
    given = await asyncio.to_thread(answer, body.query, evidence)
    return AnswerResponse(
        answer=given.text,
        grounded=given.grounded,
        engine=given.engine,
        evidence=[_said(turn) for turn in given.turns],
    )


async def _recall(
    question: str,
    namespace: Namespace,
    service: Service,
    watch: "_Stopwatch",
    *,
    filters: Filters,
    top_k: int | None = None,
    options: Options | None = None,
) -> list[Found]:
    settings = service.settings
    with watch.stage("embed"):
        vectors = await service.embedder.embed([question])
    found = await recall(
        watch.strategy,
        Asked(question, vectors[0], namespace, service.clock.now(), filters, top_k),
        Sources(service.store, service.tables, service.embedder, watch.stage),
        budget=Budget(settings.k_sub, settings.k_epi, settings.k_sem),
        options=options or Options(),
    )
    watch.report()
    return found


class _Stopwatch:
    """Times the stages of one recall, for the metrics and for a caller who asked."""

    def __init__(self, strategy: Strategy, metrics: Metrics) -> None:
        self.strategy = strategy
        self._metrics = metrics
        self._seconds: dict[str, float] = {}

    @property
    def timings(self) -> dict[str, float]:
        """Milliseconds by stage."""
        return {name: round(seconds * MILLISECONDS, 3) for name, seconds in self._seconds.items()}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begun = perf_counter()
        yield
        self._seconds[name] = self._seconds.get(name, 0.0) + perf_counter() - begun

    def report(self) -> None:
        """Observe each stage once, however often the strategy came back to it."""
        for name, seconds in self._seconds.items():
            self._metrics.observe(RECALL_SECONDS, seconds, strategy=self.strategy, stage=name)


def _check_top_k(top_k: int, service: Service) -> None:
    most = service.settings.top_k_max
    if top_k > most:
        raise Refused(422, "invalid_request", f"top_k: allowed are 1 to {most}, not {top_k}", field="top_k")


def _filters(body: Search) -> Filters:
    asked = body.filters
    said_from, said_to = _utc(asked.said_from), _utc(asked.said_to)
    if said_from is not None and said_to is not None and said_from > said_to:
        raise Refused(
            422,
            "invalid_request",
            "filters.said_from: is later than filters.said_to, so nothing could be found",
            field="filters.said_from",
        )
    return Filters(
        kinds=tuple(TIERS) if body.kinds is None else tuple(dict.fromkeys(body.kinds)),
        session=asked.run_id,
        speaker=asked.speaker,
        said_from=said_from,
        said_to=said_to,
        as_of=_utc(body.as_of),
    )


def _utc(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _within(found: Sequence[Found], max_tokens: int) -> list[Found]:
    """Keep, best first, what fits; a shorter text after one that does not fit may still come in."""
    kept: list[Found] = []
    for one in found:
        size = tokens_of(one.unit.text)
        if size <= max_tokens:
            max_tokens -= size
            kept.append(one)
    return kept


def _result(found: Found) -> Result:
    unit = found.unit
    return Result(
        id=unit.id,
        kind=unit.kind,
        text=unit.text,
        score=found.score,
        tier=found.tier,
        visible=unit.visible,
        session=unit.session,
        speaker=unit.speaker,
        said_at=unit.said_at,
        time_source=unit.time_source,
        valid_from=unit.valid_from,
        valid_to=unit.valid_to,
        engine=unit.engine,
        evidence=[turn.id for turn in found.turns],
    )


def _said(turn: Unit) -> Said:
    return Said(id=turn.id, speaker=turn.speaker, text=turn.text, said_at=turn.said_at)
