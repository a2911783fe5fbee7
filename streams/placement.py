"""Give an arriving turn its id, its time, and its place: session, ordinal, exchange.

The doors decide what they can without state (`arrive`), the tables the rest (`place`). A turn that
arrives again keeps the place it got first.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from lamina.streams.errors import InvalidTurn
from lamina.streams.identity import turn_id_from_message
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Transaction
from lamina.streams.records import Placement, TimeSource, Turn, Unit
from lamina.streams.topics import MAX_CONTENT_BYTES

SESSION_GAP = timedelta(minutes=30)
"""Silence after which a turn without a `run_id` begins a new session."""

FUTURE = timedelta(days=1)
"""A time further ahead of its arrival than this is flagged; it is kept as given."""


def arrive(namespace: Namespace, turn: Turn, *, fallback_id: UUID, received_at: datetime) -> Placement:
    """Check a turn and settle its id and its time.

    Args:
        namespace: from the credential or the record's key, never from the turn.
        turn: as its author sent it.
        fallback_id: the id where the author numbered nothing and no door set one.
        received_at: the record's own timestamp, zone-aware.

    Raises:
        InvalidTurn: it breaks a rule of the doors (`check`).
    """
    check(turn)
    if turn.id is not None:
        identity = turn.id
    elif turn.message_id is not None:
        identity = turn_id_from_message(namespace, turn.message_id)
    else:
        identity = fallback_id
    said_at, source = _time_of(turn.timestamp, received_at)
    return Placement(
        namespace=namespace,
        turn=turn,
        id=identity,
        said_at=said_at,
        time_source=source,
        recorded_at=received_at.astimezone(UTC),
    )


def check(turn: Turn) -> None:
    """Refuse a turn that breaks a rule of the doors.

    Raises:
        InvalidTurn: no content, more than 256 KB of it, or a time that the calendar does not hold.
    """
    if not turn.content.strip():
        raise InvalidTurn("content is empty: send what was said")
    size = len(turn.content.encode("utf-8", errors="surrogatepass"))
    if size > MAX_CONTENT_BYTES:
        raise InvalidTurn(
            f"content has {size} bytes; at most {MAX_CONTENT_BYTES} are allowed: split the turn"
        )
    if turn.timestamp is not None and turn.timestamp.tzinfo is not None:
        try:
            turn.timestamp.astimezone(UTC)
        except OverflowError as exc:
            raise InvalidTurn("timestamp is outside the years 1 to 9999 in UTC") from exc


def _time_of(timestamp: datetime | None, received_at: datetime) -> tuple[datetime, TimeSource]:
    if timestamp is None:
        return received_at.astimezone(UTC), "missing"
    if timestamp.tzinfo is None:
        return timestamp.replace(tzinfo=UTC), "zoneless"
    said_at = timestamp.astimezone(UTC)
    return said_at, "future" if said_at - received_at > FUTURE else "given"


def session_of(placement: Placement, last: Unit | None) -> str:
    """Return the caller's `run_id`, else the running session, else a new one after a gap of 30 minutes."""
    if placement.turn.run_id is not None:
        return placement.turn.run_id
    if last is not None and last.session.startswith("auto:"):
        gap = abs(placement.said_at - last.said_at)
        if gap <= SESSION_GAP:
            return last.session
    return f"auto:{placement.said_at.isoformat()}"


def reply_closes(previous: Unit, turn: Unit) -> bool:
    """Tell whether `turn` answers `previous`, so that the two are one exchange (RecMem eq. 3).

    `previous` is the turn just before it in the session. Where roles exist, an assistant's turn answers a
    user's; between people (all `user`), the second of each consecutive pair answers the first.
    """
    if turn.role == "assistant":
        return previous.role == "user"
    return (
        turn.role == "user"
        and previous.role == "user"
        and turn.speaker != previous.speaker
        and turn.ordinal % 2 == 1
    )


async def place(tx: Transaction, placements: Sequence[Placement]) -> list[Unit]:
    """Return the unit of each placement, in order, inserting those that are new as `accepted`.

    The transaction must hold the namespaces of all placements.

    Raises:
        InvalidTurn: a turn came with the id of something else; nothing was placed.
        TablesUnavailable: nothing was placed.
    """
    units = await tx.units({placement.id for placement in placements})
    lasts: dict[Namespace, Unit | None] = {}
    lengths: dict[tuple[Namespace, str], int] = {}
    fresh: list[Unit] = []
    for placement in placements:
        namespace = placement.namespace
        if placement.id in units:
            if units[placement.id].namespace != namespace or units[placement.id].kind != "turn":
                raise InvalidTurn(f"the id {placement.id} is taken by another user's turn, or by no turn")
            continue
        if namespace not in lasts:
            lasts[namespace] = await tx.last_turn(namespace)
        session = session_of(placement, lasts[namespace])
        if (namespace, session) not in lengths:
            lengths[namespace, session] = await tx.session_length(namespace, session)
        unit = _unit_of(placement, session, lengths[namespace, session])
        lengths[namespace, session] += 1
        lasts[namespace] = units[unit.id] = unit
        fresh.append(unit)
    positions = {
        namespace: await tx.advance(namespace, sum(unit.namespace == namespace for unit in fresh))
        for namespace in {unit.namespace for unit in fresh}
    }
    for index, unit in enumerate(fresh):
        fresh[index] = units[unit.id] = unit.model_copy(update={"position": positions[unit.namespace]})
        positions[unit.namespace] += 1
    await tx.insert_units(fresh)
    return [units[placement.id] for placement in placements]


def _unit_of(placement: Placement, session: str, ordinal: int) -> Unit:
    turn = placement.turn
    metadata = turn.metadata if turn.agent_id is None else {**turn.metadata, "agent_id": turn.agent_id}
    return Unit(
        id=placement.id,
        namespace=placement.namespace,
        kind="turn",
        session=session,
        ordinal=ordinal,
        role=turn.role,
        speaker=turn.name or turn.role,
        text=turn.content,
        said_at=placement.said_at,
        time_source=placement.time_source,
        recorded_at=placement.recorded_at,
        visible=False,
        metadata=metadata,
    )
