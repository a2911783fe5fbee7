"""What happens while a question is read: one record for each thing, in order, as a caller may follow it."""

from dataclasses import dataclass

from lamina.streams.recall.deep.budget import Why
from lamina.streams.records import Unit


@dataclass(frozen=True, slots=True)
class HistoryRead:
    """The history is numbered and ready: always the first event."""

    turns: int
    sessions: int
    cut: bool
    """Whether older turns were left out by a setting."""


@dataclass(frozen=True, slots=True)
class ProgramWritten:
    """The model wrote a program; `step` counts from 1."""

    step: int
    plan: str
    program: str


@dataclass(frozen=True, slots=True)
class Looked:
    """The program looked into the history."""

    step: int
    function: str
    query: str
    """Of a search."""
    found: int
    """Turns, or sessions."""


@dataclass(frozen=True, slots=True)
class SubQueries:
    """The program gives texts to readers of their own."""

    step: int
    question: str
    texts: int


@dataclass(frozen=True, slots=True)
class SubReplies:
    """They have answered: a finding for each text, empty for nothing."""

    step: int
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Printed:
    """The program has ended."""

    step: int
    printed: str
    cut: bool
    error: str | None


@dataclass(frozen=True, slots=True)
class Forced:
    """The budget is used up: the next event is the answer from what was printed."""

    why: Why


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer: always the last event."""

    text: str
    grounded: bool
    """False: memory does not hold an answer, and the text says so."""
    evidence: tuple[Unit, ...]
    """Turns that a model saw, in time order."""
    programs: int
    calls: int
    tokens: int
    """Estimated as UTF-8 bytes ÷ 4."""
    forced: Why | None


Event = HistoryRead | ProgramWritten | Looked | SubQueries | SubReplies | Printed | Forced | Answered
