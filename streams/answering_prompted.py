"""Answers by a language model, from packed memories alone; what rests on nothing that was shown is no answer.

The model points at lines of the block by number. A reply whose evidence is not among them is sent back once
with that fault; after it, "Not in memory." beats an answer that nobody can check.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lamina.streams.answering import NOT_IN_MEMORY
from lamina.streams.errors import UnusableReply
from lamina.streams.llm import Ask
from lamina.streams.prompts import answer as asking
from lamina.streams.prompts.answer import Answered
from lamina.streams.recall.context import Packed
from lamina.streams.records import Unit

_LONGEST_FAULT = 200


@dataclass(frozen=True, slots=True)
class Grounded:
    """An answer and the memories that it cites, in the block's order; none where memory holds no answer."""

    text: str
    cited: tuple[Unit, ...]

    @property
    def grounded(self) -> bool:
        """Whether memory holds an answer."""
        return bool(self.cited)


async def answer_from(packed: Packed, question: str, asked_at: datetime, ask: Ask) -> Grounded:
    """Answer a question from a block of memories with numbered lines; two calls at most.

    Nothing is asked where the block is empty. An answer is the model's own words: that it follows from the
    lines it cites is the model's claim, which the caller can check.

    Args:
        packed: made with `Packing(numbered=True)`.
        question: as the caller wrote it.
        asked_at: when, or as of when.
        ask: the model on behalf of this request.

    Raises:
        ModelUnavailable, BudgetSpent: no answer now.
        UnusableReply: the model's reply is not of the form asked for, not even after the door's repair.
        Misconfigured: the model cannot be used as configured.
        TablesUnavailable: the budget cannot be looked up.
    """
    none = Grounded(NOT_IN_MEMORY, ())
    if not packed.citations:
        return none
    reply = await ask.one(asking.prompt(question, asked_at, packed.text))
    fault = _fault(reply, len(packed.citations))
    if fault is not None:
        again = asking.prompt(question, asked_at, packed.text, rejected=(reply, fault))
        try:
            reply = await ask.one(again, 1)
        except UnusableReply:
            return none
        if _fault(reply, len(packed.citations)) is not None:
            return none
    if not reply.in_memory:
        return none
    return Grounded(reply.answer.strip(), _cited(reply.evidence, packed.citations))


def _fault(reply: Answered, lines: int) -> str | None:
    """Say why a reply that claims an answer is not grounded; None where it is, or claims none."""
    if not reply.in_memory:
        return None
    if not reply.answer.strip():
        return "in_memory is true, but answer is empty"
    if not reply.evidence:
        return "in_memory is true, but evidence is empty"
    unknown = sorted({number for number in reply.evidence if not 1 <= number <= lines})
    if unknown:
        return f"evidence names lines that were not shown, of 1 to {lines}: {unknown}"[:_LONGEST_FAULT]
    return None


def _cited(numbers: Sequence[int], citations: Sequence[Unit]) -> tuple[Unit, ...]:
    return tuple(citations[number - 1] for number in sorted(set(numbers)))
