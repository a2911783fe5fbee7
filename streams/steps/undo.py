"""undo: take back what a command did, in one transaction with the journal's record of it (ours)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lamina.streams.identity import undo_id
from lamina.streams.journal import JournalEntry
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Tables, Transaction
from lamina.streams.records import Command
from lamina.streams.settings import Settings
from lamina.streams.topology.bank import Limits
from lamina.streams.undo import (
    EditAt,
    Refused,
    Reversal,
    Standing,
    dependents,
    reverse,
    to_reverse,
    touched,
)


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo reversed, or would reverse."""

    edits: tuple[EditAt, ...] = ()
    """Newest first; none where everything asked for was undone already."""
    reversal: Reversal | None = None

    @property
    def already(self) -> bool:
        """Tell whether there was nothing left to do."""
        return self.reversal is None


async def undo(
    namespace: Namespace,
    command: UUID,
    tables: Tables,
    settings: Settings,
    *,
    edit: int | None = None,
    cascade: bool = False,
    dry_run: bool = False,
    now: datetime,
) -> Undone | Refused:
    """Reverse what a command did, under the namespace's lock; units that change are marked for the index.

    A worker in flight in the namespace loses its lane: its command stays as it was and is carried out again
    on what the undo left, with the replies that are stored. Undoing again changes nothing.

    Args:
        namespace: of the command.
        command: an applied `merge` or `topology` command.
        tables: where it is recorded.
        settings: the degree caps of links that come back.
        edit: one of its edits, from 0; None for all.
        cascade: reverse later edits that depend on it, too.
        dry_run: say what would be done and write nothing.
        now: the time of the undo.

    Raises:
        TablesUnavailable: nothing was written.
    """
    async with tables.transaction([namespace]) as tx:
        entry = await tx.entry(command)
        if entry is None or entry.command.namespace != namespace:
            return Refused(f"{namespace} has no command {command}")
        if entry.state != "applied":
            return Refused(f"it is {entry.state}: it has changed nothing")
        if _undone_already(entry, edit):
            return Undone()
        later = await tx.entries_after(namespace, entry.ordinal)
        chosen = to_reverse(entry, edit, later, cascade=cascade)
        if isinstance(chosen, Refused):
            return chosen
        this = undo_id(command, edit)
        limits = Limits(semantic=settings.semantic_links, sibling=settings.sibling_links)
        reversal = reverse(chosen, await _standing(namespace, chosen, tx, tables), this, limits)
        if isinstance(reversal, Refused):
            return reversal
        if not dry_run:
            order = Command(
                id=this,
                namespace=namespace,
                kind="undo",
                target=command,
                reason="operator",
                position=await tx.position(namespace),
                issued_at=now,
            )
            await _write(order, reversal, tx, now)
    return Undone(chosen, reversal)


async def dependents_of(entry: JournalEntry, tables: Tables) -> tuple[EditAt, ...]:
    """Return the later edits that rest on what a command did and was not undone, oldest first."""
    standing = [
        EditAt(entry, place)
        for place, edit in enumerate(entry.edits)
        if edit.outcome == "executed" and edit.undone_by is None
    ]
    if not standing:
        return ()
    namespace = entry.command.namespace
    async with tables.transaction([namespace]) as tx:
        return dependents(standing, await tx.entries_after(namespace, entry.ordinal))


def _undone_already(entry: JournalEntry, ordinal: int | None) -> bool:
    """Tell whether all of the asked for edits that were executed have been reversed, and there were some."""
    asked = [edit for place, edit in enumerate(entry.edits) if ordinal in {None, place}]
    executed = [edit for edit in asked if edit.outcome == "executed"]
    return bool(executed) and all(edit.undone_by is not None for edit in executed)


async def _standing(
    namespace: Namespace, chosen: Sequence[EditAt], tx: Transaction, tables: Tables
) -> Standing:
    """Read the rows that the edits touch. The lock holds them still, so a reader beside it sees the same."""
    keys = touched(chosen)
    threads = {thread.id: thread for thread in await tx.threads_of(namespace, keys)}
    for key in {key for at in chosen for key in at.edit.heads} - threads.keys():
        thread = await tables.thread(namespace, key)
        if thread is not None:
            threads[key] = thread
    return Standing(
        units=await tx.units(keys),
        links=await tables.links_from(namespace, keys),
        threads=list(threads.values()),
    )


async def _write(order: Command, reversal: Reversal, tx: Transaction, now: datetime) -> None:
    await tx.update_units(reversal.units)
    await tx.delete_links(reversal.removed)
    await tx.insert_links(reversal.added)
    if reversal.threads:
        await tx.save_recurrence(order.namespace, (), reversal.threads)
    await tx.record_changes(reversal.changes, now)
    for command, edits in reversal.undone.items():
        await tx.record_edits(command, edits)
    await tx.record_undo(order, reversal.edits, now)
