"""What `deep` is given: the question, how much of the history it may read, and the ports."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime

from lamina.streams.llm import Ask
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Clock, Tables
from lamina.streams.recall.deep.sandbox import Sandbox

Timeout = Callable[[float], AbstractAsyncContextManager[object]]
"""Ends what is awaited within it by TimeoutError after so many seconds (`asyncio.timeout`)."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How much of a history is read, and in what portions."""

    turns: int
    """Most turns; older ones are left out, and the model is told."""
    characters: int
    """Most characters of all turns together."""
    sub_query_characters: int
    """Most characters of a text for one reader: about 10,000 tokens are RLM-Memory's (§1)."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to one namespace."""

    text: str
    namespace: Namespace
    """The only one that is read."""
    as_of: datetime | None = None
    """Nothing said later is read, and "now" is this time; None: everything, now."""


@dataclass(frozen=True, slots=True)
class Doors:
    """The ports of the strategy."""

    tables: Tables
    ask: Ask
    """Of the model; how many go out at once is its own bound."""
    sandbox: Sandbox
    clock: Clock
    timeout: Timeout
