"""The records that cross a boundary: topics, tables, HTTP.

Typed, frozen, JSON on the wire (`lamina.streams.codec`). Unknown fields are tolerated, a newer
`schema_version` is not: it goes to the dead letters until the workers are upgraded.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from lamina.streams.namespace import Namespace

SCHEMA_VERSION = 1
"""The newest record schema that this build writes and reads."""


class Record(BaseModel):
    """Base of every record: frozen, tolerant of unknown fields."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    schema_version: int = Field(default=SCHEMA_VERSION, ge=1)


Role = Literal["user", "assistant", "system", "tool"]


class Turn(Record):
    """One message as its author sends it: the value of the `turns` topic.

    The namespace is the record's key. `timestamp` is the event time; a zone-less one is read as UTC and a
    missing one is the record's own timestamp, both flagged on the unit.
    """

    role: Role = "user"
    content: str
    name: str | None = Field(default=None, max_length=256)
    timestamp: datetime | None = None
    message_id: str | None = Field(default=None, min_length=1, max_length=512)
    run_id: str | None = Field(default=None, min_length=1, max_length=512)
    agent_id: str | None = Field(default=None, max_length=512)
    metadata: dict[str, Any] = Field(default_factory=dict)
    id: UUID | None = None
    """Set by Lamina's own doors, which compute it before they publish."""


Kind = Literal["turn", "episode", "fact", "abstract"]


class Status(StrEnum):
    """Where a turn stands. `gated`, `remembered`, `consolidated` and `failed` are terminal."""

    ACCEPTED = "accepted"
    ADMITTED = "admitted"
    GATED = "gated"
    REMEMBERED = "remembered"
    CONSOLIDATED = "consolidated"
    FAILED = "failed"

    @property
    def terminal(self) -> bool:
        """Whether the turn needs no further work to be kept."""
        return self not in {Status.ACCEPTED, Status.ADMITTED}


TimeSource = Literal["given", "zoneless", "missing", "future"]
"""How `said_at` came about; all but `given` are flagged to the reader."""


class Span(Record):
    """A verbatim part of a turn: characters `start` to `end` (exclusive) of its text."""

    turn: UUID
    start: int = Field(ge=0)
    end: int = Field(ge=0)


class Unit(Record):
    """A memory: a turn, or an episode, fact or abstract derived from turns.

    What was said (`text` of a turn, `evidence`, `said_at`) never changes; consolidation only toggles
    `visible` and adds units and links.
    """

    id: UUID
    namespace: Namespace
    kind: Kind
    session: str
    ordinal: int = 0
    """Place within the session, from 0 (turns), or within the recorded plan (derived units)."""
    position: int = 0
    """Arrival number within the namespace, from 1; "earlier" means a smaller position."""
    role: Role = "user"
    speaker: str = ""
    text: str
    summary: str | None = None
    """A turn's regenerable form, indexed beside its words: references and dates resolved (SimpleMem eq. 3),
    or its descriptor (All-Mem app. C.1). A derived unit's `text` is its summary, so this stays None."""
    keywords: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    topic: str | None = None
    salience: str | None = None
    """The rule that makes this unit matter without recurrence (`lamina.streams.salience`)."""
    subject: str | None = None
    relation: str | None = None
    object: str | None = None
    evidence: tuple[UUID, ...] = ()
    """Turn ids this unit rests on, in time order; empty for a turn, which is its own evidence."""
    spans: tuple[Span, ...] = ()
    """The parts of those turns it rests on, where it is not all of them (a sibling of a split)."""
    said_at: datetime
    time_source: TimeSource = "given"
    occurred_from: datetime | None = None
    occurred_to: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    recorded_at: datetime
    visible: bool = True
    version: int = 1
    engine: str = "said"
    """`said` for turns, else the engine that wrote the unit (`extractive`, a model name)."""
    status: Status = Status.ACCEPTED
    score: float | None = None
    """The gate's information score (turns)."""
    reason: str | None = None
    """Why the gate kept or gated the turn, or why it failed."""
    metadata: dict[str, Any] = Field(default_factory=dict)

    @property
    def recent_at(self) -> datetime:
        """`said_at` for where recency decides: a time in the far future counts as `recorded_at` + 1 day."""
        if self.time_source != "future":
            return self.said_at
        return min(self.said_at, self.recorded_at + timedelta(days=1))

    @property
    def spoken(self) -> str:
        """A turn as it is embedded, speaker first (RecMem's Fmt): who said it is part of what is found."""
        return f"{self.speaker}: {self.text}"


class Admitted(Record):
    """A judged turn on its way to the embedder: the value of `admitted` and `gated`."""

    unit: Unit
    previous: Unit | None = None
    """The turn before it in the session, whatever its verdict: the context it is read in."""
    reply: bool = False
    """Whether it closes an exchange with `previous`."""
    after: UUID | None = None
    """The latest kept turn before it in the session: the target of its temporal link."""


class Embedded(Record):
    """An embedded turn: the value of `embedded`; its vectors travel in the headers."""

    unit: Unit
    previous: Unit | None = None
    reply: bool = False
    after: UUID | None = None


LinkType = Literal["temporal", "semantic", "version", "sibling", "evidence"]


class Link(Record):
    """A typed, directed link from a unit to an older or supporting one."""

    namespace: Namespace
    source: UUID
    target: UUID
    type: LinkType
    weight: float = 1.0
    """Cosine similarity for `semantic`, else 1."""


CommandKind = Literal["promote", "merge", "topology", "undo"]
CommandState = Literal["issued", "planned", "waiting", "applied", "no_op", "skipped"]
CommandReason = Literal[
    "recurrence", "salience", "merge_full", "merge_idle", "sessions", "buffer_full", "buffer_idle", "operator"
]


class Command(Record):
    """An order to consolidate: the value of the `consolidation` topic."""

    id: UUID
    namespace: Namespace
    kind: CommandKind
    thread: UUID | None = None
    """The thread of `promote` and `merge`."""
    exchanges: tuple[UUID, ...] = ()
    """Recurrence rows claimed by this command."""
    evidence: tuple[UUID, ...] = ()
    """Turn ids of those exchanges, in time order."""
    units: tuple[UUID, ...] = ()
    """Buffered units that `topology` looks at, in the order in which they were buffered."""
    target: UUID | None = None
    """The command that `undo` reverses."""
    reason: CommandReason
    position: int
    """The namespace's position when the command was issued."""
    issued_at: datetime


class Change(Record):
    """What happened to a memory: the value of `changes`. Consumers drop a `seq` they have passed."""

    namespace: Namespace
    seq: int
    type: Literal["created", "updated", "archived", "forgotten"]
    unit_id: UUID
    kind: Kind
    version: int
    at: datetime


class DeadLetter(Record):
    """The description beside a dead letter's original bytes (its headers carry the same)."""

    step: str
    reason: str
    detail: str
    topic: str
    partition: int
    offset: int


class Placement(BaseModel):
    """A turn with everything the doors decide about it, before it has a place in its session."""

    model_config = ConfigDict(frozen=True)

    namespace: Namespace
    turn: Annotated[Turn, Field(description="as sent")]
    id: UUID
    said_at: datetime
    time_source: TimeSource
    recorded_at: datetime


class Resolution(Record):
    """A turn with its references and relative dates resolved (SimpleMem eq. 3)."""

    turn: UUID
    text: str
    """Phrase and range both kept: "yesterday (2023-07-01)"."""


class EpisodeDraft(Record):
    """An episode as an engine proposes it (RecMem eq. 7): a dated narrative of one topic and its turns."""

    text: str
    keywords: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    topic: str | None = None
    evidence: tuple[UUID, ...]
    occurred_from: datetime | None = None
    occurred_to: datetime | None = None


class FactDraft(Record):
    """A fact as an engine proposes it (RecMem eq. 9): one statement that holds from a time on."""

    text: str
    subject: str
    relation: str
    object: str
    evidence: tuple[UUID, ...]
    valid_from: datetime
    occurred_from: datetime | None = None
    occurred_to: datetime | None = None
    single: bool | None = None
    """Whether the relation holds one object at a time; None where the relation's name decides."""


class Plan(Record):
    """What an engine proposes for one command; recorded in the journal before it is applied."""

    engine: str
    episodes: tuple[EpisodeDraft, ...] = ()
    facts: tuple[FactDraft, ...] = ()
    resolved: tuple[Resolution, ...] = ()
    note: str | None = None
    """Why the engine declined, or what of its reply was left out as ungrounded."""

    @property
    def drafts(self) -> tuple[EpisodeDraft | FactDraft, ...]:
        """Episodes, then facts: the order that numbers the derived units."""
        return (*self.episodes, *self.facts)


class Descriptor(Record):
    """A regenerable description of a unit (All-Mem §3.1): its summary and keywords."""

    summary: str
    keywords: tuple[str, ...] = ()


Operator = Literal["promote", "merge", "split", "update", "abstract"]
"""What was done to the bank. Of a `merge` command: the next version of a thread's episode (RecMem eq. 6);
of a `topology` command: redundant units under one representative (All-Mem app. A.2)."""


class Edit(Record):
    """One thing that a command did, or declined to do: what `lamina journal` explains and `undo` reverses."""

    operator: Operator
    targets: tuple[UUID, ...] = ()
    """Split: the unit; merge, abstract: the sources; update: (current, superseded)."""
    outcome: Literal["executed", "skipped", "no_op"]
    reason: str
    confidence: float | None = None
    created: tuple[UUID, ...] = ()
    before: tuple[Unit, ...] = ()
    """Units that were archived or refreshed, as they were."""
    added: tuple[Link, ...] = ()
    removed: tuple[Link, ...] = ()
    heads: dict[UUID, tuple[UUID, ...]] = Field(default_factory=dict)
    """Heads of the threads that it moved, as they were."""
    undone_by: UUID | None = None
    """The `undo` command that reversed it."""
