"""Calls to the model as the tables keep them: paid once, and never beyond a tenant's budget.

A tenant's budget is a row per window of time, which holds what was paid and an estimate for each call
under way. It is raised by a conditional update, so of two workers at its end one passes.
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, delete, func, literal_column, null, or_, select, update

from lamina.sinks.database import Statements, chunks
from lamina.sinks.rows_journal import call_row, completion_row, cost_of, reply_of
from lamina.sinks.schema_journal import replies, spending
from lamina.sinks.tables_ranges import under
from lamina.streams.errors import BudgetSpent
from lamina.streams.journal import Budget, Call, Cost, StoredReply
from lamina.streams.llm import Completion
from lamina.streams.namespace import tenant_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_TENANT_POSTGRES = "split_part(replies.namespace, '/', 1)"
_TENANT_SQLITE = "substr(replies.namespace, 1, instr(replies.namespace, '/') - 1)"

_SUMMED = ("attempts", "tokens_in", "tokens_out", "seconds")


async def begin(sql: Statements, call: Call, budget: Budget | None, now: datetime) -> StoredReply:
    """Record that a call is about to be made; one that has ended is returned as it is.

    A call that was begun before is begun again; its estimate is held already, unless that was in an earlier
    window: what is asked now is paid now. The first call of a window passes whatever its estimate: a budget
    smaller than one call must not block for ever.

    Raises:
        BudgetSpent: nothing was recorded, once the transaction is rolled back.
    """
    new = call_row(call) | {"asked": 0, "asked_at": now, "held_in": None}
    await sql.run(sql.insert(replies).on_conflict_do_nothing(), [new])
    # Locked: of two workers at the same place, the second sees what the first wrote.
    row = (await sql.rows(select(replies).where(_is_of(call)).with_for_update()))[0]
    if row.ended_at is not None:
        return reply_of(row)
    again = {"asked": row.asked + 1, "asked_at": now, "version": call.version, "model": call.model}
    if budget is not None and row.held_in != _window_start(budget, now):
        held_in = await hold(sql, tenant_of(call.namespace), call.estimate, budget, now)
        again |= {"held_in": held_in, "estimate": call.estimate}
    begun = update(replies).where(_is_of(call)).values(again).returning(replies)
    return reply_of((await sql.rows(begun))[0])


async def end(sql: Statements, call: Call, completion: Completion, now: datetime) -> None:
    """Store a reply and settle its estimate to what it cost, in the window that holds it.

    A second reply to the same call is dropped: the first may have been used.
    """
    ended = (
        update(replies)
        .where(_is_of(call), replies.c.ended_at.is_(None))
        .values(completion_row(completion) | {"ended_at": now})
        .returning(replies.c.held_in, replies.c.estimate)
    )
    rows = await sql.rows(ended)
    if rows and rows[0].held_in is not None:
        paid = completion.tokens_in + completion.tokens_out
        await settle(sql, tenant_of(call.namespace), rows[0].held_in, rows[0].estimate, paid)


async def withdraw(sql: Statements, call: Call, paid: int) -> None:
    """Take back that a call was begun, and give back its estimate but for what was paid."""
    rows = await sql.rows(select(replies).where(_is_of(call), replies.c.ended_at.is_(None)).with_for_update())
    if not rows:
        return
    row = rows[0]
    if row.held_in is not None:
        await settle(sql, tenant_of(call.namespace), row.held_in, row.estimate, paid)
    if row.asked > 1:
        # an earlier time is still in doubt
        await sql.run(update(replies).where(_is_of(call)).values(asked=row.asked - 1, held_in=None))
    else:
        await sql.run(delete(replies).where(_is_of(call)))


async def hold(sql: Statements, tenant: str, estimate: int, budget: Budget, now: datetime) -> datetime:
    """Add an estimate to the tenant's window and return the window's start.

    The first of a window passes whatever it is: a budget smaller than one call must not block for ever.

    Raises:
        BudgetSpent: it does not fit.
    """
    start = _window_start(budget, now)
    empty = {"tenant": tenant, "window_start": start, "tokens": 0}
    await sql.run(sql.insert(spending).on_conflict_do_nothing(), [empty])
    fits = or_(spending.c.tokens == 0, spending.c.tokens + estimate <= budget.tokens)
    held = update(spending).where(*_window(tenant, start), fits)
    if await sql.run(held.values(tokens=spending.c.tokens + estimate)) == 1:
        return start
    rest = start + timedelta(seconds=budget.window_seconds) - now
    raise BudgetSpent(
        f"tenant {tenant} has spent its {budget.tokens:,} tokens of the window that began"
        f" {start.isoformat()}: the next one begins in {rest.total_seconds():.0f} s",
        retry_after=rest.total_seconds(),
    )


async def settle(sql: Statements, tenant: str, held_in: datetime, estimate: int, paid: int) -> None:
    """Replace an estimate by what was paid, in the window that holds it."""
    settled = update(spending).where(*_window(tenant, held_in))
    await sql.run(settled.values(tokens=spending.c.tokens - estimate + paid))


async def spent(sql: Statements, tenant: str, budget: Budget, now: datetime) -> int:
    """Return the tenant's tokens of this window, held ones included."""
    window = _window(tenant, _window_start(budget, now))
    return await sql.scalar(select(spending.c.tokens).where(*window)) or 0


async def stored(sql: Statements, command: UUID) -> tuple[StoredReply, ...]:
    """Return a command's calls in the order in which they were last asked."""
    statement = (
        select(replies)
        .where(replies.c.command == command)
        .order_by(replies.c.asked_at, replies.c.purpose, replies.c.ordinal)
    )
    return tuple(map(reply_of, await sql.rows(statement)))


async def costs(sql: Statements, prefix: str, commands: Collection[UUID] | None) -> list[Cost]:
    """Sum the calls that ended by tenant, purpose and model, and by command where some are given."""
    tenant: ColumnElement[str] = literal_column(_TENANT_POSTGRES if sql.postgres else _TENANT_SQLITE)
    if commands is None:
        rows = await sql.rows(_sums(tenant, None, under(replies.c.namespace, prefix)))
    else:
        rows = []
        for some in chunks(commands):
            of = (replies.c.command.in_(some), under(replies.c.namespace, prefix))
            rows += await sql.rows(_sums(tenant, replies.c.command, *of))
    return [cost_of(row) for row in rows]


def _window_start(budget: Budget, now: datetime) -> datetime:
    """Return the start of the window of this moment: windows follow each other from 1970 on."""
    window = timedelta(seconds=budget.window_seconds)
    return _EPOCH + (now - _EPOCH) // window * window


def _sums(tenant: ColumnElement[str], command: Any, *where: ColumnElement[bool]) -> Any:
    groups = [tenant, replies.c.purpose, replies.c.answered_by]
    groups += [] if command is None else [command]
    return (
        select(
            tenant.label("tenant"),
            replies.c.purpose,
            replies.c.answered_by.label("model"),
            (null() if command is None else command).label("command"),
            func.count().label("calls"),
            *(func.sum(replies.c[name]).label(name) for name in _SUMMED),
        )
        .where(replies.c.ended_at.is_not(None), *where)
        .group_by(*groups)
        .order_by(*groups)
    )


def _is_of(call: Call) -> ColumnElement[bool]:
    return and_(
        replies.c.command == call.command,
        replies.c.purpose == call.purpose,
        replies.c.ordinal == call.ordinal,
        replies.c.digest == call.digest,
    )


def _window(tenant: str, start: datetime) -> tuple[ColumnElement[bool], ...]:
    return spending.c.tenant == tenant, spending.c.window_start == start
