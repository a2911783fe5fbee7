"""The part of a transaction that writes and reads the journal."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from lamina.sinks import journal, journal_entries
from lamina.sinks.tables_locked import Locked
from lamina.streams.journal import JournalEntry
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Claim
from lamina.streams.records import Command, CommandState, Edit


class CommandTables(Locked):
    """Commands in a transaction."""

    async def issue_commands(self, commands: Sequence[Command]) -> None:
        """Write new commands to the journal (state `issued`) and to the outbox."""
        await journal.issue(self._sql, commands)

    async def finish_command(
        self,
        claim: Claim,
        state: CommandState,
        plan: Mapping[str, Any] | None,
        *,
        edits: Sequence[Edit] = (),
        note: str | None = None,
    ) -> bool:
        """Record the end of a claimed command and free its lane; False, and nothing, when it is lost."""
        return await journal.finish(self._sql, claim, state, plan, edits, note)

    async def entry(self, command: UUID) -> JournalEntry | None:
        """Return a command's journal entry, without its history and replies."""
        return await journal_entries.entry(self._sql, command)

    async def entries_after(self, namespace: Namespace, ordinal: int) -> list[JournalEntry]:
        """Return the namespace's applied commands issued after the given one, in order, without replies."""
        return await journal_entries.applied_after(self._sql, namespace, ordinal)

    async def record_edits(self, command: UUID, edits: Sequence[Edit]) -> None:
        """Rewrite a finished command's edits (to mark those that were undone)."""
        await journal.record_edits(self._sql, command, edits)

    async def record_undo(self, command: Command, edits: Sequence[Edit], at: datetime) -> None:
        """Write an applied `undo` command to the journal and take the lane from whoever works in it.

        One that is in the journal already is left as it is, and the lane with it.
        """
        self._check(command.namespace)
        await journal.record_undo(self._sql, command, edits, at)
