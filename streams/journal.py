"""The journal of commands as it is read: what was ordered, asked, paid, done, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from lamina.streams.llm import Completion, Purpose
from lamina.streams.namespace import Namespace
from lamina.streams.records import Command, CommandState, Edit


@dataclass(frozen=True, slots=True)
class Call:
    """One call to the model, by its place in the journal: the same place is never paid for twice."""

    command: UUID
    namespace: Namespace
    purpose: Purpose
    ordinal: int
    version: int
    """Of the prompt."""
    model: str
    estimate: int
    """Tokens to hold of the tenant's budget until the call has ended."""
    digest: str = ""
    """Of the prompt, a part of the place: a reply to other material is no reply to this one, since its
    numbers would point at other units. A command that meets the same material again pays nothing again."""


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A row of the replies: a call that was begun and, with a `completion`, ended."""

    call: Call
    asked: int
    """Times it was begun; more than one where a crash took a call in flight."""
    asked_at: datetime
    completion: Completion | None


@dataclass(frozen=True, slots=True)
class Budget:
    """What one tenant may spend in one window of time."""

    tokens: int
    window_seconds: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What the ended calls of one tenant, purpose and model cost."""

    tenant: str
    purpose: Purpose
    model: str
    command: UUID | None
    """The command they were made for, where they were summed by command."""
    calls: int
    """Replies stored."""
    attempts: int
    """Requests made for them, repairs included."""
    tokens_in: int
    tokens_out: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Transition:
    """One change of a command's state and why."""

    state: CommandState
    at: datetime
    note: str | None


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """All that is known of one command."""

    command: Command
    ordinal: int
    """Order of issue over all namespaces."""
    state: CommandState
    note: str | None
    """Why it waits, was skipped or had no effect."""
    not_before: datetime | None
    attempts: int
    """Times it was put off for an unusable reply."""
    plan: Mapping[str, Any] | None
    edits: tuple[Edit, ...]
    finished_at: datetime | None
    history: tuple[Transition, ...] = ()
    replies: tuple[StoredReply, ...] = ()
