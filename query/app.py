"""Build the HTTP service from its ports. Who builds it runs it, and closes the ports afterwards."""

from collections.abc import Mapping
from importlib.metadata import version
from time import perf_counter

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamina.query.answer import answer_routes
from lamina.query.chat import chat_routes
from lamina.query.chat_upstream import Upstream
from lamina.query.errors import add_error_handlers
from lamina.query.events import event_routes
from lamina.query.health import health_routes
from lamina.query.memories import memory_routes
from lamina.query.models import Problem
from lamina.query.recall import recall_routes
from lamina.query.service import Exposition, Readiness, Service
from lamina.streams.llm import Reader
from lamina.streams.metrics import REQUEST_SECONDS
from lamina.streams.ports import Clock, Embedder, Metrics, Publisher, Tables, VectorStore
from lamina.streams.recall.deep.sandbox import Sandbox
from lamina.streams.settings import Settings

DESCRIPTION = """Streaming long-term memory for LLM agents.

Post messages to `/v1/memories`; search, ask, or get a block of context for a prompt. The tenant comes
from the API key. Every fault has one shape: `detail` for a person, `reason` for a program."""


async def nothing_more() -> Mapping[str, str | bool]:
    """Check nothing beyond tables and store."""
    return {}


def build_api(
    settings: Settings,
    *,
    tables: Tables,
    store: VectorStore,
    embedder: Embedder,
    publisher: Publisher,
    clock: Clock,
    metrics: Metrics,
    exposition: Exposition,
    readiness: Readiness = nothing_more,
    accept_rows: bool = False,
    reader: Reader | None = None,
    upstream: Upstream | None = None,
    sandbox: Sandbox | None = None,
) -> FastAPI:
    """Build the service.

    Args:
        settings: API keys, the tenant where there are none, recall budgets and limits.
        tables: read by every route; written by the accepting one.
        store: searched by recall.
        embedder: embeds questions.
        publisher: takes accepted turns; a request is answered once it has acknowledged them.
        clock: stamps requests.
        metrics: takes request and recall times.
        exposition: what `/metrics` answers.
        readiness: further checks of `/health/ready`, such as lag and the broker.
        accept_rows: place accepted turns in the tables before they are published (the embedded system).
        reader: the chat model that answers; None: by rules.
        upstream: the endpoint behind the chat proxy; None: no proxy.
        sandbox: runs the programs of `deep`; None: the strategy is refused.
    """
    api = FastAPI(
        title="Lamina",
        version=version("lamina"),
        summary="Memory for agents, with its evidence",
        description=DESCRIPTION,
        redoc_url=None,
    )
    api.state.service = Service(
        settings,
        tables,
        store,
        embedder,
        publisher,
        clock,
        metrics,
        exposition,
        readiness,
        accept_rows,
        reader,
        upstream,
        sandbox,
    )
    api.add_middleware(_Timed, metrics=metrics)
    add_error_handlers(api)
    for routes in (recall_routes(), answer_routes(), memory_routes(), event_routes()):
        api.include_router(routes, responses=_PROBLEMS)
    api.include_router(chat_routes())
    api.include_router(health_routes())
    return api


_PROBLEMS: dict[int | str, dict[str, object]] = {
    401: {"model": Problem, "description": "No valid API key"},
    422: {"model": Problem, "description": "The request breaks a rule; the problem names the field"},
    503: {
        "model": Problem,
        "description": "A dependency is away; send the same request again",
        "headers": {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer"}}},
    },
}


class _Timed:
    """Measures every request by the template of its route and its status, whatever becomes of it."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        begun = perf_counter()
        try:
            await self._app(scope, receive, note)
        finally:
            # An address that matches no route is the caller's text: it must not become a label.
            route = getattr(scope.get("route"), "path", "unmatched")
            self._metrics.observe(REQUEST_SECONDS, perf_counter() - begun, route=route, status=str(status))
