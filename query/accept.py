"""The accepting door: a request is recorded, its turns published, and only then answered.

The order makes a retry safe after a crash at any step: the request's id follows from its idempotency key, the
turns' ids from that id or the caller's own message ids, so whatever is done twice has one effect.
"""

import hashlib
from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID, uuid4

import orjson

from lamina.query.errors import Refused
from lamina.query.models import Accepted, AddMemories, Message
from lamina.query.service import Service
from lamina.streams.codec import encode
from lamina.streams.identity import event_id_for_key, turn_id_from_event, turn_id_from_message
from lamina.streams.namespace import Namespace, namespace_of
from lamina.streams.placement import arrive, place
from lamina.streams.ports import Outgoing, Request
from lamina.streams.records import Turn
from lamina.streams.topics import DOOR_RECORD_BYTES, MAX_CONTENT_BYTES, TURNS


async def accept(
    body: AddMemories,
    header_key: str | None,
    tenant: str,
    service: Service,
    marks: Collection[UUID] = (),
) -> Accepted:
    """Accept messages: return once the broker has acknowledged every turn.

    The same idempotency key with the same body gives the same answer and doubles nothing.

    Args:
        body: the messages.
        header_key: the idempotency key, where a header names it.
        tenant: from the credential.
        service: the ports.
        marks: to be made with the acceptance: where it fails, they are not there.

    Raises:
        Refused: 413 for a message that is too large, 409 for a key that came with another body, 422 for two
            different keys.
        BrokerUnavailable: not every turn was acknowledged; the same request may be sent again.
        TablesUnavailable: the request was not recorded; nothing was published.
    """
    namespace = namespace_of(tenant, body.user_id)
    key = _key_of(body, header_key)
    event = uuid4() if key is None else event_id_for_key(tenant, key)
    turns = [_turn(body, message, index, namespace, event) for index, message in enumerate(body.messages)]
    values = [_record(turn, index) for index, turn in enumerate(turns)]
    ids = tuple(_id_of(turn) for turn in turns)
    asked = Request(event, namespace, _digest(body), ids, service.clock.now())
    if service.accept_rows:
        request = await _placed(asked, turns, marks, service)
    else:
        request = _same(asked, await service.tables.record_request(asked))
    outgoing = _outgoing(turns, values, namespace, request.accepted_at)
    if not marks:
        await service.publisher.publish(outgoing)
    elif service.accept_rows:
        await _published_or_unmarked(outgoing, marks, service)
    else:
        await service.publisher.publish(outgoing)
        await service.tables.mark(namespace, marks, request.accepted_at)
    return Accepted(event_id=request.id, turn_ids=list(request.turns))


async def _placed(
    asked: Request, turns: Sequence[Turn], marks: Collection[UUID], service: Service
) -> Request:
    """Record a request and write its turns as `accepted` rows and its marks, in one transaction.

    The embedded broker's log does not survive its process; these rows do, and are published again.
    """
    namespace = asked.namespace
    async with service.tables.transaction([namespace]) as tx:
        request = _same(asked, await tx.record_request(asked))
        at = request.accepted_at
        await place(tx, [arrive(namespace, turn, fallback_id=_id_of(turn), received_at=at) for turn in turns])
        await tx.mark(namespace, marks, at)
    return request


async def _published_or_unmarked(
    outgoing: Sequence[Outgoing], marks: Collection[UUID], service: Service
) -> None:
    """Publish; where that fails the marks go again, so that the caller's next request brings the turns again.

    A crash in between is mended by the next start, which publishes every row that is still `accepted`.
    """
    try:
        await service.publisher.publish(outgoing)
    except BaseException:
        await service.tables.unmark(marks)
        raise


def _same(asked: Request, recorded: Request) -> Request:
    """Return the request as it was recorded first.

    Raises:
        Refused: 409, it was another one.
    """
    if (recorded.digest, recorded.namespace) != (asked.digest, asked.namespace):
        raise Refused(
            409,
            "idempotency_key_reused",
            "this idempotency key came with another body before: send a new key for a new request",
            field="idempotency_key",
        )
    return recorded


def _key_of(body: AddMemories, header_key: str | None) -> str | None:
    if body.idempotency_key is not None and header_key not in {None, body.idempotency_key}:
        raise Refused(
            422,
            "invalid_request",
            "the header Idempotency-Key and the field idempotency_key differ: send one of them",
            field="idempotency_key",
        )
    return body.idempotency_key or header_key


def _digest(body: AddMemories) -> str:
    """Digest what the caller asked for, apart from the key; equal requests in other spellings are equal."""
    asked = body.model_dump(exclude={"idempotency_key"})
    return hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _turn(body: AddMemories, message: Message, index: int, namespace: Namespace, event: UUID) -> Turn:
    size = len(message.content.encode())
    if size > MAX_CONTENT_BYTES:
        raise _too_large(index, f"has {size} bytes of UTF-8; at most {MAX_CONTENT_BYTES} are allowed")
    return Turn(
        role=message.role,
        content=message.content,
        name=message.name,
        timestamp=message.timestamp or body.timestamp,
        message_id=message.message_id,
        run_id=body.run_id,
        agent_id=body.agent_id,
        metadata=body.metadata,
        id=turn_id_from_event(event, index)
        if message.message_id is None
        else turn_id_from_message(namespace, message.message_id),
    )


def _record(turn: Turn, index: int) -> bytes:
    value = encode(turn)
    if len(value) > DOOR_RECORD_BYTES:
        raise _too_large(
            index,
            f"takes {len(value)} bytes as JSON, metadata included; at most {DOOR_RECORD_BYTES} are allowed",
        )
    return value


def _too_large(index: int, why: str) -> Refused:
    sentence = f"message {index} {why}: split it"
    return Refused(413, "content_too_large", sentence, field=f"messages.{index}.content")


def _id_of(turn: Turn) -> UUID:
    assert turn.id is not None  # noqa: S101 - set by _turn
    return turn.id


def _outgoing(
    turns: Sequence[Turn], values: Sequence[bytes], namespace: Namespace, at: datetime
) -> list[Outgoing]:
    """Make one record per turn id; a message sent twice under one id is published once."""
    records: dict[UUID, Outgoing] = {}
    for turn, value in zip(turns, values, strict=True):
        headers = {
            "message-id": str(turn.id).encode(),
            "event-time": (turn.timestamp or at).isoformat().encode(),
        }
        records.setdefault(_id_of(turn), Outgoing(TURNS, namespace, value, headers))
    return list(records.values())
