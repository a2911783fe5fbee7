"""From a question to its pool: one call of the store."""

from lamina.streams.ports import PoolQuery
from lamina.streams.recall.auto.pool import Pool
from lamina.streams.recall.found import Asked, Sources
from lamina.streams.recall.options import Auto
from lamina.streams.words import stems


async def gather(asked: Asked, sources: Sources, options: Auto) -> Pool:
    """Return the turns that may answer a question, by vector, by words, and beside those.

    Args:
        asked: the question; without its tokens the pool has no similarities.
        sources: the ports; the store is asked once.
        options: how many of each.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    query = PoolQuery(
        nearest=asked.filters.query(asked.vector, asked.namespace, ("turn",), options.nearest),
        stems=tuple(dict.fromkeys(stems(asked.text))) if options.words else (),
        tokens=asked.tokens if options.late_interaction else None,
        words=options.words,
        around=options.around,
    )
    with sources.stage("search"):
        return await sources.store.pool(query)
