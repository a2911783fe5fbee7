"""The journal as it is read: whole entries, by id or newest first."""

from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

from sqlalchemy import select

from lamina.sinks import journal_calls
from lamina.sinks.database import Statements
from lamina.sinks.rows_journal import entry_of, transition_of
from lamina.sinks.schema_journal import commands, transitions
from lamina.sinks.tables_ranges import under
from lamina.streams.journal import JournalEntry
from lamina.streams.namespace import Namespace
from lamina.streams.records import CommandState


async def entry(sql: Statements, command: UUID) -> JournalEntry | None:
    """Return a command's entry, without history and replies."""
    rows = await sql.rows(select(commands).where(commands.c.id == command))
    return entry_of(rows[0]) if rows else None


async def whole_entry(sql: Statements, command: UUID) -> JournalEntry | None:
    """Return a command's entry with history and replies."""
    found = await entry(sql, command)
    if found is None:
        return None
    changes = select(transitions).where(transitions.c.command == command).order_by(transitions.c.ordinal)
    history = tuple(map(transition_of, await sql.rows(changes)))
    return replace(found, history=history, replies=await journal_calls.stored(sql, command))


async def applied_after(sql: Statements, namespace: Namespace, ordinal: int) -> list[JournalEntry]:
    """Return the namespace's applied commands issued after the given one, in that order."""
    statement = (
        select(commands)
        .where(commands.c.namespace == namespace, commands.c.state == "applied", commands.c.ordinal > ordinal)
        .order_by(commands.c.ordinal)
    )
    return [entry_of(row) for row in await sql.rows(statement)]


async def newest(
    sql: Statements, prefix: str, states: Collection[CommandState], before: int | None, limit: int
) -> list[JournalEntry]:
    """Return a page of entries, newest first, without history and replies."""
    chosen = select(commands.c.ordinal).order_by(commands.c.ordinal.desc()).limit(limit)
    if prefix:  # without one, the newest stand at the end of the table
        chosen = chosen.where(under(commands.c.namespace, prefix))
    if states:
        chosen = chosen.where(commands.c.state.in_(sorted(states)))
    if before is not None:
        chosen = chosen.where(commands.c.ordinal < before)
    # The page is found in the index alone; whole rows, with their plans, are read for it only.
    page = select(commands).where(commands.c.ordinal.in_(chosen)).order_by(commands.c.ordinal.desc())
    return [entry_of(row) for row in await sql.rows(page)]
