"""Routes that take memories in and show one by its id."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query

from lamina.query.accept import accept
from lamina.query.auth import Tenant
from lamina.query.errors import Refused
from lamina.query.models import Accepted, AddMemories, Links, Memory, MemoryLink, Problem, UserId
from lamina.query.service import Doors, Service
from lamina.streams.namespace import namespace_of, tenant_of, user_of
from lamina.streams.records import Unit

IdempotencyKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=512, description="makes a retry safe"),
]
OfUser = Annotated[UserId | None, Query(description="whose memory it must be")]


def memory_routes() -> APIRouter:
    """Return the routes under `/v1/memories`."""
    routes = APIRouter(tags=["memories"])
    routes.add_api_route(
        "/v1/memories",
        add_memories,
        methods=["POST"],
        status_code=202,
        summary="Remember messages",
        responses={
            409: {"model": Problem, "description": "The idempotency key came with another body"},
            413: {"model": Problem, "description": "A message is too large"},
        },
    )
    for path, route, summary in (
        ("/v1/memories/{memory_id}", get_memory, "Show a memory"),
        ("/v1/memories/{memory_id}/links", get_links, "Show a memory's links"),
    ):
        routes.add_api_route(
            path,
            route,
            methods=["GET"],
            summary=summary,
            responses={404: {"model": Problem, "description": "No such memory of this tenant"}},
        )
    return routes


async def add_memories(
    body: AddMemories, tenant: Tenant, doors: Doors, key: IdempotencyKey = None
) -> Accepted:
    """Accept messages; answered once they are safe, worked on afterwards.

    Send an idempotency key to make retries safe: the same key and body always get the same answer, and
    nothing is remembered twice.
    """
    return await accept(body, key, tenant, doors)


async def get_memory(memory_id: UUID, tenant: Tenant, doors: Doors, user_id: OfUser = None) -> Memory:
    """Show a memory with its evidence and validity; archived and gated ones too."""
    unit = await _unit(memory_id, tenant, user_id, doors)
    return Memory.model_validate(
        {**unit.model_dump(exclude={"namespace", "schema_version"}), "user_id": user_of(unit.namespace)}
    )


async def get_links(memory_id: UUID, tenant: Tenant, doors: Doors, user_id: OfUser = None) -> Links:
    """Show the typed links from and to a memory."""
    unit = await _unit(memory_id, tenant, user_id, doors)
    links = await doors.tables.links_of(unit.namespace, unit.id)
    return Links(links=[MemoryLink.model_validate(link, from_attributes=True) for link in links])


async def _unit(memory_id: UUID, tenant: str, user_id: str | None, service: Service) -> Unit:
    """Return a unit of the tenant; another tenant's is as unknown as one that never was.

    Raises:
        Refused: 404.
    """
    unit = (await service.tables.find([memory_id])).get(memory_id)
    whose = None if user_id is None else namespace_of(tenant, user_id)
    if unit is None or tenant_of(unit.namespace) != tenant or whose not in {None, unit.namespace}:
        raise Refused(404, "not_found", f"no memory {memory_id}" + (" of this user" if user_id else ""))
    return unit
