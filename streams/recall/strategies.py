"""The strategies of recall by name: ours and the published methods, all with the same question and result."""

from lamina.streams.recall.adaptive import adaptive
from lamina.streams.recall.auto.strategy import auto
from lamina.streams.recall.chain import chain
from lamina.streams.recall.found import Asked, Found, Sources
from lamina.streams.recall.options import Options, Strategy
from lamina.streams.recall.tiers import Budget, tiers
from lamina.streams.recall.topology import topology


async def recall(
    strategy: Strategy, asked: Asked, sources: Sources, *, budget: Budget, options: Options
) -> list[Found]:
    """Find what a namespace remembers about a question by the strategy of that name, best first.

    Every strategy keeps to the filters and to the one namespace, and gives nothing for an empty one.

    Args:
        strategy: its name.
        asked: the question.
        sources: the ports.
        budget: what each tier of `tiers` may give where the options do not say.
        options: the parameters of all of them.

    Raises:
        StoreUnavailable: the store does not answer.
        TablesUnavailable: the tables do not answer.
        EmbedderUnavailable: the strategy embeds more than the question, and the embedder does not answer.
    """
    if strategy == "auto":
        return await auto(asked, sources, options.auto)
    if strategy == "adaptive":
        return await adaptive(asked, sources, options.adaptive)
    if strategy == "topology":
        return await topology(asked, sources, options.topology)
    if strategy == "chain":
        return await chain(asked, sources, options.chain)
    return await tiers(
        asked.vector,
        asked.namespace,
        sources.store,
        sources.tables,
        budget=budget.with_options(options.tiers),
        filters=asked.filters,
        top_k=asked.top_k,
        stage=sources.stage,
    )
