"""From a question to its pool, and the nearest derived units: one call of the store."""

from lamina.streams.ports import PoolQuery
from lamina.streams.recall.auto.pool import Pool
from lamina.streams.recall.constraints import time_range
from lamina.streams.recall.found import Asked, Sources
from lamina.streams.recall.loading import kinds_of
from lamina.streams.recall.options import Auto
from lamina.streams.words import stems


async def gather(asked: Asked, sources: Sources, options: Auto) -> Pool:
    """Return the turns that may answer a question, by vector, by words and beside those; what is derived too.

    Args:
        asked: the question; without its tokens the pool has no similarities.
        sources: the ports; the store is asked once.
        options: how many of each.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    kinds = kinds_of(asked, ("fact", "episode", "abstract"))
    derived = None
    if kinds and options.derived:
        derived = asked.filters.query(asked.vector, asked.namespace, kinds, options.derived)
    within = None
    start, end = time_range(asked.text, asked.filters.as_of or asked.at)
    if start is not None or end is not None:
        narrower = asked.filters.within(start, end)
        within = narrower.query(asked.vector, asked.namespace, ("turn",), options.nearest)
    query = PoolQuery(
        within=within,
        nearest=asked.filters.query(asked.vector, asked.namespace, ("turn",), options.nearest),
        derived=derived,
        stems=tuple(dict.fromkeys(stems(asked.text))) if options.words else (),
        tokens=asked.tokens if options.late_interaction else None,
        words=options.words,
        around=options.around,
    )
    with sources.stage("search"):
        return await sources.store.pool(query)
