"""Counts over the tables, from indexes alone: cheap enough to be asked for every second."""

from typing import Any, get_args

from sqlalchemy import ColumnElement, Table, and_, func, select

from lamina.sinks.database import Statements
from lamina.sinks.schema import (
    IS_DIRTY,
    IS_PENDING,
    IS_TURN,
    IS_UNFINISHED,
    IS_WAITING,
    buffer,
    one_of,
    outbox,
    recurrence,
    units,
)
from lamina.sinks.schema_journal import commands
from lamina.sinks.tables_ranges import under
from lamina.streams.ports import Tally
from lamina.streams.records import CommandState, Status

_DERIVED = ("episode", "fact", "abstract")
_STATES: tuple[str, ...] = get_args(CommandState)


async def tally(sql: Statements, prefix: str) -> Tally:
    """Count; a state that nothing is in counts 0, so that a gauge falls back."""
    # Every status is named, so that `ix_units_tally` is read as ranges, in the order of the groups.
    counted = and_(one_of(units.c.status, *Status), under(units.c.namespace, prefix))

    turns = dict.fromkeys((status.value for status in Status), 0)
    statement = select(units.c.status, func.count()).where(IS_TURN, counted)
    turns |= await _grouped(sql, statement.group_by(units.c.status))

    derived = dict.fromkeys(_DERIVED, 0)
    statement = select(units.c.kind, func.count()).where(
        one_of(units.c.kind, *_DERIVED), units.c.visible, counted
    )
    derived |= await _grouped(sql, statement.group_by(units.c.kind))

    states = dict.fromkeys(_STATES, 0)
    statement = select(commands.c.state, func.count()).where(under(commands.c.namespace, prefix))
    states |= await _grouped(sql, statement.group_by(commands.c.state))

    oldest = select(func.min(units.c.recorded_at)).where(IS_UNFINISHED, under(units.c.namespace, prefix))
    return Tally(
        turns=turns,
        derived=derived,
        commands=states,
        merges_waiting=await _count(sql, recurrence, IS_PENDING, under(recurrence.c.namespace, prefix)),
        buffer_waiting=await _count(sql, buffer, IS_WAITING, under(buffer.c.namespace, prefix)),
        outbox_waiting=await _count(sql, outbox, under(outbox.c.key, prefix)),
        index_waiting=await _count(sql, units, IS_DIRTY, under(units.c.namespace, prefix)),
        oldest_unfinished=await sql.scalar(oldest),
    )


async def _grouped(sql: Statements, statement: Any) -> dict[str, int]:
    return {row[0]: row[1] for row in await sql.rows(statement)}


async def _count(sql: Statements, table: Table, *where: ColumnElement[bool]) -> int:
    return int(await sql.scalar(select(func.count()).select_from(table).where(*where)))
