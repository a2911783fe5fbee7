"""release: end a command without an episode and give its exchanges back: nothing said is lost to it."""

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from lamina.streams.codec import Vector
from lamina.streams.episode_threads import released
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Claim, Transaction
from lamina.streams.records import CommandState, Unit
from lamina.streams.recurrence import Exchange, Thread
from lamina.streams.steps.outcome import Outcome
from lamina.streams.steps.ports import Ports


async def release(claim: Claim, ports: Ports, state: CommandState, note: str) -> Outcome:
    """End a command as `no_op` or `skipped`; its exchanges count again as if they had just been observed.

    A thread that stands for no visible episode is closed and what waits in it released as well: the next
    similar exchange then promotes all of them. A thread with an episode stays, and so does what waits in it.

    Raises:
        TablesUnavailable, EmbedderUnavailable: nothing was written.
    """
    command = claim.command
    async with ports.tables.transaction([command.namespace]) as tx:
        claimed = await tx.exchanges(command.exchanges)
    vectors = await exchange_vectors(command.namespace, claimed, ports)
    async with ports.tables.transaction([command.namespace]) as tx:
        if not await tx.finish_command(claim, state, None, note=note):
            return Outcome("lost")
        thread = command.thread and await ports.tables.thread(command.namespace, command.thread)
        if thread:
            heads = await ports.tables.units(command.namespace, thread.heads)
            stays = any(head.visible for head in heads.values())
            mine = await exchanges_of(claim, thread, tx, waiting=not stays)
            threads = [] if stays else [replace(thread, closed=True)]
            await tx.save_recurrence(command.namespace, released(mine, vectors), threads)
    return Outcome("skipped" if state == "skipped" else "no_op", note)


async def exchanges_of(claim: Claim, thread: Thread, tx: Transaction, *, waiting: bool) -> list[Exchange]:
    """Return the exchanges that the command has claimed, and, if asked, those that wait in its thread."""
    command = claim.command
    claimed = [each for each in await tx.exchanges(command.exchanges) if each.command == command.id]
    if not waiting:
        return claimed
    live = (await tx.recurrence(command.namespace)).exchanges
    return [*claimed, *(each for each in live if each.thread == thread.id)]


async def exchange_vectors(
    namespace: Namespace, exchanges: Iterable[Exchange], ports: Ports
) -> dict[UUID, Vector]:
    """Embed exchanges again exactly as they were embedded first (`lamina.streams.steps.embed`).

    Exchanges with a turn that is gone are left out.

    Raises:
        EmbedderUnavailable: the engine does not answer now.
    """
    wanted = list(exchanges)
    turns = await ports.tables.units(namespace, {key for each in wanted for key in each.turns})
    whole = [each for each in wanted if all(key in turns for key in each.turns)]
    if not whole:
        return {}
    last = {each.id: turns[each.turns[-1]] for each in whole}
    before = await ports.tables.turns_at(
        namespace, {(turn.session, turn.ordinal - 1) for turn in last.values()}
    )
    embedded = await ports.embedder.embed_turns([_pair(turn, before) for turn in last.values()])
    return {
        each.id: embedded.exchange[row] if len(each.turns) > 1 else embedded.turn[row]
        for row, each in enumerate(whole)
    }


def _pair(turn: Unit, before: dict[tuple[str, int], Unit]) -> tuple[str | None, str]:
    previous = before.get((turn.session, turn.ordinal - 1))
    return (previous.spoken if previous else None, turn.spoken)
