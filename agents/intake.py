"""intake: from `consolidation` into the journal; executors take it from there."""

from collections.abc import Callable, Sequence
from typing import Any

from lamina.agents.guard import Step
from lamina.streams.codec import decode
from lamina.streams.errors import WrongKey
from lamina.streams.namespace import parse_namespace
from lamina.streams.records import Command
from lamina.streams.steps.ports import Ports


def intake_step(ports: Ports, wake: Callable[[int], None]) -> Step[Command]:
    """Build the step: record commands as planned and wake as many executors."""

    def read(message: Any) -> Command:
        command = decode(Command, message.value)
        if parse_namespace(message.key) != command.namespace:
            raise WrongKey(f"the key is not the command's namespace {command.namespace}")
        return command

    async def handle(batch: Sequence[Command]) -> None:
        await ports.tables.admit_commands(batch)
        wake(len(batch))

    def turn_of(_: Command) -> None:
        return None

    return Step("intake", read, handle, turn_of)
