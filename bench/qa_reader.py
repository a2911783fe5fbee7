"""Who reads what was packed and answers: the chat model where one is configured, else extractive rules."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np

from lamina.bench.recall_memory import Memory
from lamina.streams.answering import Evidence, answer
from lamina.streams.answering_prompted import answer_from
from lamina.streams.errors import UnusableReply
from lamina.streams.llm import Ask
from lamina.streams.recall.context import Packed, Packing
from lamina.streams.recall.found import Found, said


@dataclass(frozen=True, slots=True)
class Given:
    """An answer; not grounded where the reader says that memory holds none.

    An empty one stands for a model's reply that could not be read: never right, and no abstention.
    """

    text: str
    grounded: bool


Read = Callable[[str, Sequence[Found], Packed], Awaitable[Given]]
"""Answers a question from what was found and packed, out of one memory."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A way of answering."""

    name: str
    says: str
    """What its answers are, in one line of the report."""
    over: Callable[[Memory], Awaitable[Read]]
    """Prepares it over a memory; the time this takes is not counted."""
    at_once: int = 1
    """Questions that are on their way at the same time."""
    packing: Packing = field(default_factory=Packing)
    """How the block that it reads is packed."""
    free: bool = True
    """Whether asking costs nothing but time."""


async def _extractive(memory: Memory) -> Read:
    cosines = await cosines_over(memory)

    async def read(question: str, found: Sequence[Found], packed: Packed) -> Given:
        shown = {unit.id for unit in packed.citations}
        within = [one for one in found if one.unit.id in shown]
        known = {} if all("cosine" in one.why for one in within) else await cosines(question)
        evidence = [
            Evidence(one.unit, float(one.why.get("cosine", known.get(one.unit.id, one.score))), one.turns)
            for one in within
        ]
        given = answer(question, evidence)
        return Given(given.text, given.grounded)

    return read


EXTRACTIVE = Reader(
    "extractive",
    "extractive answer: a quoted sentence with its speaker and date, or up to three; no language model",
    _extractive,
)
"""The rules of `lamina.streams.answering`, given only memories that the block holds."""


def by_model(ask: Ask, name: str, at_once: int) -> Reader:
    """Return the reader that the service has with a model: `POST /v1/answer`'s prompt over its block.

    Args:
        ask: the way to the model.
        name: of the model.
        at_once: questions that are on their way at the same time.
    """

    async def over(memory: Memory) -> Read:
        async def read(question: str, _: Sequence[Found], packed: Packed) -> Given:
            try:
                given = await answer_from(packed, question, memory.asked_at, ask)
            except UnusableReply:
                return Given("", grounded=True)
            return Given(given.text, given.grounded)

        return read

    return Reader(name, "the model answers from the block", over, at_once, Packing(numbered=True), free=False)


async def cosines_over(memory: Memory) -> Callable[[str], Awaitable[Mapping[UUID, float]]]:
    """Return what gives, for a question, its cosine with every turn: baselines rank without it."""
    vectors = await memory.embedder.embed([said(turn) for turn in memory.turns])

    async def cosines(question: str) -> Mapping[UUID, float]:
        asked = await memory.embedder.embed([question])
        values = (vectors @ asked[0]).astype(np.float64)
        return {turn.id: float(value) for turn, value in zip(memory.turns, values, strict=True)}

    return cosines
