"""The strategies that `lamina bench recall` sets side by side, by name.

The first two are plain baselines over every turn that was said. The others ask memory as the service does,
with the budgets of the settings. Each gives results best first.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from lamina.bench.bm25 import BM25
from lamina.bench.fusion_folds import unseen
from lamina.bench.recall_memory import Memory
from lamina.streams.recall.auto.features import Match
from lamina.streams.recall.auto.strategy import auto
from lamina.streams.recall.found import Asked, Found, Sources
from lamina.streams.recall.options import Auto, Options
from lamina.streams.recall.options import Strategy as Name
from lamina.streams.recall.strategies import recall
from lamina.streams.recall.tiers import Budget
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
    built: Mapping[str, Any] = field(default_factory=dict)
    """Settings that differ while its memory is built."""


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


def asking(name: Name, options: Options) -> Callable[[Memory], Awaitable[Ask]]:
    """Ask by a strategy of the service, with these options."""
    return _by_auto(options.auto) if name == "auto" else _by_service(name, options)


def _by_auto(options: Auto) -> Callable[[Memory], Awaitable[Ask]]:
    """Ask by `auto` with weights that never saw the conversation: the shipped ones, where it took no part."""

    async def over(memory: Memory) -> Ask:
        match: Match = "tokens" if memory.embedder.token_width and options.late_interaction else "dense"
        weights = unseen(memory.conversation, match)
        sources = Sources(memory.store, memory.tables, memory.embedder)

        async def ask(question: str) -> list[Found]:
            return await auto(await _asked(question, memory), sources, options, weights)

        return ask

    return over


async def _asked(question: str, memory: Memory) -> Asked:
    vectors = await memory.embedder.embed_question(question)
    return Asked(question, vectors.dense, memory.namespace, memory.asked_at, tokens=vectors.tokens)


def _by_service(name: Name, options: Options) -> Callable[[Memory], Awaitable[Ask]]:
    """Ask as the service does, with the budgets of the settings, at the time the questions were asked."""

    async def over(memory: Memory) -> Ask:
        settings = memory.settings
        budget = Budget(settings.k_sub, settings.k_epi, settings.k_sem)
        sources = Sources(memory.store, memory.tables, memory.embedder)

        async def ask(question: str) -> list[Found]:
            asked = await _asked(question, memory)
            return await recall(name, asked, sources, budget=budget, options=options)

        return ask

    return over


def _spoken(turn: Unit) -> str:
    return f"{turn.speaker}: {turn.text}"


def _best(turns: Sequence[Unit], scores: NDArray[np.float64]) -> list[Found]:
    """Return the turns of the highest scores; ties go to the earlier turn."""
    best = np.argsort(-scores, kind="stable")[:BASELINE_RESULTS]
    return [Found(turns[n], float(scores[n]), "subconscious", (turns[n],)) for n in best]


_SAYS: Mapping[Name, str] = {
    "auto": "ours: late interaction, words and context, fused; a LoCoMo conversation that took part in the "
    "fit of the weights is asked with those fitted on the others",
    "tiers": "RecMem §3.5: exchanges, episodes and facts by cosine, a budget each",
    "adaptive": "SimpleMem §2.3: cosine and BM25 under hard constraints, as deep as the question is complex",
    "topology": "All-Mem §3.4: anchors on the visible surface, expanded along typed links",
    "chain": "Chain-of-Memory §3.2: chains grown from anchors by similarity to question and context",
}

STRATEGIES: Mapping[str, Strategy] = {
    "bm25": Strategy("BM25 over all turns, `speaker: text`, stems without stop words (baseline)", _bm25),
    "dense": Strategy("cosine over all turns, each `speaker: text` embedded alone (baseline)", _dense),
    **{name: Strategy(_SAYS[name], asking(name, Options())) for name in get_args(Name)},
}
"""In the order in which they are shown: the baselines, then every strategy of the service."""
