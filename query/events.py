"""The route that tells what became of what was accepted."""

from collections.abc import Collection
from uuid import UUID

from fastapi import APIRouter

from lamina.query.auth import Tenant
from lamina.query.errors import Refused
from lamina.query.models import EventState, EventStatus, Problem, TurnState
from lamina.query.service import Doors, Service
from lamina.streams.namespace import Namespace, tenant_of
from lamina.streams.records import Status


def event_routes() -> APIRouter:
    """Return the routes under `/v1/events`."""
    routes = APIRouter(tags=["events"])
    routes.add_api_route(
        "/v1/events/{event_id}",
        get_event,
        methods=["GET"],
        summary="Ask what became of a request or a turn",
        responses={404: {"model": Problem, "description": "No such event of this tenant"}},
    )
    return routes


async def get_event(event_id: UUID, tenant: Tenant, doors: Doors) -> EventState:
    """Tell how far the turns of a request have come; a turn's own id works too.

    A turn is remembered when it is durable and can be found.
    """
    namespace, ids = await _turns_of(event_id, tenant, doors)
    units = await doors.tables.units(namespace, ids)
    memories = await doors.tables.derived_from(namespace, ids)
    unindexed = await doors.tables.unindexed(ids)
    turns = [
        TurnState(
            id=turn,
            # A turn that the gate has not seen has no row yet: it was accepted, and waits in its topic.
            status=Status.ACCEPTED if (unit := units.get(turn)) is None or turn in unindexed else unit.status,
            score=None if unit is None else unit.score,
            reason=None if unit is None else unit.reason,
            memories=memories.get(turn, []),
        )
        for turn in ids
    ]
    return EventState(id=event_id, status=overall([turn.status for turn in turns]), turns=turns)


async def _turns_of(event_id: UUID, tenant: str, service: Service) -> tuple[Namespace, list[UUID]]:
    """Return the turns of a request, or the one turn of that id.

    Raises:
        Refused: 404 where the tenant has neither.
    """
    request = await service.tables.request(event_id)
    if request is not None and tenant_of(request.namespace) == tenant:
        return request.namespace, list(dict.fromkeys(request.turns))
    unit = (await service.tables.find([event_id])).get(event_id)
    if unit is None or unit.kind != "turn" or tenant_of(unit.namespace) != tenant:
        raise Refused(404, "not_found", f"no event or turn {event_id}")
    return unit.namespace, [unit.id]


def overall(statuses: Collection[Status]) -> EventStatus:
    """Sum up the turns of a request: what failed comes first, then what is not done, then what is lasting."""
    kept = [status for status in statuses if status is not Status.GATED]
    if Status.FAILED in statuses:
        return "failed"
    if not all(status.terminal for status in statuses):
        return "accepted"
    if not kept:
        return "gated"
    return "consolidated" if all(status is Status.CONSOLIDATED for status in kept) else "remembered"
