"""A model's way to the benchmark's questions: nothing stored, nothing held to a budget, all of it billed."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from lamina.bench.counted import PAUSE_SECONDS, Bill, CountedModel
from lamina.sinks.replies import all_of, read_reply
from lamina.streams.llm import LanguageModel, Prompt

R = TypeVar("R", bound=BaseModel)

Cost = Mapping[str, Mapping[str, int]]
"""What was asked of a model and what it cost, by purpose."""


class BenchAsk:
    """The `Ask` port over a model: it waits while the model does not answer, and counts what it costs."""

    def __init__(self, model: LanguageModel, at_once: int, *, pause_seconds: float = PAUSE_SECONDS) -> None:
        """Wrap a model; whoever opened it closes it.

        Args:
            model: answers.
            at_once: most calls on their way at the same time.
            pause_seconds: between two tries, where the server names no delay.
        """
        self.name = model.name
        self._model = CountedModel(model, pause_seconds=pause_seconds)
        self._slots = asyncio.Semaphore(at_once)

    @property
    def bill(self) -> Bill:
        """What was asked so far and what it cost."""
        return self._model.bill

    @property
    def cost(self) -> Cost:
        """Return the calls, and their tokens in and out, by purpose; repairs count as calls."""
        bill = self.bill
        return {
            purpose: {
                "calls": calls,
                "tokens_in": bill.tokens_in[purpose],
                "tokens_out": bill.tokens_out[purpose],
            }
            for purpose, calls in sorted(bill.calls.items())
        }

    async def one(self, prompt: Prompt[R], ordinal: int = 0, *, repair: bool = True) -> R:  # noqa: ARG002
        """Return the reply to a prompt; the ordinal makes no difference.

        Raises:
            ModelUnavailable: it did not answer, again and again.
            UnusableReply: the reply cannot be read.
        """
        async with self._slots:
            completion = await self._model.complete(prompt, repair=repair)
        return read_reply(prompt, completion)

    async def many(
        self, prompts: Sequence[Prompt[R]], *, first: int = 0, repair: bool = True
    ) -> list[R | Exception]:
        """Return the replies to several prompts in order; an `UnusableReply` stands in its place.

        Raises:
            ModelUnavailable: of the first prompt that met it, after the others ended.
        """
        return await all_of(
            [partial(self.one, prompt, n, repair=repair) for n, prompt in enumerate(prompts, first)],
            max(1, len(prompts)),
        )
