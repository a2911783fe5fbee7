"""The lanes that commands run in: one command at a time and in order per namespace.

A lane is three columns of the namespace's row: owner, until, fence. Taking it raises the fence, so a
worker that lost its lane by being slow finds another fence when it comes to write.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, or_, select, update

from lamina.sinks.database import Statements, chunks
from lamina.sinks.schema import namespaces, one_of
from lamina.sinks.schema_journal import IS_OPEN, IS_PUT_OFF, commands
from lamina.streams.codec import decode
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Claim
from lamina.streams.records import Command

_CANDIDATES = 16
"""Namespaces looked at per claim; a worker that loses the race for all of them asks again."""


async def candidates(sql: Statements, now: datetime) -> list[Namespace]:
    """Return namespaces with a free lane whose oldest open command is ready, oldest command first.

    Ready is one that is planned, or waiting and due. An issued one that is not yet admitted, and a
    waiting one that is not yet due, hold back the younger ones of their namespace: their order is that
    of issue, however the topic delivers them.
    """
    older = commands.alias("older")
    open_before = exists().where(
        older.c.namespace == commands.c.namespace,
        older.c.ordinal < commands.c.ordinal,
        one_of(older.c.state, "issued", "planned", "waiting"),
    )
    first = (
        select(commands.c.ordinal, commands.c.namespace)
        .join(namespaces, namespaces.c.namespace == commands.c.namespace)
        .where(_lane_is_free(now), ~open_before)
        .limit(_CANDIDATES)
    )
    planned = first.where(commands.c.state == "planned").order_by(commands.c.ordinal)
    # Asked apart, by an index of its own: in an outage many wait, and few are due.
    due = first.where(IS_PUT_OFF, commands.c.not_before <= now).order_by(commands.c.not_before)
    ready = [*await sql.rows(planned), *await sql.rows(due)]
    return [row.namespace for row in sorted(ready, key=lambda row: row.ordinal)[:_CANDIDATES]]


async def take(
    sql: Statements, namespace: Namespace, owner: str, now: datetime, lease_seconds: float
) -> Claim | None:
    """Take the lane of a namespace for its oldest open command; None when another worker was faster.

    Under the namespace's lock: the fence, the order and the state are read and moved as one. The
    command keeps its state while it is carried out: a lane that is lost leaves it as it was.
    """
    await lock_namespaces(sql, [namespace])
    oldest = (
        select(commands.c.state, commands.c.not_before, commands.c.attempts, commands.c.payload)
        .where(commands.c.namespace == namespace, IS_OPEN)
        .order_by(commands.c.ordinal)
        .limit(1)
    )
    rows = await sql.rows(oldest)
    if not rows or not _is_ready(rows[0], now):
        return None
    until = now + timedelta(seconds=lease_seconds)
    guarded = (
        update(namespaces)
        .where(namespaces.c.namespace == namespace, _lane_is_free(now))
        .values(lane_owner=owner, lane_until=until, lane_fence=namespaces.c.lane_fence + 1)
        .returning(namespaces.c.lane_fence)
    )
    fence = await sql.scalar(guarded)
    if fence is None:
        return None
    return Claim(decode(Command, rows[0].payload), fence, owner, until, rows[0].attempts)


async def renew(sql: Statements, claim: Claim, now: datetime, lease_seconds: float) -> bool:
    """Hold a lane until `lease_seconds` from now; False when it is no longer this claim's."""
    until = now + timedelta(seconds=lease_seconds)
    return await sql.run(update(namespaces).where(_is_of(claim)).values(lane_until=until)) == 1


async def free(sql: Statements, claim: Claim) -> bool:
    """Give a lane back; False when it is no longer this claim's."""
    free = update(namespaces).where(_is_of(claim)).values(lane_owner=None, lane_until=None)
    return await sql.run(free) == 1


async def free_all(sql: Statements) -> None:
    """Free every lane; the fence moves on, so whoever held one can no longer finish in it."""
    held = update(namespaces).where(namespaces.c.lane_owner.is_not(None))
    await sql.run(held.values(lane_owner=None, lane_until=None, lane_fence=namespaces.c.lane_fence + 1))


async def take_away(sql: Statements, namespace: Namespace) -> None:
    """Free one lane; whoever holds it can no longer finish in it."""
    lane = update(namespaces).where(namespaces.c.namespace == namespace)
    await sql.run(lane.values(lane_owner=None, lane_until=None, lane_fence=namespaces.c.lane_fence + 1))


async def lock_namespaces(sql: Statements, ordered: Sequence[Namespace]) -> None:
    """Create and lock the rows of sorted namespaces, in that order; SQLite's transaction is a lock itself."""
    for some in chunks(ordered, 1_000):
        rows = [
            {"namespace": name, "position": 0, "seq": 0, "recurrence_version": 0, "lane_fence": 0}
            for name in some
        ]
        await sql.run(sql.insert(namespaces).values(rows).on_conflict_do_nothing())

    if not sql.postgres:
        return
    for some in chunks(ordered):
        statement = (
            select(namespaces.c.namespace)
            .where(namespaces.c.namespace.in_(some))
            .order_by(namespaces.c.namespace)
            .with_for_update()
        )
        await sql.rows(statement)


def _is_ready(command: Any, now: datetime) -> bool:
    due = command.not_before is not None and command.not_before <= now
    return command.state == "planned" or (command.state == "waiting" and due)


def _lane_is_free(now: datetime) -> ColumnElement[bool]:
    return or_(namespaces.c.lane_until.is_(None), namespaces.c.lane_until < now)


def _is_of(claim: Claim) -> ColumnElement[bool]:
    return and_(
        namespaces.c.namespace == claim.command.namespace,
        namespaces.c.lane_fence == claim.fence,
        namespaces.c.lane_owner == claim.owner,
    )
