"""Recurrence decides when to consolidate (RecMem §3.2–3.3), merge-first and debounced.

For each exchange u_i, in the order of arrival:

1. *merge-first* (eq. 6): the nearest episode thread with cos ≥ θ_sim takes it; it waits there until the
   thread has `merge_size` of them or has been quiet for long enough, and one command merges them all (the
   debounce is ours: RecMem pays one call per exchange);
2. *recurrence* (eq. 5): R_i = those of the top 2·θ_count unconsolidated exchanges with cos ≥ θ_sim, **i
   included** (app. B); |R_i| ≥ θ_count promotes the cluster;
3. *salience* (ours; RecMem §6 names the gap): an exchange that matters without recurring opens a thread of
   its own, under the same debounce;
4. otherwise it stays in the subconscious layer.

A promotion registers a provisional thread at once, its centroid the mean of its members, so that later
similar exchanges become merges without waiting for the engine. Thread centroids stand in for the episode
embedding Φ(E*) of eq. 6: they depend on the input alone, never on how fast an engine answers.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from lamina.streams import theta
from lamina.streams.codec import Vector
from lamina.streams.identity import command_id, thread_id
from lamina.streams.namespace import Namespace
from lamina.streams.records import Command
from lamina.streams.recurrence import Exchange, RecurrenceRows, Thread
from lamina.streams.settings import Settings
from lamina.streams.vector_table import VectorTable, unit_length


@dataclass(frozen=True, slots=True)
class CountPolicy:
    """The thresholds of recurrence. Defaults live in `lamina.streams.settings`."""

    theta_sim: float
    theta_count: int
    merge_size: int
    merge_idle: timedelta
    """Patience with a thread that waits for its first episode, or in which something salient waits."""
    merge_wait: timedelta
    """Patience with every other thread."""
    adaptive: bool = False
    """Whether `theta_sim` yields to what `lamina.streams.theta` reads from the namespace itself."""

    @classmethod
    def of(cls, settings: Settings) -> "CountPolicy":
        """Read the policy from the settings."""
        return cls(
            theta_sim=theta.START if settings.theta_sim == "adaptive" else settings.theta_sim,
            theta_count=settings.theta_count,
            merge_size=settings.merge_size,
            merge_idle=timedelta(seconds=settings.merge_idle_seconds),
            merge_wait=timedelta(seconds=settings.merge_wait_seconds),
            adaptive=settings.theta_sim == "adaptive",
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about an exchange, and why."""

    outcome: Literal["stays", "merges", "promotes", "opens"]
    """`opens`: a salient exchange opened a thread of its own."""
    thread: UUID | None = None
    similar: tuple[tuple[UUID, float], ...] = ()
    """R_i with its cosines (i itself first), or the thread's cosine for a merge."""


@dataclass(slots=True)
class Delta:
    """Rows to write: what changed since the state was last saved."""

    exchanges: dict[UUID, Exchange] = field(default_factory=dict)
    threads: dict[UUID, Thread] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    similarities: tuple[int, ...] | None = None
    """None where no exchange was counted in."""


class RecurrenceState:
    """The live recurrence state of one namespace, rebuilt from its rows.

    A plain object without I/O: `observe` and `ripen` decide and collect what has to be written, `take` hands
    it over. When the write fails the state must be thrown away and rebuilt.
    """

    def __init__(
        self, namespace: Namespace, rows: RecurrenceRows, policy: CountPolicy, dimension: int
    ) -> None:
        self._namespace = namespace
        self._policy = policy
        self._similarities = rows.similarities
        self._live: dict[UUID, Exchange] = {}
        self._alone = VectorTable(dimension)
        self._threads: dict[UUID, Thread] = {}
        self._centroids = VectorTable(dimension)
        self._pending: dict[UUID, deque[UUID]] = {}
        self._delta = Delta()
        for thread in rows.threads:
            self._register(thread)
        for exchange in rows.exchanges:
            self._live[exchange.id] = exchange
            if exchange.state == "pending" and exchange.thread is not None:
                self._pending[exchange.thread].append(exchange.id)
            elif exchange.vector is not None:
                self._alone.put(exchange.id, exchange.vector)
        self._delta = Delta()

    @property
    def size(self) -> int:
        """Vectors held: live exchanges and threads."""
        return len(self._live) + len(self._threads)

    @property
    def theta_sim(self) -> float:
        """The cosine from which the next exchange is similar to another, or to a thread."""
        return theta.theta_sim(self._similarities) if self._policy.adaptive else self._policy.theta_sim

    def observe(self, exchange: Exchange, *, position: int, now: datetime) -> Decision:
        """Decide about one exchange. Event time passes with it: merges that it shows to be idle are issued.

        Args:
            exchange: new, unconsolidated, with a vector of unit length.
            position: the namespace's position at this exchange.
            now: the time that commands are stamped with.

        Raises:
            ValueError: the exchange has no vector.
        """
        self._ripen_at(exchange.said_at, position, now)
        decision = self._decide(exchange, position, now)
        if decision.thread is not None and self._is_full(decision.thread):
            self._issue(decision.thread, "merge_full", position, now)
        return decision

    def ripen(self, *, position: int, now: datetime) -> None:
        """Issue the commands of threads in which nothing was observed for longer than there is patience."""
        for thread in [t for t, pending in self._pending.items() if pending]:
            newest = max(self._live[i].observed_at for i in self._pending[thread])
            if now - newest > self._patience(thread):
                self._issue(thread, "merge_idle", position, now)

    def take(self) -> Delta:
        """Hand over what changed since the last call."""
        delta, self._delta = self._delta, Delta()
        return delta

    def _decide(self, exchange: Exchange, position: int, now: datetime) -> Decision:
        vector = _vector_of(exchange)
        theta_sim = self.theta_sim
        self._count_in(vector)
        nearest = self._centroids.nearest(vector, 1, theta_sim)
        if nearest:
            self._join(exchange, nearest[0][0])
            return Decision("merges", nearest[0][0], tuple(nearest))
        similar = (
            (exchange.id, 1.0),
            *self._alone.nearest(vector, 2 * self._policy.theta_count - 1, theta_sim),
        )
        recurs = len(similar) >= self._policy.theta_count
        if not recurs and exchange.salience is None:
            self._keep(exchange)
            self._alone.put(exchange.id, vector)
            return Decision("stays", None, similar)
        thread = self._open(exchange, [key for key, _ in similar[1:]])
        if recurs:
            self._issue(thread, "recurrence", position, now)
        return Decision("promotes" if recurs else "opens", thread, similar)

    def _count_in(self, vector: Vector) -> None:
        if not self._policy.adaptive:
            return
        near = [each.highest(vector) for each in (self._centroids, self._alone)]
        cosines = [cosine for cosine in near if cosine is not None]
        if cosines:
            self._similarities = self._delta.similarities = theta.counted(self._similarities, max(cosines))

    def _open(self, exchange: Exchange, others: Iterable[UUID]) -> UUID:
        key = thread_id(self._namespace, exchange.id)
        members = [self._live[other] for other in others]
        for member in members:
            self._alone.drop(member.id)
        total = sum(map(_vector_of, members), _vector_of(exchange))
        self._register(Thread(id=key, total=total, members=1 + len(members), promoted=None))
        for member in sorted([*members, exchange], key=lambda each: (each.said_at, str(each.id))):
            self._keep(replace(member, state="pending", thread=key))
            self._pending[key].append(member.id)
        return key

    def _join(self, exchange: Exchange, key: UUID) -> None:
        thread = self._threads[key]
        self._register(replace(thread, total=thread.total + _vector_of(exchange), members=thread.members + 1))
        self._keep(replace(exchange, state="pending", thread=key))
        self._pending[key].append(exchange.id)

    def _register(self, thread: Thread) -> None:
        self._threads[thread.id] = self._delta.threads[thread.id] = thread
        self._centroids.put(thread.id, unit_length(thread.total))
        self._pending.setdefault(thread.id, deque())

    def _keep(self, exchange: Exchange) -> None:
        self._live[exchange.id] = self._delta.exchanges[exchange.id] = exchange

    def _is_full(self, thread: UUID) -> bool:
        return len(self._pending[thread]) >= self._policy.merge_size

    def _ripen_at(self, event_time: datetime, position: int, now: datetime) -> None:
        for thread in [t for t, pending in self._pending.items() if pending]:
            newest = max(self._live[i].said_at for i in self._pending[thread])
            if event_time - newest >= self._patience(thread):
                self._issue(thread, "merge_idle", position, now)

    def _patience(self, thread: UUID) -> timedelta:
        first = self._threads[thread].promoted is None
        if first or any(self._live[each].salience is not None for each in self._pending[thread]):
            return self._policy.merge_idle
        return self._policy.merge_wait

    def _issue(
        self,
        key: UUID,
        reason: Literal["recurrence", "merge_full", "merge_idle"],
        position: int,
        now: datetime,
    ) -> None:
        thread = self._threads[key]
        claimed = [self._live.pop(each) for each in self._pending[key]]
        claimed.sort(key=lambda each: (each.said_at, str(each.id)))
        self._pending[key].clear()
        first = thread.promoted is None
        kind: Literal["promote", "merge"] = "promote" if first else "merge"
        identity = command_id(kind, key, [each.id for each in claimed])
        self._delta.commands.append(
            Command(
                id=identity,
                namespace=self._namespace,
                kind=kind,
                thread=key,
                exchanges=tuple(each.id for each in claimed),
                evidence=tuple(dict.fromkeys(turn for each in claimed for turn in each.turns)),
                reason="salience" if first and reason != "recurrence" else reason,
                position=position,
                issued_at=now,
            )
        )
        for each in claimed:
            self._delta.exchanges[each.id] = replace(
                each, state="claimed", thread=key, command=identity, vector=None
            )
        if first:
            self._register(replace(thread, promoted=identity))


def _vector_of(exchange: Exchange) -> Vector:
    if exchange.vector is None:
        raise ValueError(f"exchange {exchange.id} has no vector: it was claimed already")
    return exchange.vector
