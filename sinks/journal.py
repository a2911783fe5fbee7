"""The journal of commands and the lanes they run in: one command at a time and in order per namespace.

A lane is three columns of the namespace's row: owner, until, fence. Taking it raises the fence, so a
worker that lost its lane by being slow finds another fence when it comes to write.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import and_, exists, or_, select, update

from lamina.sinks.database import Statements, chunks
from lamina.sinks.rows import command_row, outbox_row
from lamina.sinks.schema import IS_OPEN, commands, namespaces, one_of, outbox
from lamina.streams.codec import decode, encode
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Claim, Outgoing
from lamina.streams.records import Command, CommandState
from lamina.streams.topics import CONSOLIDATION

_CANDIDATES = 16
"""Namespaces looked at per claim; a worker that loses the race for all of them asks again."""


async def issue(sql: Statements, orders: Sequence[Command]) -> None:
    """Write commands whose id is new to the journal (`issued`) and to the outbox, in this order."""
    insert = sql.insert(commands).on_conflict_do_nothing(index_elements=["id"]).returning(commands.c.id)
    new = {row.id for row in await sql.rows(insert, [command_row(order, "issued") for order in orders])}
    await sql.run(outbox.insert(), [_record(order) for order in orders if order.id in new])


async def reissue(sql: Statements) -> int:
    """Write issued commands whose outbox row is gone to the outbox again; return how many."""
    waiting = exists().where(outbox.c.command == commands.c.id)
    lost = (
        select(commands.c.payload).where(commands.c.state == "issued", ~waiting).order_by(commands.c.ordinal)
    )
    orders = [decode(Command, row.payload) for row in await sql.rows(lost)]
    await sql.run(outbox.insert(), [_record(order) for order in orders])
    return len(orders)


async def admit(sql: Statements, orders: Sequence[Command]) -> None:
    """Set commands that are new or `issued` to `planned`; leave all others. Keeps the order of issue."""
    insert = sql.insert(commands)
    upsert = insert.on_conflict_do_update(
        index_elements=["id"],
        set_={"state": insert.excluded.state},
        where=commands.c.state == "issued",
    )
    await sql.run(upsert, [command_row(order, "planned") for order in orders])


async def candidates(sql: Statements, now: datetime) -> list[Namespace]:
    """Return namespaces with a free lane whose oldest open command is planned, oldest command first.

    A command that is issued and not yet admitted holds back the younger ones of its namespace: their
    order is that of issue, however the topic delivers them.
    """
    older = commands.alias("older")
    open_before = exists().where(
        older.c.namespace == commands.c.namespace,
        older.c.ordinal < commands.c.ordinal,
        one_of(older.c.state, "issued", "planned"),
    )
    statement = (
        select(commands.c.namespace)
        .join(namespaces, namespaces.c.namespace == commands.c.namespace)
        .where(commands.c.state == "planned", _lane_is_free(now), ~open_before)
        .order_by(commands.c.ordinal)
        .limit(_CANDIDATES)
    )
    return [row.namespace for row in await sql.rows(statement)]


async def take(
    sql: Statements, namespace: Namespace, owner: str, now: datetime, lease_seconds: float
) -> Claim | None:
    """Take the lane of a namespace for its oldest open command; None when another worker was faster.

    Under the namespace's lock: the fence, the order and the state are read and moved as one.
    """
    await lock_namespaces(sql, [namespace])
    oldest = (
        select(commands.c.state, commands.c.payload)
        .where(commands.c.namespace == namespace, IS_OPEN)
        .order_by(commands.c.ordinal)
        .limit(1)
    )
    rows = await sql.rows(oldest)
    if not rows or rows[0].state != "planned":
        return None
    until = now + timedelta(seconds=lease_seconds)
    guarded = (
        update(namespaces)
        .where(namespaces.c.namespace == namespace, _lane_is_free(now))
        .values(lane_owner=owner, lane_until=until, lane_fence=namespaces.c.lane_fence + 1)
        .returning(namespaces.c.lane_fence)
    )
    fence = await sql.scalar(guarded)
    return None if fence is None else Claim(decode(Command, rows[0].payload), fence, owner, until)


async def finish(sql: Statements, claim: Claim, state: CommandState, plan: Mapping[str, Any] | None) -> bool:
    """Record the end of a command and free its lane; False, and nothing written, when the lane is lost."""
    if not await free(sql, claim):
        return False
    # The time is for people who read the journal; nothing decides by it.
    done = (
        update(commands)
        .where(commands.c.id == claim.command.id)
        .values(state=state, plan=plan, finished_at=datetime.now(UTC))
    )
    await sql.run(done)
    return True


async def free(sql: Statements, claim: Claim) -> bool:
    """Give a lane back; False when it is no longer this claim's."""
    mine = and_(
        namespaces.c.namespace == claim.command.namespace,
        namespaces.c.lane_fence == claim.fence,
        namespaces.c.lane_owner == claim.owner,
    )
    return await sql.run(update(namespaces).where(mine).values(lane_owner=None, lane_until=None)) == 1


async def free_all(sql: Statements) -> None:
    """Free every lane; the fence moves on, so whoever held one can no longer finish in it."""
    held = update(namespaces).where(namespaces.c.lane_owner.is_not(None))
    await sql.run(held.values(lane_owner=None, lane_until=None, lane_fence=namespaces.c.lane_fence + 1))


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


def _lane_is_free(now: datetime) -> Any:
    return or_(namespaces.c.lane_until.is_(None), namespaces.c.lane_until < now)


def _record(order: Command) -> dict[str, Any]:
    return outbox_row(Outgoing(CONSOLIDATION, order.namespace, encode(order)), order.id)
