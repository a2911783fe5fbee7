"""embed: from `admitted` to `embedded`, the vectors in the headers."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from lamina.agents.guard import Step
from lamina.streams.codec import decode, encode, vector_from_bytes, vector_to_bytes
from lamina.streams.errors import MalformedRecord
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Outgoing, Publisher
from lamina.streams.records import Admitted, Embedded
from lamina.streams.steps.embed import EmbeddedTurn, embed
from lamina.streams.steps.ports import Ports
from lamina.streams.topics import EMBEDDED

DENSE = "dense"
EXCHANGE = "exchange"


def embed_step(ports: Ports, publisher: Publisher) -> Step[Admitted]:
    """Build the step: one embedding call per batch, then publish every unit with its vectors."""

    def read(message: Any) -> Admitted:
        return decode(Admitted, message.value)

    async def handle(batch: Sequence[Admitted]) -> None:
        await publisher.publish([to_record(each) for each in await embed(batch, ports)])

    def turn_of(item: Admitted) -> tuple[Namespace, UUID]:
        return item.unit.namespace, item.unit.id

    return Step("embed", read, handle, turn_of)


def to_record(each: EmbeddedTurn) -> Outgoing:
    """Write an embedded turn as a record of `embedded`."""
    headers = {DENSE: vector_to_bytes(each.dense)}
    if each.exchange is not None:
        headers[EXCHANGE] = vector_to_bytes(each.exchange)
    return Outgoing(EMBEDDED, each.record.unit.namespace, encode(each.record), headers)


def from_record(message: Any) -> EmbeddedTurn:
    """Read a record of `embedded`.

    Raises:
        MalformedRecord: not an embedded turn, or its vector is missing.
    """
    headers = dict(message.headers or ())
    if DENSE not in headers:
        raise MalformedRecord(f"the header {DENSE!r} with the turn's vector is missing")
    exchange = headers.get(EXCHANGE)
    return EmbeddedTurn(
        record=decode(Embedded, message.value),
        dense=vector_from_bytes(headers[DENSE]),
        exchange=None if exchange is None else vector_from_bytes(exchange),
    )
