"""The strategies that `lamina bench recall` sets side by side, by name.

The first two are plain baselines over every turn that was said. The others ask memory as the service does,
with the budgets of the settings. Each gives results best first.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lamina.bench.bm25 import BM25
from lamina.bench.recall_memory import Memory
from lamina.streams.recall.found import Filters, Found
from lamina.streams.recall.tiers import Budget, tiers
from lamina.streams.records import Unit

BASELINE_RESULTS = 10
"""Turns that a baseline returns: as deep as anything is measured."""

Ask = Callable[[str], Awaitable[Sequence[Found]]]
"""Answers one question from one memory."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way of finding what a question asks for."""

    says: str
    """What it is, in one line."""
    over: Callable[[Memory], Awaitable[Ask]]
    """Prepares it over a memory; the time this takes is not counted."""


async def _bm25(memory: Memory) -> Ask:
    index = BM25([_spoken(turn) for turn in memory.turns])

    async def ask(question: str) -> list[Found]:
        return _best(memory.turns, index.scores(question))

    return ask


async def _dense(memory: Memory) -> Ask:
    vectors = await memory.embedder.embed([_spoken(turn) for turn in memory.turns])

    async def ask(question: str) -> list[Found]:
        asked = await memory.embedder.embed([question])
        return _best(memory.turns, (vectors @ asked[0]).astype(np.float64))

    return ask


async def _tiers(memory: Memory) -> Ask:
    settings = memory.settings
    budget = Budget(settings.k_sub, settings.k_epi, settings.k_sem)

    async def ask(question: str) -> list[Found]:
        asked = await memory.embedder.embed([question])
        return await tiers(
            asked[0], memory.namespace, memory.store, memory.tables, budget=budget, filters=Filters()
        )

    return ask


def _spoken(turn: Unit) -> str:
    return f"{turn.speaker}: {turn.text}"


def _best(turns: Sequence[Unit], scores: NDArray[np.float64]) -> list[Found]:
    """Return the turns of the highest scores; ties go to the earlier turn."""
    best = np.argsort(-scores, kind="stable")[:BASELINE_RESULTS]
    return [Found(turns[n], float(scores[n]), "subconscious", (turns[n],)) for n in best]


STRATEGIES: Mapping[str, Strategy] = {
    "bm25": Strategy("BM25 over all turns, `speaker: text`, stems without stop words (baseline)", _bm25),
    "dense": Strategy("cosine over all turns, each `speaker: text` embedded alone (baseline)", _dense),
    "tiers": Strategy("RecMem §3.5: exchanges, episodes and facts by cosine, a budget each", _tiers),
}
"""In the order in which they are shown; a new strategy is a row here."""
