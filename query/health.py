"""Routes for machines that watch: liveness, readiness, metrics. They need no key and name no tenant."""

import asyncio
from collections.abc import Awaitable, Mapping

from fastapi import APIRouter, Response

from lamina.query.models import Live, Ready
from lamina.query.service import Doors
from lamina.streams.errors import LaminaError

CHECK_SECONDS = 3.0
"""A dependency that is silent for so long is not ready; a probe would give up soon after."""


def health_routes() -> APIRouter:
    """Return `/metrics` and the routes under `/health`."""
    routes = APIRouter(tags=["health"])
    routes.add_api_route("/health/live", live, methods=["GET"], summary="Is the process alive?")
    routes.add_api_route(
        "/health/ready",
        ready,
        methods=["GET"],
        summary="Can it do its work?",
        responses={503: {"model": Ready, "description": "At least one check failed"}},
    )
    routes.add_api_route(
        "/metrics",
        metrics,
        methods=["GET"],
        summary="Prometheus metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    return routes


async def live() -> Live:
    """Answer without asking anything else: only a stuck process fails this."""
    return Live()


async def ready(doors: Doors, response: Response) -> Ready:
    """Ask every dependency; 503 names those that do not answer."""
    checks: dict[str, bool | str] = {}
    own, more = await asyncio.gather(
        asyncio.gather(_check(doors.tables.check()), _check(doors.store.count())), _more(doors.readiness())
    )
    checks = {"tables": own[0], "store": own[1], **more}
    is_ready = all(outcome is True for outcome in checks.values())
    response.status_code = 200 if is_ready else 503
    return Ready(ready=is_ready, checks=checks)


async def _check(question: Awaitable[object]) -> bool | str:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await question
    except LaminaError as exc:
        return str(exc) or exc.reason
    except TimeoutError:
        return f"no answer within {CHECK_SECONDS:g} seconds"
    return True


async def _more(checks: Awaitable[Mapping[str, bool | str]]) -> Mapping[str, bool | str]:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await checks
    except LaminaError as exc:
        return {"pipeline": str(exc) or exc.reason}
    except TimeoutError:
        return {"pipeline": f"no answer within {CHECK_SECONDS:g} seconds"}


async def metrics(doors: Doors) -> Response:
    """Return every metric of the catalogue as text."""
    page, content_type = doors.exposition()
    return Response(page, media_type=content_type)
