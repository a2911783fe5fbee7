"""The part of the tables that moves commands along, keeps the model's replies, and shows the journal."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from lamina.sinks import journal, journal_calls, journal_entries, journal_lanes
from lamina.sinks.database import Opened
from lamina.streams.journal import Budget, Call, Cost, JournalEntry, StoredReply
from lamina.streams.llm import Completion
from lamina.streams.ports import Claim
from lamina.streams.records import Command, CommandState


class JournalTables(Opened):
    """Commands, lanes and calls."""

    async def free_lanes(self) -> None:
        """Free every lane, for a process that knows itself to be the only one: leases of a killed one end."""
        async with self._database.writing() as sql:
            await journal_lanes.free_all(sql)

    async def reissue_commands(self) -> int:
        """Write commands that never reached intake to the outbox again; return how many."""
        async with self._database.writing() as sql:
            return await journal.reissue(sql)

    async def admit_commands(self, commands: Sequence[Command]) -> None:
        """Record commands that came by the topic as `planned`; those beyond `issued` stay as they are."""
        async with self._database.writing() as sql:
            await journal_lanes.lock_namespaces(sql, sorted({command.namespace for command in commands}))
            await journal.admit(sql, commands)

    async def claim(self, owner: str, now: datetime, lease_seconds: float) -> Claim | None:
        """Take the oldest open command of a namespace whose lane is free, and that lane with it.

        Only one that is planned, or waiting and due, is taken: while the oldest is not, its namespace waits.
        """
        async with self._database.reading() as sql:  # an idle worker's question takes no lock
            candidates = await journal_lanes.candidates(sql, now)
        for namespace in candidates:
            async with self._database.writing() as sql:
                claim = await journal_lanes.take(sql, namespace, owner, now, lease_seconds)
            if claim is not None:
                return claim
        return None

    async def renew(self, claim: Claim, now: datetime, lease_seconds: float) -> bool:
        """Hold the lane for longer; False when it is no longer this claim's."""
        async with self._database.writing() as sql:
            return await journal_lanes.renew(sql, claim, now, lease_seconds)

    async def release(self, claim: Claim) -> None:
        """Give the lane back; the command stays as it is unless it was finished."""
        async with self._database.writing() as sql:
            await journal_lanes.free(sql, claim)

    async def put_off(
        self, claim: Claim, not_before: datetime, note: str, now: datetime, *, attempt: bool = False
    ) -> int:
        """Set a claimed command to `waiting` and free its lane; return its attempts.

        Nothing is written when the lane is lost. History gets a row when the state or the note changes.
        """
        async with self._database.writing() as sql:
            return await journal.put_off(sql, claim, not_before, note, now, attempt=attempt)

    async def begin_call(self, call: Call, budget: Budget | None, now: datetime) -> StoredReply:
        """Record that a call is about to be made, holding its estimate of the tenant's budget.

        A call that has ended is returned with its completion, and nothing is recorded. One that was begun
        and never ended is begun again; its estimate is held already, unless that was in an earlier window.
        The first call of a window passes whatever its estimate: a budget smaller than one call must not
        block for ever. Without a budget nothing is held.

        Raises:
            BudgetSpent: the tenant has spent the window's tokens; nothing was recorded.
        """
        async with self._database.writing() as sql:
            return await journal_calls.begin(sql, call, budget, now)

    async def end_call(self, call: Call, completion: Completion, now: datetime) -> None:
        """Store a reply and settle its estimate to what it cost, in the window that holds it.

        A second reply to the same call is dropped: the first may have been used.
        """
        async with self._database.writing() as sql:
            await journal_calls.end(sql, call, completion, now)

    async def withdraw_call(self, call: Call, paid: int) -> None:
        """Take back that a call was begun: it certainly got no reply.

        Its estimate is given back, but for the tokens `paid` by an attempt before the one that failed.
        """
        async with self._database.writing() as sql:
            await journal_calls.withdraw(sql, call, paid)

    async def hold_tokens(self, tenant: str, estimate: int, budget: Budget, now: datetime) -> datetime:
        """Hold tokens of the tenant's budget for a call that leaves no reply; return the window's start.

        The first call of a window passes whatever its estimate, as with `begin_call`.

        Raises:
            BudgetSpent: the tenant has spent the window's tokens; nothing was held.
        """
        async with self._database.writing() as sql:
            return await journal_calls.hold(sql, tenant, estimate, budget, now)

    async def settle_tokens(self, tenant: str, held_in: datetime, estimate: int, paid: int) -> None:
        """Replace what was held in a window by what was paid; once for each `hold_tokens`."""
        async with self._database.writing() as sql:
            await journal_calls.settle(sql, tenant, held_in, estimate, paid)

    async def spent(self, tenant: str, budget: Budget, now: datetime) -> int:
        """Return the tenant's tokens of this window, held ones included."""
        async with self._database.reading() as sql:
            return await journal_calls.spent(sql, tenant, budget, now)

    async def costs(self, prefix: str = "", commands: Collection[UUID] | None = None) -> list[Cost]:
        """Sum the stored replies by tenant, purpose and model, and by command where some are given."""
        async with self._database.reading() as sql:
            return await journal_calls.costs(sql, prefix, commands)

    async def journal(
        self,
        prefix: str = "",
        *,
        states: Collection[CommandState] = (),
        before: int | None = None,
        limit: int = 100,
    ) -> list[JournalEntry]:
        """Return entries, newest first, without history and replies; `before` an ordinal pages on."""
        async with self._database.reading() as sql:
            return await journal_entries.newest(sql, prefix, states, before, limit)

    async def journal_entry(self, command: UUID) -> JournalEntry | None:
        """Return one entry with its history and replies."""
        async with self._database.reading() as sql:
            return await journal_entries.whole_entry(sql, command)
