"""What the embedded system owes to a broker whose log is gone: accepted turns are published again."""

from lamina.streams.codec import encode
from lamina.streams.ports import Outgoing, Publisher, Tables
from lamina.streams.records import Turn, Unit
from lamina.streams.topics import TURNS

PAGE = 500


async def republish_unfinished(tables: Tables, publisher: Publisher) -> int:
    """Publish every turn that is not in a terminal state again, in order, and commands that never arrived.

    Commands that a killed process had claimed are free again at once. Whatever was done already is found
    done by its id. Returns the number of turns.

    Raises:
        BrokerUnavailable, TablesUnavailable: call again.
    """
    after: tuple[str, int] | None = None
    published = 0
    while page := await tables.unfinished_turns(after, PAGE):
        await publisher.publish([Outgoing(TURNS, unit.namespace, encode(_turn_of(unit))) for unit in page])
        published += len(page)
        after = (page[-1].namespace, page[-1].position)
    await tables.free_lanes()
    await tables.reissue_commands()
    return published


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
