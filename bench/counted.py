"""A language model that is counted: every call, its tokens by purpose, and the time spent waiting for it."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from lamina.streams.errors import ModelUnavailable
from lamina.streams.llm import Completion, LanguageModel, Prompt

TRIES = 6
"""Times a call is made while the model does not answer; then the run ends."""
PAUSE_SECONDS = 5.0
"""Between two of them, where the server names no delay."""


@dataclass(slots=True)
class Bill:
    """What a model was asked and what it cost, by purpose; repairs count as calls."""

    calls: Counter[str] = field(default_factory=Counter)
    tokens_in: Counter[str] = field(default_factory=Counter)
    tokens_out: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    """Sum over calls; calls at once count each."""

    def add(self, purpose: str, completion: Completion) -> None:
        """Enter one completion."""
        self.calls[purpose] += completion.attempts
        self.tokens_in[purpose] += completion.tokens_in
        self.tokens_out[purpose] += completion.tokens_out
        self.seconds += completion.seconds


class CountedModel:
    """The `LanguageModel` port around another one; `bill` holds what was asked since it was made.

    It waits by the wall clock while the other does not answer: a replay's own clock stands still, so a
    command that was put off would come again at once.
    """

    def __init__(self, model: LanguageModel, *, pause_seconds: float = PAUSE_SECONDS) -> None:
        self.name = model.name
        self.bill = Bill()
        self._model = model
        self._pause = pause_seconds

    async def complete(self, prompt: Prompt[Any], *, repair: bool) -> Completion:
        """Pass the prompt on and enter what it cost.

        Raises:
            ModelUnavailable: it did not answer `TRIES` times.
        """
        for _ in range(TRIES - 1):
            try:
                return await self._once(prompt, repair=repair)
            except ModelUnavailable as fault:
                await asyncio.sleep(self._pause if fault.retry_after is None else fault.retry_after)
        return await self._once(prompt, repair=repair)

    async def _once(self, prompt: Prompt[Any], *, repair: bool) -> Completion:
        completion = await self._model.complete(prompt, repair=repair)
        self.bill.add(prompt.purpose, completion)
        return completion

    async def close(self) -> None:
        """Leave the model open: who opened it closes it."""
