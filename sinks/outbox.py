"""The outbox relay: committed rows go onto the topics, and are deleted after the broker's acknowledgement."""

from lamina.streams.ports import Publisher, Tables

PAGE = 500
"""Rows published and deleted together."""


async def relay(tables: Tables, publisher: Publisher) -> int:
    """Publish everything that waits and return how many rows; a crash in between publishes rows twice.

    Raises:
        BrokerUnavailable, TablesUnavailable: what was not acknowledged stays.
    """
    published = 0
    while rows := await tables.outbox(PAGE):
        await publisher.publish([row.record for row in rows])
        await tables.published([row.id for row in rows])
        published += len(rows)
        if len(rows) < PAGE:
            break
    return published
