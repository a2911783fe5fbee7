"""Routes that read memory: search and context; `lamina.query.answer` answers."""

import asyncio
from collections.abc import Mapping, Sequence
from uuid import UUID

from fastapi import APIRouter

from lamina.query.answer_models import ContextRequest, ContextResponse, citation
from lamina.query.auth import Tenant
from lamina.query.errors import Refused
from lamina.query.finding import Stopwatch, check_top_k, find, said, utc
from lamina.query.models import MemoryLink, Result, Search, SearchResponse
from lamina.query.service import Doors
from lamina.streams.namespace import Namespace, namespace_of
from lamina.streams.ports import Tables
from lamina.streams.recall.context import Packing, pack, tokens_of
from lamina.streams.recall.found import TIERS, Filters, Found
from lamina.streams.recall.standing import standing
from lamina.streams.records import Link


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
    return routes


async def search(body: Search, tenant: Tenant, doors: Doors) -> SearchResponse:
    """Search by meaning; every result names the turns it rests on. A user without memories has no results."""
    check_top_k(body.top_k, doors)
    filters = _filters(body)
    namespace = namespace_of(tenant, body.user_id)
    watch = Stopwatch(body.strategy, doors.metrics)
    found = await find(
        body.query, namespace, doors, watch, filters=filters, top_k=body.top_k, options=body.options
    )
    if body.max_tokens is not None:
        found = _within(found, body.max_tokens)
    results = [_result(one) for one in found]
    if "turns" in body.include:
        for result, one in zip(results, found, strict=True):
            result.turns = [said(turn) for turn in one.turns]
    if "why" in body.include:
        for result, one in zip(results, found, strict=True):
            result.why = {**one.why}
    if "links" in body.include:
        links = await _links(namespace, [result.id for result in results], doors.tables)
        for result in results:
            result.links = [
                MemoryLink.model_validate(link, from_attributes=True) for link in links[result.id]
            ]
    response = SearchResponse(strategy=body.strategy, results=results)
    if "timings" in body.include:
        response.timings = watch.timings
    return response


async def context(body: ContextRequest, tenant: Tenant, doors: Doors) -> ContextResponse:
    """Pack what memory holds on a question into one block, the general first, each line with its citation."""
    namespace = namespace_of(tenant, body.user_id)
    watch = Stopwatch(body.strategy, doors.metrics)
    filters = Filters(as_of=utc(body.as_of))
    found = await find(body.question, namespace, doors, watch, filters=filters, options=body.options)
    known = await standing(found, namespace, doors.tables, filters.as_of)
    packing = Packing(body.superseded, body.dates)
    # Dates are read by rules, in milliseconds: other requests go on meanwhile.
    packed = await asyncio.to_thread(pack, found, body.max_tokens, packing, known)
    citations = [citation(unit) for unit in packed.citations]
    return ContextResponse(context=packed.text, citations=citations, tokens=packed.tokens)


async def _links(
    namespace: Namespace, units: Sequence[UUID], tables: Tables
) -> Mapping[UUID, Sequence[Link]]:
    """Return the links from and to each unit by source, target and type: read at once, not one by one."""
    if not units:
        return {}
    entering = await tables.links_to(namespace, units)
    leaving = await tables.links_from(namespace, units)
    found: dict[UUID, set[Link]] = {unit: set() for unit in units}
    for link in (*entering, *leaving):
        for unit in found.keys() & {link.source, link.target}:
            found[unit].add(link)
    return {unit: sorted(some, key=_by_ends) for unit, some in found.items()}


def _by_ends(link: Link) -> tuple[UUID, UUID, str]:
    return link.source, link.target, link.type


def _filters(body: Search) -> Filters:
    asked = body.filters
    said_from, said_to = utc(asked.said_from), utc(asked.said_to)
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
        as_of=utc(body.as_of),
    )


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
