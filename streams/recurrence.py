"""The state that recurrence counting keeps for a namespace: exchanges and threads (RecMem §3.2–3.3)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from lamina.streams.codec import Vector

ExchangeState = Literal["unconsolidated", "pending", "claimed"]


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """One interaction unit (RecMem eq. 3–4): a turn and its reply, or a single turn.

    `id` is the id of its last turn. `vector` embeds the whole exchange and is dropped (None) once the
    exchange is claimed: nothing compares with it any more.
    """

    id: UUID
    turns: tuple[UUID, ...]
    said_at: datetime
    observed_at: datetime
    vector: Vector | None
    salience: str | None
    state: ExchangeState = "unconsolidated"
    thread: UUID | None = None
    command: UUID | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Thread:
    """An episode thread: registered when a cluster is promoted, before its episode is written.

    `total` is the sum of its members' vectors (not of unit length), so its direction is the centroid.
    `heads` are the visible episodes it stands for now; empty until the first command is applied.
    """

    id: UUID
    total: Vector
    members: int
    promoted: UUID | None
    """The command that promotes it; None while a salient thread waits for its debounce."""
    heads: tuple[UUID, ...] = ()
    closed: bool = False
    """Whether it takes no more exchanges: the engine found no episode in it."""


@dataclass(frozen=True, slots=True)
class RecurrenceRows:
    """What the tables hold for a namespace: live exchanges (not claimed) and open threads, oldest first."""

    exchanges: tuple[Exchange, ...]
    threads: tuple[Thread, ...]
    similarities: tuple[int, ...] = ()
    """Exchanges by the cosine to what was nearest when they were observed, in the bins of
    `lamina.streams.theta`; empty: none was counted yet."""
