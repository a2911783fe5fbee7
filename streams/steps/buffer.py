"""The topology buffer's trigger: issue a command for what waits, in the transaction that made it due."""

from datetime import datetime

from lamina.streams.buffer import Due, due, topology_command
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Transaction
from lamina.streams.records import Command
from lamina.streams.settings import Settings
from lamina.streams.steps.ports import Ports


async def issue_due(
    namespace: Namespace, tx: Transaction, settings: Settings, now: datetime
) -> Command | None:
    """Issue a topology command where enough units wait or enough sessions began, and claim its units with it.

    Call it under the namespace's lock after `tx.push_buffer` or `tx.count_sessions`. Returns the command, or
    None where nothing is due or topology is off.
    """
    if not settings.topology:
        return None
    rows = await tx.buffer(namespace)
    reason = due(len(rows), await tx.count_sessions(namespace, 0), settings)
    return await _issue(namespace, tx, reason, now) if reason else None


async def issue_idle_buffers(pushed_before: datetime, ports: Ports, *, limit: int = 64) -> list[Command]:
    """Issue the topology commands of namespaces whose buffer grew last before the given time."""
    if not ports.settings.topology:
        return []
    issued: list[Command] = []
    for namespace in await ports.tables.idle_buffers(pushed_before, limit):
        async with ports.tables.transaction([namespace]) as tx:
            rows = await tx.buffer(namespace)
            # Between the look and the lock it may have been claimed, or have grown again.
            if rows and max(row.pushed_at for row in rows) < pushed_before:
                issued.append(await _issue(namespace, tx, "buffer_idle", ports.clock.now()))
    return issued


async def _issue(namespace: Namespace, tx: Transaction, reason: Due, now: datetime) -> Command:
    rows = await tx.buffer(namespace)
    command = topology_command(namespace, rows, reason, position=await tx.position(namespace), now=now)
    await tx.claim_buffer(command.units, command.id)
    await tx.issue_commands([command])
    await tx.count_sessions(namespace, 0, reset=True)
    return command
