"""What the reading of one question may cost, and what it has cost so far."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from lamina.streams.llm import Prompt
from lamina.streams.recall.context import tokens_of

Why = Literal["programs", "calls", "tokens", "seconds"]
"""Which part of a budget is used up."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of one question. The forced answer comes on top: one call, after one of them is met."""

    programs: int
    """The iterations of RLM-Memory §4.1."""
    calls: int
    """Of the model: one for each program, one for each sub-query."""
    tokens: int
    """Of prompts and replies, estimated as UTF-8 bytes ÷ 4."""
    seconds: float
    """From the first look at the history on."""


@dataclass(slots=True)
class Spent:
    """What one question has cost."""

    budget: Budget
    began: datetime
    programs: int = 0
    calls: int = 0
    tokens: int = 0

    def over(self, now: datetime) -> Why | None:
        """Return the part of the budget that allows no further program, if one does not."""
        if self.programs >= self.budget.programs:
            return "programs"
        if self.calls >= self.budget.calls:
            return "calls"
        if self.seconds_left(now) <= 0:
            return "seconds"
        return None

    def seconds_left(self, now: datetime) -> float:
        """Return the seconds that are left, 0 or below at the end."""
        return self.budget.seconds - (now - self.began).total_seconds()

    def affords(self, prompts: Iterable[Prompt[Any]]) -> bool:
        """Tell whether the tokens that are left allow these prompts and the longest replies to them."""
        needed = sum(_asked(prompt) + prompt.max_tokens for prompt in prompts)
        return self.tokens + needed <= self.budget.tokens

    def ask(self, *prompts: Prompt[Any]) -> int:
        """Count calls that are about to be made; return the ordinal of the first."""
        first = self.calls
        self.calls += len(prompts)
        self.tokens += sum(map(_asked, prompts))
        return first

    def reply(self, text: str) -> None:
        """Count what came back."""
        self.tokens += tokens_of(text)


def _asked(prompt: Prompt[Any]) -> int:
    return sum(tokens_of(message["content"]) for message in prompt.messages)
