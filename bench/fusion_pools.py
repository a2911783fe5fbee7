"""The questions of LoCoMo with the pools that memory gives for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import numpy as np

from lamina.bench.conversation import Category, Conversation, Question
from lamina.bench.fusion_fit import Floats, Sample
from lamina.bench.locomo import ANSWERABLE, load_locomo
from lamina.bench.recall_memory import Memory, remembered
from lamina.streams.errors import Misconfigured
from lamina.streams.ports import Embedder
from lamina.streams.recall.auto.features import FEATURES, Match, features
from lamina.streams.recall.auto.gather import gather
from lamina.streams.recall.auto.pool import Pool
from lamina.streams.recall.auto.question import read
from lamina.streams.recall.found import Asked, Sources
from lamina.streams.recall.options import Auto
from lamina.streams.settings import Settings


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One question, its pool, and what should be found."""

    conversation: str
    category: Category
    pool: Pool
    evidence: frozenset[UUID]
    """At least one turn; it need not be in the pool."""
    target: Floats
    """(n,) 1/|evidence| where a turn of the pool is evidence, else 0."""
    matrices: dict[Match, Floats]
    """(n, f) features of the pool, by what question and turn are matched by."""

    def sample(self, match: Match, columns: Sequence[int]) -> Sample:
        """Return what is fitted, with these columns alone."""
        ranked = slice(None) if self.pool.context is None else ~self.pool.context
        return Sample(self.matrices[match][ranked][:, columns], self.target[ranked])


@dataclass(frozen=True, slots=True)
class Cases:
    """Every question of categories 1 to 4 that has evidence, of every conversation."""

    conversations: tuple[str, ...]
    turns: int
    embedder: str
    cases: tuple[Case, ...]

    @property
    def matches(self) -> tuple[Match, ...]:
        """What every case can be matched by."""
        return tuple(match for match in FEATURES if all(match in case.matrices for case in self.cases))


async def pooled(
    data: Path, embedder: Embedder, settings: Settings, told: Callable[[str, int, int], None]
) -> Cases:
    """Remember every conversation and ask for the pool of every question.

    Args:
        data: folder of LoCoMo's JSON files.
        embedder: of turns and questions.
        settings: of the pipeline.
        told: gets the name of a conversation, its turns that were remembered since, and its number of turns.

    Raises:
        Misconfigured: the folder holds fewer than two LoCoMo conversations.
        EmbedderUnavailable: the engine does not answer.
    """
    conversations = load_locomo(data)
    if len(conversations) < 2:  # noqa: PLR2004 - one to fit on and one to rank
        raise Misconfigured(f"{data} holds one conversation: to check weights takes another one")
    cases: list[Case] = []
    for conversation in conversations:
        size = len(conversation.turns)

        def remembering(turns: int, name: str = conversation.id, size: int = size) -> None:
            told(name, turns, size)

        async with remembered(conversation, embedder, settings, edge=False, told=remembering) as memory:
            cases += await _cases(conversation, memory)
    return Cases(
        conversations=tuple(each.id for each in conversations),
        turns=sum(len(each.turns) for each in conversations),
        embedder=embedder.name,
        cases=tuple(cases),
    )


async def pool_of(question: str, memory: Memory) -> Pool:
    """Return the pool that `auto` ranks for a question, by its own defaults."""
    vectors = await memory.embedder.embed_question(question)
    asked = Asked(question, vectors.dense, memory.namespace, memory.asked_at, tokens=vectors.tokens)
    return await gather(asked, Sources(memory.store, memory.tables, memory.embedder), Auto())


async def _cases(conversation: Conversation, memory: Memory) -> list[Case]:
    ids = {name: turn for turn, name in memory.names.items()}

    async def case(question: Question) -> Case:
        pool = await pool_of(question.text, memory)
        said = read(question.text, memory.asked_at, pool.speakers)
        matrices: dict[Match, Floats] = {"dense": features(said, replace(pool, similarity=None))}
        if pool.similarity is not None:
            matrices["tokens"] = features(said, pool)
        evidence = frozenset(ids[name] for name in question.evidence)
        target = np.array([turn in evidence for turn in pool.ids], np.float64) / len(evidence)
        return Case(conversation.id, question.category, pool, evidence, target, matrices)

    return [
        await case(question)
        for question in conversation.questions
        if question.evidence and question.category in ANSWERABLE
    ]
