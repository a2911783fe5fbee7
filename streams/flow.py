"""The whole pipeline as a plain loop over ports: the place to start reading.

```
 turns ─▶ gate ─▶ embed ─▶ remember ─▶ commands ─▶ consolidate, edit topology
            │        (store, count, buffer)           │
          gated           tables ─▶ store       tables ─▶ store
```

The Faust agents (`lamina.agents`) call the same four functions, one per topic; a test shows that both give
the same units, links and commands, whatever the batch boundaries. Benchmarks run on this loop.
"""

from collections.abc import Callable, Sequence
from uuid import uuid4

from lamina.streams.codec import decode
from lamina.streams.records import Command, Placement
from lamina.streams.steps.carry_out import carry_out
from lamina.streams.steps.embed import embed
from lamina.streams.steps.gate import gate
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.remember import RecurrenceCache, remember
from lamina.streams.topics import CONSOLIDATION


async def run(
    placements: Sequence[Placement], ports: Ports, replaces: Callable[[str], bool], *, batch_size: int = 64
) -> None:
    """Take turns from arrival to memory, batch by batch, and carry out every command that they lead to."""
    cache = RecurrenceCache(ports.settings.recurrence_cache_exchanges)
    for start in range(0, len(placements), batch_size):
        judged = await gate(placements[start : start + batch_size], ports)
        if judged.forwarded:
            await remember(await embed(judged.forwarded, ports), ports, cache)
        await carry_out_commands(ports, replaces)


async def carry_out_commands(ports: Ports, replaces: Callable[[str], bool]) -> None:
    """Do what the outbox relay, intake and the executors do, until no command can be carried out now."""
    owner = str(uuid4())
    lease = ports.settings.lease_seconds
    while True:
        await _admit_commands(ports)
        claim = await ports.tables.claim(owner, ports.clock.now(), lease)
        if claim is None:
            return
        # It may issue the next command itself: what it writes goes to topology's buffer.
        await carry_out(claim, ports, replaces)


async def _admit_commands(ports: Ports) -> None:
    while rows := await ports.tables.outbox(1000):
        commands = [decode(Command, row.record.value) for row in rows if row.record.topic is CONSOLIDATION]
        await ports.tables.admit_commands(commands)
        await ports.tables.published([row.id for row in rows])
