"""What the routes work with: the ports and settings that `build_api` was given."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from lamina.query.chat_upstream import Upstream
from lamina.streams.llm import Reader
from lamina.streams.ports import Clock, Embedder, Metrics, Publisher, Tables, VectorStore
from lamina.streams.recall.deep.sandbox import Sandbox
from lamina.streams.settings import Settings

Readiness = Callable[[], Awaitable[Mapping[str, str | bool]]]
"""More checks for `/health/ready`, by name: True, or what is wrong (False, or a sentence)."""

Exposition = Callable[[], tuple[bytes, str]]
"""The metrics as a page and its content type."""


@dataclass(frozen=True, slots=True)
class Service:
    """Everything one query service is wired from."""

    settings: Settings
    tables: Tables
    store: VectorStore
    embedder: Embedder
    publisher: Publisher
    clock: Clock
    metrics: Metrics
    exposition: Exposition
    readiness: Readiness
    accept_rows: bool
    """Whether turns are placed in the tables before they are published (the embedded system)."""
    reader: Reader | None = None
    """The chat model that answers; None: by rules (extractive)."""
    upstream: Upstream | None = None
    """What the chat proxy passes to; None: there is no proxy."""
    sandbox: Sandbox | None = None
    """Runs the programs of `deep`; None where there is no model to write them."""


async def _service_of(request: Request) -> Service:  # async, or FastAPI would call it in a thread
    service: Service = request.app.state.service
    return service


Doors = Annotated[Service, Depends(_service_of)]
"""The service, as a parameter of a route."""
