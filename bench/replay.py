"""Play one conversation into memory, as the pipeline does, in event time.

The steps are those of `lamina.streams.flow`; between batches the clock is set to the time of what was said,
so that idle time is event time, and at the end everything that waits is made due.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from lamina.bench.conversation import Conversation
from lamina.sinks.in_memory import FixedClock
from lamina.streams.facts import replaces
from lamina.streams.flow import carry_out_commands
from lamina.streams.identity import turn_id_from_message
from lamina.streams.namespace import Namespace, namespace_of
from lamina.streams.placement import arrive
from lamina.streams.records import Placement, Role, Turn
from lamina.streams.steps.buffer import issue_idle_buffers
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.remember import ripen

BATCH = 64
"""Turns taken together: the default of `Settings.batch_size`."""
ROUNDS = 12
"""Looks at the end of a conversation for commands that still wait; a model that stays away ends them."""

Take = Callable[[Sequence[Placement]], Awaitable[None]]
"""What is done with one batch of turns, up to its commands."""


def namespace_for(conversation: Conversation) -> Namespace:
    """Return the namespace of a conversation, the same in every mode: so are the ids of its turns."""
    return namespace_of("bench", conversation.id)


def placements_of(conversation: Conversation) -> list[Placement]:
    """Return the turns as a door would hand them on, in their order."""
    namespace = namespace_for(conversation)
    return [
        arrive(
            namespace,
            Turn(
                role=_role(turn.speaker),
                content=turn.text,
                name=turn.speaker,
                timestamp=turn.said_at,
                run_id=turn.session,
            ),
            fallback_id=turn_id_from_message(namespace, turn.id),
            received_at=turn.said_at,
        )
        for turn in conversation.turns
    ]


def _role(speaker: str) -> Role:
    """Return the role of a speaker; a chat with an assistant names its speakers by their roles."""
    return "assistant" if speaker == "assistant" else "user"


async def replay(
    placements: Sequence[Placement], take: Take, ports: Ports, clock: FixedClock, told: Callable[[int], None]
) -> None:
    """Take the turns batch by batch, then make everything due that waits.

    Args:
        placements: in order.
        take: what is done with a batch.
        ports: the outside; its clock is `clock`.
        clock: set to the time of each batch's last turn.
        told: the number of turns of each batch that was taken.
    """
    for start in range(0, len(placements), BATCH):
        batch = placements[start : start + BATCH]
        clock.set(max(clock.now(), batch[-1].said_at))
        await take(batch)
        await carry_out_commands(ports, replaces)
        told(len(batch))
    await _settle(ports, clock)


async def _settle(ports: Ports, clock: FixedClock) -> None:
    """Make waiting merges and the topology buffer due, and carry out what that leads to."""
    settings = ports.settings
    idle = timedelta(seconds=max(settings.merge_wait_seconds, settings.topology_idle_seconds) + 1)
    for _ in range(ROUNDS):
        clock.advance(idle)
        issued = await ripen(ports)
        await carry_out_commands(ports, replaces)
        issued += await issue_idle_buffers(clock.now(), ports)
        await carry_out_commands(ports, replaces)
        tally = await ports.tables.tally()
        if not issued and not tally.open_commands:
            return
