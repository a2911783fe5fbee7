"""remember: from `embedded` into the tables and the vector store."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from lamina.agents.embed import from_record
from lamina.agents.guard import Step
from lamina.streams.namespace import Namespace
from lamina.streams.steps.embed import EmbeddedTurn
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.remember import RecurrenceCache, remember


def remember_step(ports: Ports, cache: RecurrenceCache, committed: Callable[[], None]) -> Step[EmbeddedTurn]:
    """Build the step; `committed` is called after each commit, to wake the outbox relay."""

    def read(message: Any) -> EmbeddedTurn:
        return from_record(message, ports.embedder.dimension, ports.embedder.token_width)

    async def handle(batch: Sequence[EmbeddedTurn]) -> None:
        await remember(batch, ports, cache)
        committed()

    def turn_of(item: EmbeddedTurn) -> tuple[Namespace, UUID]:
        return item.record.unit.namespace, item.record.unit.id

    return Step("remember", read, handle, turn_of)
