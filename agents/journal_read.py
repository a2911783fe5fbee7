"""Read the journal out of the tables, beside a running system or without one."""

from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from uuid import UUID

from lamina.agents.folders import folders_of
from lamina.agents.journal_view import Told, mentioned
from lamina.sinks.tables import SqlTables, open_tables
from lamina.streams.errors import Misconfigured
from lamina.streams.journal import JournalEntry
from lamina.streams.namespace import Namespace, namespace_of
from lamina.streams.ports import Tables
from lamina.streams.records import CommandState, Unit
from lamina.streams.settings import Settings
from lamina.streams.steps.undo import dependents_of

_PAGE = 500
"""Entries or namespaces read at once."""

NO_COMMAND = "no command {} is in the journal: `lamina journal` lists them"


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[SqlTables]:
    """Open the tables alone: no store, no broker, no embedder.

    Raises:
        Misconfigured: no database is named and the data folder holds none.
        TablesUnavailable: the database does not answer.
    """
    folders = folders_of(settings)
    if not settings.database and not folders.database_file.exists():
        raise Misconfigured(f"{folders.data} holds no memory yet: name another folder with --data-dir")
    tables = await open_tables(folders.database_url(settings))
    try:
        yield tables
    finally:
        await tables.close()


def scope_of(settings: Settings, tenant: str | None, user: str | None) -> str:
    """Return the prefix of the namespaces meant: all, those of a tenant, or that of a user.

    Raises:
        WrongKey: the tenant or the user cannot be one.
    """
    if user is not None:
        return namespace_of(tenant or settings.tenant, user)
    if tenant is None:
        return ""
    namespace_of(tenant, "user")
    return f"{tenant}/"


async def entries_of(
    tables: Tables, scope: str, states: Collection[CommandState] = (), limit: int | None = None
) -> AsyncIterator[JournalEntry]:
    """Give up to `limit` entries, newest first, page by page."""
    before, left = None, limit
    while left is None or left > 0:
        size = _PAGE if left is None else min(_PAGE, left)
        page = await tables.journal(scope, states=states, before=before, limit=size)
        for entry in page:
            yield entry
        if len(page) < size:
            return
        before, left = page[-1].ordinal, None if left is None else left - len(page)


async def namespaces_of(tables: Tables, scope: str) -> AsyncIterator[Namespace]:
    """Give the namespaces of a scope in order, page by page."""
    after = None
    while page := await tables.namespaces(scope, after=after, limit=_PAGE):
        for namespace in page:
            yield namespace
        after = page[-1]


async def told(tables: Tables, entries: Iterable[JournalEntry]) -> list[Told]:
    """Add to entries the units that they made and what their calls cost."""
    known = list(entries)
    if not known:
        return []
    units = await tables.find({key for entry in known for edit in entry.edits for key in edit.created})
    costs = await tables.costs("", [entry.command.id for entry in known])
    return [
        Told(entry, units, tuple(cost for cost in costs if cost.command == entry.command.id))
        for entry in known
    ]


async def all_of(tables: Tables, command: UUID) -> Told:
    """Return all that is known of one command: its units with their evidence, its calls, its dependents.

    Raises:
        Misconfigured: there is no such command.
    """
    entry = await tables.journal_entry(command)
    if entry is None:
        raise Misconfigured(NO_COMMAND.format(command))
    costs = await tables.costs("", [command])
    later = await dependents_of(entry, tables)
    return Told(entry, await with_evidence(tables, [entry]), tuple(costs), later)


async def namespace_of_command(tables: Tables, command: UUID) -> Namespace:
    """Return the namespace of a command.

    Raises:
        Misconfigured: there is no such command.
    """
    entry = await tables.journal_entry(command)
    if entry is None:
        raise Misconfigured(NO_COMMAND.format(command))
    return entry.command.namespace


async def with_evidence(tables: Tables, entries: Iterable[JournalEntry]) -> dict[UUID, Unit]:
    """Return the units that the entries name and the turns that those rest on."""
    known = list(entries)
    units = await tables.find({key for entry in known for key in mentioned(entry)})
    as_they_were = [unit for entry in known for edit in entry.edits for unit in edit.before]
    rests_on = {turn for unit in (*units.values(), *as_they_were) for turn in unit.evidence}
    return units | await tables.find(rests_on - set(units))
