"""The ports: what the flow needs from the outside, as protocols. `lamina.sinks` implements them.

Every method that touches the outside is async, raises the faults of `lamina.streams.errors` and no
other library's, and is safe to call again after a `Transient`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from lamina.streams.buffer import Buffered
from lamina.streams.codec import Matrix, Vector
from lamina.streams.journal import Budget, Call, Cost, JournalEntry, StoredReply
from lamina.streams.late_interaction import QuestionTokens, TokenVectors
from lamina.streams.llm import Completion
from lamina.streams.metrics import Metric
from lamina.streams.namespace import Namespace
from lamina.streams.recall.auto.pool import Pool
from lamina.streams.records import (
    Change,
    Command,
    CommandState,
    Edit,
    Kind,
    Link,
    LinkType,
    Status,
    Unit,
)
from lamina.streams.recoverability import Graph
from lamina.streams.recurrence import Exchange, RecurrenceRows, Thread
from lamina.streams.topics import Topic


class Clock(Protocol):
    """The one source of time."""

    def now(self) -> datetime:
        """Return the current time, zone-aware, UTC."""


class Metrics(Protocol):
    """Where measurements go; labels must be exactly those of the catalogue."""

    def count(self, metric: Metric, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""

    def observe(self, metric: Metric, value: float, **labels: str) -> None:
        """Add a value to a histogram."""

    def set(self, metric: Metric, value: float, **labels: str) -> None:
        """Set a gauge."""


@dataclass(frozen=True, slots=True, eq=False)
class TurnVectors:
    """What one pass over turns gives: rows of `turn` and `exchange` match the input, unit length."""

    turn: Matrix
    """(n, dimension): each turn read in the light of the turn before it, mean over its own tokens."""
    exchange: Matrix
    """(n, dimension): the turn before it and the turn as one text; the turn alone where there is none."""
    tokens: tuple[TokenVectors, ...] | None = None
    """n, each turn's own tokens read in the light of the turn before it; None where the engine gives none."""
    before: tuple[TokenVectors, ...] | None = None
    """n, the tokens of the turn before each, from the same pass; without any where there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class QuestionVectors:
    """What one pass over a question gives."""

    dense: Vector
    """(dimension,), as `Embedder.embed` gives it."""
    tokens: QuestionTokens | None = None
    """None where the engine gives none."""


class Embedder(Protocol):
    """Text to vectors. `name` identifies model and precision; vectors of two names never mix."""

    name: str
    dimension: int
    token_width: int
    """Length of a token's vector; 0 where the engine gives none."""

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """Embed texts on their own (questions, episodes, facts): (n, dimension), rows of unit length.

        Raises:
            EmbedderUnavailable: the engine does not answer now.
        """

    async def embed_turns(self, turns: Sequence[tuple[str | None, str]]) -> TurnVectors:
        """Embed (previous text or None, text) pairs in one pass each.

        Raises:
            EmbedderUnavailable: the engine does not answer now.
        """

    async def embed_question(self, question: str) -> QuestionVectors:
        """Embed a question, its tokens in the same pass.

        Raises:
            EmbedderUnavailable: the engine does not answer now.
        """

    async def close(self) -> None:
        """Release threads and connections."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """What the strategy `auto` reads of a turn, kept beside its vector so that no row need be read for it."""

    ordinal: int
    """The turn's place in its session."""
    stems: tuple[str, ...]
    """Of its content words, its speaker's name among them, each once."""
    seen: tuple[int, ...]
    """How often each stands in the turn."""
    traits: tuple[int, ...]
    """As `lamina.streams.recall.auto.traits` tells them."""
    tokens: TokenVectors | None = None
    before: "Before | None" = None
    """The turn before it in the session, where the gate kept that one from the store."""


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """A gated turn, which is never found and yet tells what the turn after it is about."""

    turn: UUID
    speaker: str
    said_at: datetime
    leaf: Leaf


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A unit as the vector store holds it."""

    id: UUID
    namespace: Namespace
    kind: Kind
    session: str
    speaker: str
    said_at: datetime
    dense: Vector
    summary: Vector | None = None
    """Of the summary beside the words; a query's score is the better of the two."""
    leaf: Leaf | None = None
    """Of a turn; None of other kinds."""


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """One nearest-neighbour question, always within one namespace."""

    namespace: Namespace
    dense: Vector
    kinds: tuple[Kind, ...]
    limit: int
    sessions: tuple[str, ...] = ()
    """Only these sessions; empty: all."""
    speakers: tuple[str, ...] = ()
    """Only these speakers; empty: all."""
    said_from: datetime | None = None
    """Inclusive."""
    said_to: datetime | None = None
    """Inclusive."""
    words_only: bool = False
    """Leave summaries aside: for what must not depend on when consolidation wrote them."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A found unit and its cosine similarity."""

    id: UUID
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class PoolQuery:
    """Which turns of a namespace may answer a question."""

    nearest: Query
    """The nearest turns by vector, `limit` of them, and the filters that hold for the best by words too."""
    stems: tuple[str, ...]
    """Of the question's content words, each once."""
    tokens: QuestionTokens | None
    """None: no similarities."""
    within: Query | None = None
    """The same once more, nearest and best by words, of the time that the question names: in a large
    namespace that time may have no other candidate."""
    derived: Query | None = None
    """Asked along with it: the nearest units of other kinds."""
    words: int = 100
    """Best turns by BM25."""
    around: int = 1
    """Neighbours in the session, on each side of each of those turns. The filters do not hold for them, but
    for the end of the time range: what was said later is not known."""


class VectorStore(Protocol):
    """Nearest neighbours by cosine. Acknowledged writes survive a crash of the store."""

    async def upsert(self, points: Sequence[Point]) -> None:
        """Insert or replace points by id.

        Raises:
            StoreUnavailable: not acknowledged.
        """

    async def delete(self, ids: Collection[UUID]) -> None:
        """Delete points; unknown ids are ignored."""

    async def search(self, queries: Sequence[Query]) -> list[list[Hit]]:
        """Answer each query with its nearest points, best first, ties by id."""

    async def pool(self, query: PoolQuery) -> Pool:
        """Return the turns that may answer a question, and what the strategy `auto` reads of them.

        A turn that was written without a leaf is not among them.

        Raises:
            StoreUnavailable: the store does not answer.
        """

    async def present(self, ids: Collection[UUID]) -> set[UUID]:
        """Return those of the ids that the store holds."""

    async def vectors(self, ids: Collection[UUID]) -> dict[UUID, Vector]:
        """Return the `dense` vectors of those points that the store holds."""

    async def count(self) -> int:
        """Return the number of points."""

    async def close(self) -> None:
        """Release the connection."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to publish."""

    topic: Topic
    key: Namespace | None
    value: bytes
    headers: Mapping[str, bytes] = field(default_factory=dict)


class Publisher(Protocol):
    """The way onto the topics."""

    async def publish(self, records: Sequence[Outgoing]) -> None:
        """Publish, and return only when the broker has acknowledged every record (acks=all).

        Raises:
            BrokerUnavailable: at least one record was not acknowledged; all may be sent again.
        """


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A committed record that waits to be published."""

    id: int
    record: Outgoing


@dataclass(frozen=True, slots=True)
class Claim:
    """A command under lease: this owner alone works in the namespace until `until` or a newer fence."""

    command: Command
    fence: int
    owner: str
    until: datetime
    attempts: int = 0
    """Times the command was put off for an unusable reply (`Tables.claim` fills it). A new attempt asks
    anew: replies are stored under `attempts` · `ORDINALS_PER_ATTEMPT` + ordinal."""


ORDINALS_PER_ATTEMPT = 100_000
"""Places in the journal for the calls of one attempt and purpose (topology counts edits in hundreds)."""


@dataclass(frozen=True, slots=True)
class Request:
    """An accepted HTTP request: its id, the digest of its body, and the turns it brought."""

    id: UUID
    namespace: Namespace
    digest: str
    turns: tuple[UUID, ...]
    accepted_at: datetime


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over all namespaces of a tenant, or over everything."""

    turns: Mapping[str, int]
    """By status."""
    derived: Mapping[str, int]
    """Visible units by kind other than turn."""
    commands: Mapping[str, int]
    """By state."""
    merges_waiting: int
    buffer_waiting: int
    """Units that topology has not looked at and no command has claimed."""
    outbox_waiting: int
    index_waiting: int
    oldest_unfinished: datetime | None
    """`recorded_at` of the oldest turn that is not in a terminal state."""

    @property
    def open_commands(self) -> int:
        """Commands that are still to be carried out."""
        return sum(self.commands.get(state, 0) for state in ("issued", "planned", "waiting"))


class Transaction(Protocol):
    """Reads and writes under the locks of the transaction's namespaces; all of it commits, or none.

    Raises `TablesUnavailable` from any method.
    """

    async def record_request(self, request: Request) -> Request:
        """Insert the request, or return the one that has its id already."""

    async def mark(self, namespace: Namespace, ids: Collection[UUID], at: datetime) -> None:
        """Insert marks (of what was accepted); one that exists already is left as it is."""

    async def units(self, ids: Collection[UUID]) -> dict[UUID, Unit]:
        """Return the units that exist among the ids."""

    async def last_turn(self, namespace: Namespace) -> Unit | None:
        """Return the turn with the largest position."""

    async def session_length(self, namespace: Namespace, session: str) -> int:
        """Return the number of turns of a session."""

    async def session_slice(self, namespace: Namespace, session: str, start: int, stop: int) -> list[Unit]:
        """Return the session's turns with start <= ordinal < stop, in order."""

    async def position(self, namespace: Namespace) -> int:
        """Return the namespace's last position (0 when nothing was placed)."""

    async def advance(self, namespace: Namespace, count: int) -> int:
        """Reserve `count` positions and return the first."""

    async def insert_units(self, units: Sequence[Unit]) -> set[UUID]:
        """Insert units whose id is new; return the inserted ids. Visible ones are marked for the index."""

    async def update_units(self, units: Sequence[Unit]) -> None:
        """Rewrite units by id, leaving the immutable columns as they are.

        Units that are visible, or were until now, are marked for the index.
        """

    async def set_status(self, ids: Collection[UUID], status: Status) -> None:
        """Set the status of turns; the vector store does not hold it, so nothing is marked."""

    async def insert_links(self, links: Sequence[Link]) -> None:
        """Insert links; one that exists already is left as it is."""

    async def recurrence(self, namespace: Namespace) -> RecurrenceRows:
        """Return the live exchanges, the threads that are not closed, and the histogram of similarities."""

    async def recurrence_version(self, namespace: Namespace) -> int:
        """Return a number that grows with every `save_recurrence` of the namespace."""

    async def observed(self, ids: Collection[UUID]) -> set[UUID]:
        """Return those exchanges that were observed before, whatever their state."""

    async def save_recurrence(
        self,
        namespace: Namespace,
        exchanges: Iterable[Exchange],
        threads: Iterable[Thread],
        *,
        similarities: Sequence[int] | None = None,
    ) -> None:
        """Insert or replace exchanges and threads by id, and the histogram of similarities where given."""

    async def visible_facts(self, namespace: Namespace, about: Collection[tuple[str, str]]) -> list[Unit]:
        """Return the visible facts with one of the (subject, relation) pairs."""

    async def issue_commands(self, commands: Sequence[Command]) -> None:
        """Write new commands to the journal (state `issued`) and to the outbox."""

    async def finish_command(
        self,
        claim: Claim,
        state: CommandState,
        plan: Mapping[str, Any] | None,
        *,
        edits: Sequence[Edit] = (),
        note: str | None = None,
    ) -> bool:
        """Record the end of a claimed command; False when a newer fence took the lane: write nothing then."""

    async def delete_links(self, links: Sequence[Link]) -> None:
        """Delete links by source, target and type; those that do not exist are ignored."""

    async def threads_of(self, namespace: Namespace, heads: Collection[UUID]) -> list[Thread]:
        """Return the threads that have one of the episodes as a head, oldest first."""

    async def exchanges(self, ids: Collection[UUID]) -> list[Exchange]:
        """Return exchanges by id, whatever their state, in the order in which they were first observed."""

    async def push_buffer(self, namespace: Namespace, rows: Sequence[Buffered]) -> None:
        """Add units to the topology buffer; one that was ever pushed is left as it is."""

    async def buffer(self, namespace: Namespace) -> list[Buffered]:
        """Return the buffered units that no command has claimed, in the order in which they were pushed."""

    async def claim_buffer(self, units: Collection[UUID], command: UUID) -> None:
        """Give buffered units to a command: no other takes them."""

    async def count_sessions(self, namespace: Namespace, more: int, *, reset: bool = False) -> int:
        """Add to the sessions begun since topology last looked; return the sum; `reset` then sets it to 0."""

    async def entry(self, command: UUID) -> JournalEntry | None:
        """Return a command's journal entry, without its history and replies."""

    async def entries_after(self, namespace: Namespace, ordinal: int) -> list[JournalEntry]:
        """Return the namespace's applied commands issued after the given one, in order, without replies."""

    async def record_edits(self, command: UUID, edits: Sequence[Edit]) -> None:
        """Rewrite a finished command's edits (to mark those that were undone)."""

    async def record_undo(self, command: Command, edits: Sequence[Edit], at: datetime) -> None:
        """Write an applied `undo` command to the journal and take the lane from whoever works in it.

        One that is in the journal already is left as it is, and the lane with it.
        """

    async def record_changes(self, changes: Sequence[tuple[Unit, str]], at: datetime) -> list[Change]:
        """Give each (unit, change type) the namespace's next seq and write it to the outbox."""

    async def dirty(self, namespace: Namespace, limit: int) -> list[Unit]:
        """Return units that the vector store does not reflect yet, oldest position first."""

    async def mark_indexed(self, units: Sequence[Unit]) -> None:
        """Clear the mark of units whose version is still the given one."""


class Tables(Protocol):
    """The tables are the truth. Methods here read committed state, or write one thing atomically."""

    def transaction(self, namespaces: Iterable[Namespace]) -> AbstractAsyncContextManager[Transaction]:
        """Lock the namespaces in sorted order (creating their rows) and give a transaction over them."""

    async def units(self, namespace: Namespace, ids: Collection[UUID]) -> dict[UUID, Unit]:
        """Return the namespace's units among the ids."""

    async def turns_at(
        self, namespace: Namespace, places: Collection[tuple[str, int]]
    ) -> dict[tuple[str, int], Unit]:
        """Return the turns at (session, ordinal) places."""

    async def turns_before(
        self, namespace: Namespace, position: int | None, limit: int, *, said_to: datetime | None = None
    ) -> list[Unit]:
        """Return a page of the namespace's turns, whatever their status, newest position first.

        Args:
            namespace: whose turns.
            position: only turns before it; None: from the newest on.
            limit: most turns.
            said_to: only turns said by then; None: all.
        """

    async def links_of(self, namespace: Namespace, unit: UUID) -> list[Link]:
        """Return the links from and to a unit."""

    async def find(self, ids: Collection[UUID]) -> dict[UUID, Unit]:
        """Return units by id in any namespace; the caller checks that they are its tenant's."""

    async def derived_from(self, namespace: Namespace, turns: Collection[UUID]) -> dict[UUID, list[UUID]]:
        """Return, for each turn, the ids of visible units whose evidence it is."""

    async def unfinished_turns(self, after: tuple[str, int] | None, limit: int) -> list[Unit]:
        """Return turns that are not terminal, ordered by (namespace, position), after the given pair."""

    async def uncounted_turns(self, after: tuple[str, int] | None, limit: int) -> list[Unit]:
        """Return gated turns after a kept one that close no counted exchange, ordered and paged alike."""

    async def thread(self, namespace: Namespace, thread: UUID) -> Thread | None:
        """Return one thread."""

    async def free_lanes(self) -> None:
        """Free every lane, for a process that knows itself to be the only one: leases of a killed one end."""

    async def reissue_commands(self) -> int:
        """Write commands that never reached intake to the outbox again; return how many."""

    async def admit_commands(self, commands: Sequence[Command]) -> None:
        """Record commands that came by the topic as `planned`; those beyond `issued` stay as they are."""

    async def claim(self, owner: str, now: datetime, lease_seconds: float) -> Claim | None:
        """Take the oldest open command of a namespace whose lane is free, and that lane with it.

        Only one that is planned, or waiting and due, is taken: while the oldest is not, its namespace waits.
        """

    async def renew(self, claim: Claim, now: datetime, lease_seconds: float) -> bool:
        """Hold the lane for longer; False when it is no longer this claim's."""

    async def release(self, claim: Claim) -> None:
        """Give the lane back; the command stays as it is unless it was finished."""

    async def put_off(
        self, claim: Claim, not_before: datetime, note: str, now: datetime, *, attempt: bool = False
    ) -> int:
        """Set a claimed command to `waiting` and free its lane; return its attempts.

        Args:
            claim: of the command; nothing is written when the lane is lost.
            not_before: when it may be claimed again.
            note: why.
            now: the time of the transition.
            attempt: count it as a failed attempt (an unusable reply), not as an outage.
        """

    async def begin_call(self, call: Call, budget: Budget | None, now: datetime) -> StoredReply:
        """Record that a call is about to be made, holding its estimate of the tenant's budget.

        A call that has ended is returned with its completion, and nothing is recorded. One that was begun and
        never ended is begun again, and `asked` tells; its estimate is held already, unless that was in an
        earlier window. The first call of a window passes whatever its estimate: a budget smaller than one
        call must not block for ever. Without a budget nothing is held.

        Raises:
            BudgetSpent: the tenant has spent the window's tokens; nothing was recorded.
        """

    async def end_call(self, call: Call, completion: Completion, now: datetime) -> None:
        """Store a reply and settle its estimate to what it cost, in the window that holds it.

        A second reply to the same call is dropped: the first may have been used.
        """

    async def withdraw_call(self, call: Call, paid: int) -> None:
        """Take back that a call was begun: it certainly got no reply.

        Its estimate is given back, but for the tokens `paid` by an attempt before the one that failed.
        """

    async def hold_tokens(self, tenant: str, estimate: int, budget: Budget, now: datetime) -> datetime:
        """Hold tokens of the tenant's budget for a call that leaves no reply; return the window's start.

        The first call of a window passes whatever its estimate, as with `begin_call`.

        Raises:
            BudgetSpent: the tenant has spent the window's tokens; nothing was held.
        """

    async def settle_tokens(self, tenant: str, held_in: datetime, estimate: int, paid: int) -> None:
        """Replace what was held in a window by what was paid; once for each `hold_tokens`."""

    async def spent(self, tenant: str, budget: Budget, now: datetime) -> int:
        """Return the tenant's tokens of this window, held ones included."""

    async def journal(
        self,
        prefix: str = "",
        *,
        states: Collection[CommandState] = (),
        before: int | None = None,
        limit: int = 100,
    ) -> list[JournalEntry]:
        """Return entries, newest first, without history and replies.

        Args:
            prefix: `tenant/` for a tenant, `tenant/user` for that namespace alone, empty for everything.
            states: only commands in one of these; empty for any.
            before: only ordinals below this one, to page on.
            limit: at most so many.
        """

    async def journal_entry(self, command: UUID) -> JournalEntry | None:
        """Return one entry with its history and replies."""

    async def costs(self, prefix: str = "", commands: Collection[UUID] | None = None) -> list[Cost]:
        """Sum the stored replies by tenant, purpose and model, of namespaces with the prefix as in `journal`.

        Args:
            prefix: as in `journal`.
            commands: only those of these commands, each summed for itself; None for all in one.
        """

    async def idle_buffers(self, pushed_before: datetime, limit: int) -> list[Namespace]:
        """Return namespaces whose unclaimed buffered units were all pushed before the given time."""

    async def namespaces(
        self, prefix: str = "", after: Namespace | None = None, limit: int = 1000
    ) -> list[Namespace]:
        """Return namespaces in order, paged; the prefix is that of `journal`."""

    async def links_from(
        self, namespace: Namespace, units: Collection[UUID], types: Collection[LinkType] = ()
    ) -> list[Link]:
        """Return the links that leave the units (of these types, or all), in order."""

    async def links_to(
        self, namespace: Namespace, units: Collection[UUID], types: Collection[LinkType] = ()
    ) -> list[Link]:
        """Return the links that enter the units (of these types, or all), in order."""

    async def linking_to(
        self, namespace: Namespace, units: Collection[UUID], type_: LinkType, *, ended: bool = False
    ) -> list[tuple[UUID, Unit]]:
        """Return, for each link of a type that enters one of the units, that one's id and the unit it leaves.

        Ordered by source, then target; `ended` leaves out what has no end (`valid_to`).
        """

    async def visible_units(self, namespace: Namespace, kinds: Collection[Kind]) -> list[Unit]:
        """Return the visible units of these kinds, oldest position and ordinal first."""

    async def graph(self, namespace: Namespace) -> Graph:
        """Return the units and links of a namespace."""

    async def idle_namespaces(self, waited: datetime, idle: datetime, limit: int) -> list[Namespace]:
        """Return namespaces with a thread in which every pending exchange was observed before a given time.

        Args:
            waited: the time for most threads.
            idle: a later one, for threads that no command has promoted yet, or where something salient waits.
            limit: most namespaces; those that have waited longest come first.
        """

    async def unindexed(self, ids: Collection[UUID]) -> set[UUID]:
        """Return those units that the vector store does not reflect yet."""

    async def has_unindexed(self, namespaces: Collection[Namespace]) -> bool:
        """Tell whether a unit of one of the namespaces is not yet reflected by the vector store."""

    async def mark_for_index(self) -> int:
        """Mark every visible unit for the index, so that the store is built anew; return how many."""

    async def dirty_namespaces(self, limit: int) -> list[Namespace]:
        """Return namespaces with units that the vector store does not reflect yet."""

    async def outbox(self, limit: int) -> list[OutboxRow]:
        """Return the oldest rows of the outbox."""

    async def published(self, ids: Collection[int]) -> None:
        """Delete outbox rows that the broker acknowledged."""

    async def record_request(self, request: Request) -> Request:
        """Insert the request, or return the one that has its id already."""

    async def request(self, request_id: UUID) -> Request | None:
        """Return a request by id."""

    async def requests(self, ids: Collection[UUID]) -> dict[UUID, Request]:
        """Return the requests that exist among the ids."""

    async def mark(self, namespace: Namespace, ids: Collection[UUID], at: datetime) -> None:
        """Insert marks (of what was accepted); one that exists already is left as it is."""

    async def marked(self, ids: Collection[UUID]) -> set[UUID]:
        """Return those of the ids that are marked."""

    async def unmark(self, ids: Collection[UUID]) -> None:
        """Delete marks; those that do not exist are ignored."""

    async def drop_marks(self, before: datetime, limit: int) -> int:
        """Delete the oldest marks that were made before a time, at most so many; return how many."""

    async def fail_turn(self, namespace: Namespace, turn: UUID, reason: str) -> None:
        """Set a turn that is not terminal to `failed`."""

    async def count_fault(self, source: str, detail: str) -> int:
        """Count one more unknown fault of a record (`topic/partition/offset/digest`); return how many."""

    async def tally(self, namespace_prefix: str = "") -> Tally:
        """Count turns, derived units and commands; the prefix is that of `journal`."""

    async def check(self) -> None:
        """Answer if the database does.

        Raises:
            TablesUnavailable: it does not.
        """

    async def close(self) -> None:
        """Close all connections."""
