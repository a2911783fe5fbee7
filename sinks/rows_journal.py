"""The journal's records to rows and back."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from lamina.streams.codec import decode, encode
from lamina.streams.journal import Call, Cost, JournalEntry, StoredReply, Transition
from lamina.streams.llm import Completion
from lamina.streams.records import Command, Edit


def command_row(command: Command, state: str) -> dict[str, Any]:
    """Return a command's row in the journal."""
    return {
        "id": command.id,
        "namespace": command.namespace,
        "state": state,
        "payload": encode(command),
        "issued_at": command.issued_at,
    }


def edits_json(edits: Sequence[Edit]) -> list[dict[str, Any]]:
    """Return edits as `commands.edits` holds them."""
    return [edit.model_dump(mode="json") for edit in edits]


def entry_of(row: Row[Any]) -> JournalEntry:
    """Return the journal entry of a row of `commands`, without history and replies."""
    return JournalEntry(
        command=decode(Command, row.payload),
        ordinal=row.ordinal,
        state=row.state,
        note=row.note,
        not_before=row.not_before,
        attempts=row.attempts,
        plan=row.plan,
        edits=tuple(Edit.model_validate(edit) for edit in row.edits or ()),
        finished_at=row.finished_at,
    )


def transition_of(row: Row[Any]) -> Transition:
    """Return the transition of a row of `transitions`."""
    return Transition(row.state, row.at, row.note)


def call_row(call: Call) -> dict[str, Any]:
    """Return what a call sets in its row of `replies`."""
    return {
        "command": call.command,
        "purpose": call.purpose,
        "ordinal": call.ordinal,
        "digest": call.digest,
        "namespace": call.namespace,
        "version": call.version,
        "model": call.model,
        "estimate": call.estimate,
    }


def completion_row(completion: Completion) -> dict[str, Any]:
    """Return what a completion sets in its call's row of `replies`."""
    return {
        "text": completion.text,
        "answered_by": completion.model,
        "tokens_in": completion.tokens_in,
        "tokens_out": completion.tokens_out,
        "attempts": completion.attempts,
        "seconds": completion.seconds,
        "fault": completion.fault,
    }


def reply_of(row: Row[Any]) -> StoredReply:
    """Return the call of a row of `replies`, and its completion when it has ended."""
    call = Call(
        command=row.command,
        namespace=row.namespace,
        purpose=row.purpose,
        ordinal=row.ordinal,
        version=row.version,
        model=row.model,
        estimate=row.estimate,
        digest=row.digest,
    )
    return StoredReply(call, row.asked, row.asked_at, None if row.ended_at is None else _completion_of(row))


def cost_of(row: Row[Any]) -> Cost:
    """Return the cost of a row of sums over `replies`."""
    whole = {name: int(getattr(row, name)) for name in ("calls", "attempts", "tokens_in", "tokens_out")}
    return Cost(**row._asdict() | whole)


def _completion_of(row: Row[Any]) -> Completion:
    return Completion(
        text=row.text,
        model=row.answered_by,
        tokens_in=row.tokens_in,
        tokens_out=row.tokens_out,
        attempts=row.attempts,
        seconds=row.seconds,
        fault=row.fault,
    )
