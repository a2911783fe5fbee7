"""The journal of commands: every change of a command's state, each with a row of history."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import exists, select, update

from lamina.sinks import journal_lanes
from lamina.sinks.database import Statements
from lamina.sinks.rows import outbox_row
from lamina.sinks.rows_journal import command_row, edits_json
from lamina.sinks.schema import outbox
from lamina.sinks.schema_journal import commands, transitions
from lamina.streams.codec import decode, encode
from lamina.streams.ports import Claim, Outgoing
from lamina.streams.records import Command, CommandState, Edit
from lamina.streams.topics import CONSOLIDATION


async def issue(sql: Statements, orders: Sequence[Command]) -> None:
    """Write commands whose id is new to the journal (`issued`) and to the outbox, in this order."""
    insert = sql.insert(commands).on_conflict_do_nothing(index_elements=["id"]).returning(commands.c.id)
    new = {row.id for row in await sql.rows(insert, [command_row(order, "issued") for order in orders])}
    issued = [order for order in orders if order.id in new]
    history = [_transition(order.id, "issued", order.issued_at) for order in issued]
    await sql.run(transitions.insert(), history)
    await sql.run(outbox.insert(), [_record(order) for order in issued])


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
    once = {order.id: command_row(order, "planned") for order in orders}
    admitted = await sql.rows(upsert.returning(commands.c.id), list(once.values()))
    now = _now()
    await sql.run(transitions.insert(), [_transition(row.id, "planned", now) for row in admitted])


async def finish(
    sql: Statements,
    claim: Claim,
    state: CommandState,
    plan: Mapping[str, Any] | None,
    edits: Sequence[Edit],
    note: str | None,
) -> bool:
    """Record the end of a command and free its lane; False, and nothing written, when the lane is lost."""
    if not await journal_lanes.free(sql, claim):
        return False
    now, this = _now(), claim.command.id
    values = {"state": state, "plan": plan, "edits": edits_json(edits), "note": note}
    done = update(commands).where(commands.c.id == this)
    await sql.run(done.values(values | {"not_before": None, "finished_at": now}))
    await sql.run(transitions.insert(), [_transition(this, state, now, note)])
    return True


async def put_off(
    sql: Statements, claim: Claim, not_before: datetime, note: str, now: datetime, *, attempt: bool
) -> int:
    """Set a claimed command to `waiting` and free its lane; return its attempts. Nothing when it is lost.

    History gets a row when the state changes or the reason does: an outage that lasts writes one.
    """
    this = claim.command.id
    if not await journal_lanes.free(sql, claim):
        return await sql.scalar(select(commands.c.attempts).where(commands.c.id == this)) or 0
    last = (
        select(transitions.c.state, transitions.c.note)
        .where(transitions.c.command == this)
        .order_by(transitions.c.ordinal.desc())
        .limit(1)
    )
    if [tuple(row) for row in await sql.rows(last)] != [("waiting", note)]:
        await sql.run(transitions.insert(), [_transition(this, "waiting", now, note)])
    waiting = (
        update(commands)
        .where(commands.c.id == this)
        .values(
            state="waiting", not_before=not_before, note=note, attempts=commands.c.attempts + int(attempt)
        )
    )
    return int(await sql.scalar(waiting.returning(commands.c.attempts)))


async def record_edits(sql: Statements, command: UUID, edits: Sequence[Edit]) -> None:
    """Rewrite the edits of a command that has ended."""
    await sql.run(update(commands).where(commands.c.id == command).values(edits=edits_json(edits)))


async def record_undo(sql: Statements, order: Command, edits: Sequence[Edit], at: datetime) -> None:
    """Write a command that is applied already, and take its namespace's lane from whoever works in it.

    One that is there already is left as it is, and so is the lane.
    """
    row = command_row(order, "applied") | {"edits": edits_json(edits), "finished_at": at}
    insert = sql.insert(commands).on_conflict_do_nothing(index_elements=["id"]).returning(commands.c.id)
    if await sql.rows(insert, [row]):
        await sql.run(transitions.insert(), [_transition(order.id, "applied", at)])
        await journal_lanes.take_away(sql, order.namespace)


def _transition(command: UUID, state: str, at: datetime, note: str | None = None) -> dict[str, Any]:
    return {"command": command, "at": at, "state": state, "note": note}


def _record(order: Command) -> dict[str, Any]:
    return outbox_row(Outgoing(CONSOLIDATION, order.namespace, encode(order)), order.id)


def _now() -> datetime:
    """Return the time of a change of state: for people who read the journal; nothing decides by it."""
    return datetime.now(UTC)
