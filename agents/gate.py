"""gate: from `turns` to `admitted` or `gated`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from lamina.agents.guard import Step
from lamina.streams.codec import decode, encode
from lamina.streams.identity import turn_id_from_record
from lamina.streams.namespace import Namespace, parse_namespace
from lamina.streams.placement import arrive
from lamina.streams.ports import Outgoing, Publisher
from lamina.streams.records import Placement, Turn
from lamina.streams.steps.gate import gate
from lamina.streams.steps.ports import Ports
from lamina.streams.topics import ADMITTED, GATED


def gate_step(ports: Ports, publisher: Publisher) -> Step[Placement]:
    """Build the step: place and judge a batch, then publish every verdict."""
    cluster = ports.settings.cluster

    def read(message: Any) -> Placement:
        namespace = parse_namespace(message.key)
        turn = decode(Turn, message.value)
        fallback = turn_id_from_record(
            cluster, message.topic, message.partition, message.offset, turn.content
        )
        received_at = datetime.fromtimestamp(message.timestamp, tz=UTC)
        return arrive(namespace, turn, fallback_id=fallback, received_at=received_at)

    async def handle(batch: Sequence[Placement]) -> None:
        judged = await gate(batch, ports)
        gated = [Outgoing(GATED, each.unit.namespace, encode(each)) for each in judged.gated]
        admitted = [Outgoing(ADMITTED, each.unit.namespace, encode(each)) for each in judged.forwarded]
        await publisher.publish([*gated, *admitted])

    def turn_of(item: Placement) -> tuple[Namespace, UUID]:
        return item.namespace, item.id

    return Step("gate", read, handle, turn_of)
