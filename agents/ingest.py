"""`lamina ingest`: send conversation files to the service and wait until every turn has its end."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lamina.query.client import Client
from lamina.query.models import EventState
from lamina.streams.conversations import read_conversation
from lamina.streams.records import Turn

BATCH = 100
"""Turns of one request."""

LONGEST_WAIT_SECONDS = 600.0


@dataclass(slots=True)
class Ingested:
    """What became of the files."""

    turns: int = 0
    faults: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)

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
    done = Ingested()
    batches: list[list[Turn]] = []
    for file in files:
        batches += _read(file, done, console)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        total = sum(map(len, batches))
        sending = progress.add_task("accepted", total=total)
        accepted = []
        for batch in batches:
            answer = await client.add(
                [_message(turn) for turn in batch],
                user,
                run_id=batch[0].run_id,
                agent_id=batch[0].agent_id,
                metadata=batch[0].metadata,
            )
            accepted.append(answer.event_id)
            done.turns += len(batch)
            progress.advance(sending, len(batch))
        if wait:
            finishing = progress.add_task("remembered", total=total)
            for event, batch in zip(accepted, batches, strict=True):
                state = await client.wait_until_done(event, timeout_seconds=LONGEST_WAIT_SECONDS)
                _note(state, done)
                progress.advance(finishing, len(batch))
    return done


def _read(file: Path, done: Ingested, console: Console) -> Iterator[list[Turn]]:
    try:
        data = file.read_bytes()
    except OSError as exc:
        done.faults += 1
        console.print(f"[red]{file}[/]: {exc.strerror}", highlight=False)
        return
    conversation = read_conversation(data)
    for fault in conversation.faults:
        done.faults += 1
        console.print(f"[red]{file}[/], {fault.where}: ", end="", highlight=False)
        console.print(fault.reason, markup=False, highlight=False)
    for _, run in groupby(conversation.turns, lambda turn: (turn.run_id, turn.agent_id, turn.metadata)):
        turns = list(run)
        yield from (turns[start : start + BATCH] for start in range(0, len(turns), BATCH))


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
