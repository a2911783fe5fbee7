"""Journal entries as lines of text and as JSON. Pure: the same sentence stands in both."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from lamina.streams.journal import Cost, JournalEntry, StoredReply
from lamina.streams.records import Edit, Unit
from lamina.streams.undo import EditAt

_WIDTH = 160
"""Characters of a unit's text on one line of the terminal; `--json` and the HTML page have all of it."""

_NOUNS = {
    "promote": ("episode", "episodes"),
    "merge": ("merge", "merges"),
    "split": ("split", "splits"),
    "update": ("update", "updates"),
    "abstract": ("abstract", "abstracts"),
}


@dataclass(frozen=True, slots=True)
class Told:
    """An entry, the units that it speaks of as they are now, and what was built on it."""

    entry: JournalEntry
    units: Mapping[UUID, Unit] = field(default_factory=dict)
    costs: tuple[Cost, ...] = ()
    """What its calls cost, by purpose and model."""
    dependents: tuple[EditAt, ...] = ()
    """Later edits that rest on what this command did."""


def mentioned(entry: JournalEntry) -> set[UUID]:
    """Return the ids of the units that the entry's edits name."""
    return {
        key
        for edit in entry.edits
        for key in (*edit.targets, *edit.created, *(unit.id for unit in edit.before))
    }


def summary(told: Told) -> str:
    """Say in one line what a command did, or why it did nothing or not yet."""
    entry = told.entry
    if entry.state in {"issued", "planned"}:
        return "in line"
    if entry.state == "waiting":
        return f"waiting until {moment(entry.not_before)}: {one_line(entry.note or 'no reason recorded')}"
    done = "; ".join(_done(told)) or {"applied": "done", "no_op": "no effect"}.get(entry.state, entry.state)
    if entry.command.kind == "undo":
        done = f"reversed {entry.command.target}"
    note = f" ({one_line(entry.note)})" if entry.note else ""
    undone = " [undone]" if is_undone(entry) else ""
    return done + note + undone


def is_undone(entry: JournalEntry) -> bool:
    """Tell whether every executed edit of the entry was reversed."""
    executed = [edit for edit in entry.edits if edit.outcome == "executed"]
    return bool(executed) and all(edit.undone_by is not None for edit in executed)


def headline(told: Told) -> str:
    """Return one line: id, time, namespace, kind, reason, state, calls and tokens."""
    command = told.entry.command
    words = (str(command.id), moment(command.issued_at), command.namespace, command.kind, command.reason)
    return "  ".join((*words, told.entry.state, _cost(told.costs)))


def explained(told: Told, *, with_replies: bool = False) -> Iterator[str]:
    """Say all that is known of one command.

    Args:
        told: the entry with its history and replies, its units with their evidence, its dependents.
        with_replies: quote the stored replies in full.
    """
    entry = told.entry
    yield headline(told)
    yield f"  {summary(told)}"
    if entry.command.exchanges:
        exchanges = counted(len(entry.command.exchanges), "exchange", "exchanges")
        turns = counted(len(entry.command.evidence), "turn", "turns")
        yield f"  thread {entry.command.thread}, {exchanges}, {turns}"
    if entry.attempts:
        yield f"  put off {entry.attempts} times for replies that could not be used"
    yield "history"
    for step in entry.history:
        yield f"  {moment(step.at)}  {step.state:8}  {one_line(step.note or '')}".rstrip()
    if entry.replies:
        yield "calls"
        for reply in entry.replies:
            yield f"  {_call(reply)}"
            if with_replies and reply.completion is not None:
                yield f"    {printable(reply.completion.text)}"
    for number, edit in enumerate(entry.edits):
        yield from _edit(number, edit, told.units)
    if told.dependents:
        yield "later edits that depend on it"
        for later in told.dependents:
            yield f"  {dependent(later)}"


def dependent(at: EditAt) -> str:
    """Name an edit in one line, as `lamina undo` takes it."""
    when = moment(at.entry.command.issued_at)
    return f"{at.entry.command.id}:{at.ordinal}  {when}  {_alone(at.edit)}: {one_line(at.edit.reason)}"


def as_json(told: Told) -> dict[str, Any]:
    """Return everything about an entry as JSON types."""
    entry = told.entry
    return {
        "command": entry.command.model_dump(mode="json"),
        "state": entry.state,
        "summary": summary(told),
        "note": entry.note,
        "not_before": entry.not_before and entry.not_before.isoformat(),
        "attempts": entry.attempts,
        "finished_at": entry.finished_at and entry.finished_at.isoformat(),
        "history": [
            {"state": step.state, "at": step.at.isoformat(), "note": step.note} for step in entry.history
        ],
        "calls": [_call_json(reply) for reply in entry.replies],
        "edits": [edit.model_dump(mode="json") for edit in entry.edits],
        "plan": entry.plan,
        "units": {str(key): unit.model_dump(mode="json") for key, unit in told.units.items()},
        "dependents": [f"{at.entry.command.id}:{at.ordinal}" for at in told.dependents],
    }


def moment(at: datetime | None) -> str:
    """Return a time to the second, in UTC."""
    return "never" if at is None else f"{at:%Y-%m-%dT%H:%M:%SZ}"


def one_line(text: str, width: int = _WIDTH) -> str:
    """Return a text on one line, shortened; what would steer a terminal is spelled out."""
    words = printable(" ".join(text.split()))
    return words if len(words) <= width else words[: width - 1] + "…"


def printable(text: str) -> str:
    """Spell out control characters: a memory may hold any, and this goes to a terminal."""
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode()
        for each in text
    )


def counted(number: int, one: str, many: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many}"


def _done(told: Told) -> Iterator[str]:
    """Say what the edits did, operator by operator."""
    executed = [edit for edit in told.entry.edits if edit.outcome == "executed"]
    if told.entry.command.kind in {"promote", "merge"}:
        for edit in executed:
            made = _made(edit, told.units)
            exchanges = counted(len(told.entry.command.exchanges), "exchange", "exchanges")
            yield f"{made} from {exchanges}" if made else f"{edit.operator} of {exchanges}"
        return
    for operator in ("split", "merge", "update", "abstract"):
        some = [edit for edit in executed if edit.operator == operator]
        if len(some) == 1:
            yield _alone(some[0])
        elif some:
            yield f"{counted(len(some), *_NOUNS[operator])}{_range(some)}"
    for outcome, word in (("skipped", "skipped"), ("no_op", "without effect")):
        number = sum(edit.outcome == outcome for edit in told.entry.edits)
        if number:
            yield f"{number} {word}"


def _alone(edit: Edit) -> str:
    sure = "" if edit.confidence is None else f" at {edit.confidence:.2f}"
    if edit.operator == "update":
        return f"updated 1, archived {sum(unit.id not in edit.targets[:1] for unit in edit.before)}{sure}"
    words = {"split": "split", "merge": "merged", "abstract": "abstracted"}
    return f"{words.get(edit.operator, edit.operator)} {len(edit.targets)} → {len(edit.created)}{sure}"


def _range(edits: Iterable[Edit]) -> str:
    known = sorted(edit.confidence for edit in edits if edit.confidence is not None)
    return f" at {known[0]:.2f}–{known[-1]:.2f}" if known else ""


def _made(edit: Edit, units: Mapping[UUID, Unit]) -> str:
    """Return "episode v3, 2 facts" of the created units."""
    made = [units[key] for key in edit.created if key in units]
    episodes = [unit for unit in made if unit.kind == "episode"]
    parts = [f"episode v{episodes[0].version}"] if len(episodes) == 1 else []
    kinds = Counter(unit.kind for unit in made if not parts or unit.kind != "episode")
    return ", ".join([*parts, *(counted(number, kind, f"{kind}s") for kind, number in kinds.items())])


def _edit(number: int, edit: Edit, units: Mapping[UUID, Unit]) -> Iterator[str]:
    sure = "" if edit.confidence is None else f", confidence {edit.confidence:.2f}"
    yield f"edit {number}: {edit.operator}, {edit.outcome}{sure}"
    yield f"  why   {one_line(edit.reason)}"
    known = {unit.id: unit for unit in edit.before}
    for key in (*known, *(target for target in edit.targets if target not in known)):
        yield from _unit("from", known.get(key) or units.get(key), key, units)
    for key in edit.created or (edit.targets[:1] if edit.operator == "update" else ()):
        yield from _unit("to", units.get(key), key, units)
    if edit.undone_by is not None:
        yield f"  undone by {edit.undone_by}"


def _unit(word: str, unit: Unit | None, key: UUID, units: Mapping[UUID, Unit]) -> Iterator[str]:
    if unit is None:
        yield f"  {word:5} {key} (no longer in the tables)"
        return
    yield f"  {word:5} {key}  {unit.kind} v{unit.version}  {one_line(unit.text)}"
    if unit.summary and unit.summary != unit.text:
        yield f"          understood as: {one_line(unit.summary)}"
    for turn in unit.evidence:
        if word == "from" and turn in units:
            said = units[turn]
            yield f"          {said.said_at:%Y-%m-%d} {one_line(said.spoken)}"


def _cost(costs: Iterable[Cost]) -> str:
    """Return how many calls were made and what they cost; "no calls" where rules wrote the memory."""
    known = list(costs)
    if not known:
        return "no calls"
    calls, tokens = sum(each.calls for each in known), sum(each.tokens_in + each.tokens_out for each in known)
    return f"{counted(calls, 'call', 'calls')}, {counted(tokens, 'token', 'tokens')}"


def _call(reply: StoredReply) -> str:
    call, completion = reply.call, reply.completion
    head = f"{call.purpose} {call.ordinal}  prompt v{call.version}  "
    again = f"  asked {reply.asked} times" if reply.asked > 1 else ""
    if completion is None:
        return f"{head}{call.model}  begun {moment(reply.asked_at)} and not ended{again}"
    cost = f"{completion.tokens_in:,} + {completion.tokens_out:,} tokens  {completion.seconds:.1f} s"
    tries = f"  {completion.attempts} attempts" if completion.attempts > 1 else ""
    fault = f"  unusable: {one_line(completion.fault)}" if completion.fault else ""
    return f"{head}{completion.model}  {cost}{tries}{again}{fault}"


def _call_json(reply: StoredReply) -> dict[str, Any]:
    call, completion = reply.call, reply.completion
    done = completion and {
        "text": completion.text,
        "model": completion.model,
        "tokens_in": completion.tokens_in,
        "tokens_out": completion.tokens_out,
        "attempts": completion.attempts,
        "seconds": completion.seconds,
        "fault": completion.fault,
    }
    return {
        "purpose": call.purpose,
        "ordinal": call.ordinal,
        "prompt_version": call.version,
        "model": call.model,
        "asked": reply.asked,
        "asked_at": reply.asked_at.isoformat(),
        "reply": done,
    }
