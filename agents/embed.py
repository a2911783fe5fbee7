"""embed: from `admitted` to `embedded`, the vectors in the headers."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np

from lamina.agents.guard import Step
from lamina.streams.codec import Vector, decode, encode, vector_from_bytes, vector_to_bytes
from lamina.streams.errors import MalformedRecord, WrongKey
from lamina.streams.late_interaction import TokenVectors, tokens_from_bytes, tokens_to_bytes
from lamina.streams.namespace import Namespace, parse_namespace
from lamina.streams.ports import Outgoing, Publisher
from lamina.streams.records import Admitted, Embedded, Unit
from lamina.streams.steps.embed import EmbeddedTurn, embed
from lamina.streams.steps.ports import Ports
from lamina.streams.topics import EMBEDDED

DENSE = "dense"
EXCHANGE = "exchange"
TOKENS = "tokens"
BEFORE = "before"


def embed_step(ports: Ports, publisher: Publisher) -> Step[Admitted]:
    """Build the step: one embedding call per batch, then publish every unit with its vectors."""

    def read(message: Any) -> Admitted:
        admitted = decode(Admitted, message.value)
        _check_key(message, admitted.unit)
        return admitted

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
    for name, tokens in ((TOKENS, each.tokens), (BEFORE, each.before)):
        if tokens is not None:
            headers[_pieces(name)], headers[name] = tokens_to_bytes(tokens)
    return Outgoing(EMBEDDED, each.record.unit.namespace, encode(each.record), headers)


def from_record(message: Any, dimension: int, token_width: int) -> EmbeddedTurn:
    """Read a record of `embedded`.

    Args:
        message: as the topic has it.
        dimension: of the embedder that wrote it.
        token_width: of the same; 0: it gives no tokens.

    Raises:
        MalformedRecord: not an embedded turn, or a vector is missing or of another length.
        WrongKey: the key is not the turn's namespace.
    """
    headers = dict(message.headers or ())
    if DENSE not in headers:
        raise MalformedRecord(f"the header {DENSE!r} with the turn's vector is missing")
    record = decode(Embedded, message.value)
    _check_key(message, record.unit)
    return EmbeddedTurn(
        record=record,
        dense=_vector(headers, DENSE, dimension),
        exchange=_vector(headers, EXCHANGE, dimension) if EXCHANGE in headers else None,
        tokens=_tokens(headers, TOKENS, token_width),
        before=_tokens(headers, BEFORE, token_width),
    )


def _pieces(name: str) -> str:
    return f"{name}-pieces"


def _tokens(headers: Mapping[str, bytes], name: str, width: int) -> TokenVectors | None:
    """Read tokens; a record of an earlier build has none: its turn is embedded again for the store."""
    if not width or name not in headers or _pieces(name) not in headers:
        return None
    return tokens_from_bytes(headers[_pieces(name)], headers[name], width)


def _vector(headers: Mapping[str, bytes], name: str, dimension: int) -> Vector:
    """Read a header; the store takes a wrong vector for a wrong set-up, and would stop the process."""
    vector = vector_from_bytes(headers[name])
    if vector.shape != (dimension,) or not np.isfinite(vector).all():
        raise MalformedRecord(f"the header {name!r} is not a vector of {dimension} finite numbers")
    return vector


def _check_key(message: Any, unit: Unit) -> None:
    if parse_namespace(message.key) != unit.namespace:
        raise WrongKey(f"the key is not the turn's namespace {unit.namespace}")
