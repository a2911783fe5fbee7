"""What the embedded system owes to a broker whose log is gone: accepted turns are published again."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import groupby

from lamina.streams.codec import encode
from lamina.streams.placement import reply_closes
from lamina.streams.ports import Outgoing, Publisher, Tables
from lamina.streams.records import Turn, Unit
from lamina.streams.topics import TURNS

PAGE = 500

Place = tuple[str, int]


async def republish_unfinished(tables: Tables, publisher: Publisher, *, exchanges: bool = True) -> int:
    """Publish every turn that is not in a terminal state again, in order, and commands that never arrived.

    A gated reply is in its terminal state before its exchange is counted: it is published again too, so that
    the exchange still counts (`exchanges`: whether recurrence counts them). Commands that a killed process
    had claimed are free again at once. Whatever was done already is found done by its id. Returns the number
    of turns.

    Raises:
        BrokerUnavailable, TablesUnavailable: call again.
    """
    # Those that were on their way at the kill; counted ones are not among them.
    replies = [each async for each in _uncounted_replies(tables)] if exchanges else []
    published = 0
    async for page in _pages(tables.unfinished_turns):
        last = _place_of(page[-1])
        earlier = [each for each in replies if _place_of(each) < last]
        replies = replies[len(earlier) :]
        published += await _publish(sorted([*page, *earlier], key=_place_of), publisher)
    published += await _publish(replies, publisher)
    await tables.free_lanes()
    await tables.reissue_commands()
    return published


async def _publish(units: Sequence[Unit], publisher: Publisher) -> int:
    await publisher.publish([Outgoing(TURNS, unit.namespace, encode(_turn_of(unit))) for unit in units])
    return len(units)


async def _uncounted_replies(tables: Tables) -> AsyncIterator[Unit]:
    async for page in _pages(tables.uncounted_turns):
        for namespace, turns in groupby(page, lambda turn: turn.namespace):
            replies = list(turns)
            before = await tables.turns_at(namespace, [(each.session, each.ordinal - 1) for each in replies])
            for each in replies:
                if reply_closes(before[each.session, each.ordinal - 1], each):
                    yield each


async def _pages(read: Callable[[Place | None, int], Awaitable[list[Unit]]]) -> AsyncIterator[list[Unit]]:
    after: Place | None = None
    while page := await read(after, PAGE):
        yield page
        after = _place_of(page[-1])


def _place_of(unit: Unit) -> Place:
    return unit.namespace, unit.position


def _turn_of(unit: Unit) -> Turn:
    """Write a row as the turn that was sent; its id brings it back to this row."""
    return Turn(
        id=unit.id,
        role=unit.role,
        name=unit.speaker,
        content=unit.text,
        timestamp=unit.said_at,
        run_id=unit.session,
        metadata=unit.metadata,
    )
