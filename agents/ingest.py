"""`lamina ingest`: send conversation files to the service and wait until every turn has its end."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import UUID

from rich.console import Console

from lamina.agents.cli_common import progress_on
from lamina.query.client import Client, ServiceError
from lamina.query.models import EventState
from lamina.streams.conversations import read_conversation
from lamina.streams.errors import WrongKey
from lamina.streams.namespace import namespace_of
from lamina.streams.records import Turn

BATCH = 100
"""Turns of one request."""

LONGEST_WAIT_SECONDS = 600.0

OF_A_TURN = {413, 422}
"""HTTP statuses that are about the messages of a request, not about the request."""


@dataclass(slots=True)
class Ingested:
    """What became of the files."""

    turns: int = 0
    faults: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    seconds: float = 0.0
    """From the first request to the end of the last turn (with `--no-wait`: to the last acceptance)."""

    @property
    def ok(self) -> bool:
        """Whether everything that the files hold is kept."""
        return not self.faults and not self.failed


async def ingest_files(
    client: Client, files: Sequence[Path], user: str, console: Console, *, wait: bool
) -> Ingested:
    """Send the turns of every file; what cannot be read is printed with its place, and the rest is sent.

    Raises:
        ServiceError: the service refused, or a turn was not done in time.
    """
    try:
        namespace_of("tenant", user)  # one fault of the user's name, rather than one of every turn
    except WrongKey as exc:
        raise ServiceError("the user must not be empty, nor longer than 768 bytes of UTF-8") from exc
    done = Ingested()
    batches: list[list[Turn]] = []
    for file in files:
        batches += _read(file, done, console)
    begun = perf_counter()
    with progress_on(console, transient=True) as progress:
        total = sum(map(len, batches))
        sending = progress.add_task("accepted", total=total)
        accepted: list[tuple[UUID, int]] = []
        for batch in batches:
            accepted += await _send(client, batch, user, done, console)
            progress.advance(sending, len(batch))
        if wait:
            finishing = progress.add_task("remembered", total=done.turns)
            for event, size in accepted:
                state = await client.wait_until_done(event, timeout_seconds=LONGEST_WAIT_SECONDS)
                _note(state, done)
                progress.advance(finishing, size)
    done.seconds = perf_counter() - begun
    return done


async def _send(
    client: Client, batch: Sequence[Turn], user: str, done: Ingested, console: Console
) -> list[tuple[UUID, int]]:
    """Send turns of one session and return the accepting events with their sizes.

    Where the service refuses something about a turn, the others are sent without it.
    """
    try:
        answer = await client.add(
            [_message(turn) for turn in batch],
            user,
            run_id=batch[0].run_id,
            agent_id=batch[0].agent_id,
            metadata=batch[0].metadata,
        )
    except ServiceError as exc:
        if exc.status not in OF_A_TURN:
            raise
        if len(batch) > 1:
            half = len(batch) // 2
            first = await _send(client, batch[:half], user, done, console)
            return first + await _send(client, batch[half:], user, done, console)
        done.faults += 1
        _tell(console, f"{batch[0].content[:60]!r} is refused: {exc}")
        return []
    done.turns += len(batch)
    return [(answer.event_id, len(batch))]


def _read(file: Path, done: Ingested, console: Console) -> Iterator[list[Turn]]:
    try:
        data = file.read_bytes()
    except OSError as exc:
        done.faults += 1
        _tell(console, f"{file}: {exc.strerror}")
        return
    conversation = read_conversation(data)
    for fault in conversation.faults:
        done.faults += 1
        _tell(console, f"{file}, {fault.where}: {fault.reason}")
    for _, run in groupby(conversation.turns, lambda turn: (turn.run_id, turn.agent_id, turn.metadata)):
        turns = list(run)
        yield from (turns[start : start + BATCH] for start in range(0, len(turns), BATCH))


def _tell(console: Console, line: str) -> None:
    """Print a line as it is: a file's name may hold brackets, and a reason must not be broken."""
    console.print(line, style="red", markup=False, highlight=False, soft_wrap=True)


def _message(turn: Turn) -> dict[str, Any]:
    message = {"role": turn.role, "content": turn.content, "message_id": turn.message_id}
    if turn.name is not None:
        message["name"] = turn.name
    if turn.timestamp is not None:
        message["timestamp"] = turn.timestamp.isoformat()
    return message


def _note(state: EventState, done: Ingested) -> None:
    for turn in state.turns:
        done.statuses[turn.status] += 1
        if turn.status == "failed":
            done.failed.append(f"turn {turn.id}: {turn.reason}")
