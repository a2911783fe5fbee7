"""The language model as the algorithms see it: prompts in, validated replies out, each paid for once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

import orjson
from pydantic import BaseModel

from lamina.streams.namespace import Namespace

Purpose = Literal[
    "consolidate",  # fused: episodes, then the facts that they omit
    "episodes",  # RecMem eq. 7
    "merge_episode",  # RecMem eq. 6
    "refine",  # RecMem eq. 9
    "describe",  # All-Mem app. C.1
    "diagnose",  # All-Mem app. C.2
    "plan_split",  # All-Mem app. C.3
    "plan_merge",  # All-Mem app. C.4
    "plan_update",  # All-Mem app. C.5
    "abstract",  # SimpleMem §2.2
    "extract",  # facts with no episode shown: RecMem §4.3, and the eager baseline of the benchmark
    "answer",  # POST /v1/answer: from packed memories
    "deep",  # RLM-Memory §4: the next program of the sandbox, or the forced answer
    "sub_query",  # RLM-Memory §4: `llm_query` of such a program
    "judge",  # the benchmark: whether an answer is right
]
"""What a call is for: the label of its metrics, and the first half of its place in the journal."""

R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Prompt(Generic[R]):
    """One question to a model. Memory content stands in `data` alone and is sent as quoted JSON."""

    purpose: Purpose
    version: int
    """Raised with every change of the words or of the reply's form."""
    system: str
    """What to do, in our words; the same for every call of this version."""
    data: Mapping[str, Any]
    """What to do it with: JSON types only."""
    reply: type[R]
    max_tokens: int

    @property
    def messages(self) -> tuple[dict[str, str], dict[str, str]]:
        """The two messages of the chat: instructions, and data that instruct nothing."""
        quoted = orjson.dumps(self.data).decode()
        return {"role": "system", "content": self.system}, {"role": "user", "content": quoted}


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply to a prompt and its price: what it cost is known whether it can be read or not."""

    text: str
    """JSON that `Prompt.reply` accepts; with a `fault`, whatever came."""
    model: str
    tokens_in: int
    """Over all attempts, the repair included."""
    tokens_out: int
    attempts: int
    seconds: float
    fault: str | None = None
    """Why the reply cannot be read, after at most one repair."""


class LanguageModel(Protocol):
    """A chat model behind a door. `name` stands on every unit that its replies wrote."""

    name: str

    async def complete(self, prompt: Prompt[Any], *, repair: bool) -> Completion:
        """Answer a prompt in the form of its reply model.

        Args:
            prompt: what to ask.
            repair: whether a reply that cannot be read is sent back once with its fault.

        Raises:
            ModelUnavailable: no answer now; `retry_after` where the server named a delay.
            Misconfigured: the server refuses the key, the model or the request as such.
        """

    async def close(self) -> None:
        """Release connections."""


class Ask(Protocol):
    """The model on behalf of one command: a reply that was stored is used again, never paid again."""

    async def one(self, prompt: Prompt[R], ordinal: int = 0, *, repair: bool = True) -> R:
        """Return the reply to the command's prompt of this purpose and ordinal.

        Raises:
            ModelUnavailable, BudgetSpent: wait and call again; nothing was paid, or it was stored.
            UnusableReply: the stored or new reply cannot be read.
        """

    async def many(
        self, prompts: Sequence[Prompt[R]], *, first: int = 0, repair: bool = True
    ) -> list[R | Exception]:
        """Ask several prompts at once (ordinals from `first`); an `UnusableReply` stands in its place.

        Raises:
            ModelUnavailable, BudgetSpent: of the first prompt that met it, after the others ended.
        """


@dataclass(frozen=True, slots=True)
class Reader:
    """The chat model at query time: it reads what was found, and nothing it says is stored."""

    name: str
    """What stands on the answers as their engine."""
    ask: Callable[[Namespace], Ask]
    """Its `Ask` on behalf of one request to a namespace: metered, and held to the budget of its tenant.

    Ordinals number the calls of the request and are not looked up: nothing is stored, nothing used again.
    """
