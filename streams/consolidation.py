"""Apply an engine's plan: new versions, new facts, links; nothing said is ever touched (promise 3).

Pure: a plan and the current rows in, the rows to write out. An episode that continues a thread is a new
version linked to every ancestor, which is archived (RecMem eq. 6, non-destructively as All-Mem §3.3). A
fact supersedes only the same subject and relation, and only where the relation holds one value at a time;
one that arrives late never supersedes. What becomes of the thread stands in
`lamina.streams.episode_threads`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

from lamina.streams.codec import Vector
from lamina.streams.episode_threads import headed, released
from lamina.streams.identity import derived_id
from lamina.streams.records import (
    Command,
    Edit,
    EpisodeDraft,
    FactDraft,
    Link,
    LinkType,
    Operator,
    Plan,
    Status,
    Unit,
)
from lamina.streams.recurrence import Exchange, Thread
from lamina.streams.topology.lineage import ancestors

ChangeType = Literal["created", "updated", "archived"]


@dataclass(slots=True)
class Applied:
    """The rows that carry a plan out."""

    inserted: list[Unit] = field(default_factory=list)
    archived: list[Unit] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    changes: list[tuple[Unit, ChangeType]] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    """Released: the engine found no episode in their thread."""
    resolved: list[Unit] = field(default_factory=list)
    """Turns with their resolved form as `summary`; nothing else of them differs."""


@dataclass(frozen=True, slots=True)
class Current:
    """The rows a plan is applied to."""

    command: Command
    thread: Thread
    heads: tuple[Unit, ...]
    """Visible episodes of the thread."""
    facts: tuple[Unit, ...]
    """Visible facts with a subject and relation that the plan speaks of."""
    turns: Mapping[UUID, Unit]
    """The turns of the command, of the plan's evidence, and those that it resolves."""
    versions: tuple[Link, ...] = ()
    """Version links that leave the heads and facts, and those that leave their ancestors."""
    vectors: tuple[Vector, ...] = ()
    """Of the plan's episodes, unit length; needed where there are several."""
    exchanges: tuple[Exchange, ...] = ()
    """Of the command, and those that wait in its thread."""
    embedded: Mapping[UUID, Vector] = field(default_factory=dict)
    """Vectors of the command's exchanges, computed again; needed where the plan has no episode."""


def apply(plan: Plan, current: Current, *, replaces: Callable[[str], bool], now: datetime) -> Applied:
    """Turn a plan into rows.

    Args:
        plan: as recorded; the place of a draft in it decides its id, so applying twice changes nothing.
        current: the rows under the namespace's lock.
        replaces: whether a relation holds one value at a time (a newer object ends the older one).
        now: `recorded_at` of the new rows.
    """
    applied = Applied()
    ordinal = 0
    older = ancestors([head.id for head in current.heads], current.versions)
    for episode in plan.episodes:
        unit = _episode(episode, plan.engine, current, ordinal, now)
        ordinal += 1
        _add(applied, unit, "updated" if current.heads else "created")
        applied.links += [_link(unit, ancestor, "version") for ancestor in older]
    _lead(applied, current)
    known = list(current.facts)
    for fact in plan.facts:
        unit = _fact(fact, plan.engine, current, ordinal, now)
        ordinal += 1
        single = replaces(fact.relation) if fact.single is None else fact.single
        _settle(applied, unit, known, current.versions, single=single)
    applied.changes += [(unit, "archived") for unit in applied.archived]
    applied.resolved = [
        turn.model_copy(update={"summary": each.text})
        for each in plan.resolved
        if (turn := current.turns.get(each.turn)) is not None and each.text not in {turn.text, turn.summary}
    ]
    return applied


def edit_of(applied: Applied, current: Current) -> Edit | None:
    """Return what the journal records of it and undo reverses; None where nothing was written.

    Resolved turns stand outside: what a turn refers to does not change with what was made of it.
    """
    if not applied.inserted:
        return None
    command = current.command
    operator: Operator = "merge" if command.kind == "merge" else "promote"
    gone = {unit.id for unit in applied.archived}
    moved = any(thread.id == current.thread.id for thread in applied.threads)
    return Edit(
        operator=operator,
        targets=tuple(head.id for head in current.heads),
        outcome="executed",
        reason=f"{command.reason}: {len(command.exchanges)} exchanges",
        # One that was ended within the plan, or came late, is created too: undo keeps it reachable.
        created=tuple(unit.id for unit in applied.inserted),
        before=tuple(unit for unit in (*current.heads, *current.facts) if unit.id in gone),
        added=tuple(applied.links),
        heads={current.thread.id: current.thread.heads} if moved else {},
    )


def _lead(applied: Applied, current: Current) -> None:
    """Settle what becomes of the thread: it has new heads, is closed, or stays as it is."""
    command = current.command
    if applied.inserted:
        applied.archived += [head.model_copy(update={"visible": False}) for head in current.heads]
        own = [each for each in current.exchanges if each.command == command.id]
        applied.threads = headed(current.thread, command, applied.inserted, current.vectors, own)
    elif not current.heads:
        applied.threads = [replace(current.thread, closed=True)]
        applied.exchanges = released(current.exchanges, current.embedded)


def _settle(
    applied: Applied, fact: Unit, known: list[Unit], versions: Sequence[Link], *, single: bool
) -> None:
    """Add a fact beside the known ones: drop a repetition, end what it replaces, never the other way."""
    same = [each for each in known if (each.subject, each.relation) == (fact.subject, fact.relation)]
    if any((each.object or "").casefold() == (fact.object or "").casefold() for each in same):
        return
    newer = [each for each in same if single and _since(each) > _since(fact)]
    if newer:
        successor = min(newer, key=lambda each: (_since(each), str(each.id)))
        late = fact.model_copy(update={"visible": False, "valid_to": _since(successor)})
        _add(applied, late, "archived")
        applied.links.append(_link(successor, late.id, "version"))
        return
    _add(applied, fact, "created")
    for old in same if single else ():
        ended = old.model_copy(update={"visible": False, "valid_to": _since(fact)})
        known.remove(old)
        if old in applied.inserted:
            applied.inserted[applied.inserted.index(old)] = ended
        else:
            applied.archived.append(ended)
        older = ancestors([old.id], (*versions, *applied.links))
        applied.links += [_link(fact, ancestor, "version") for ancestor in older]
    known.append(fact)


def _since(fact: Unit) -> datetime:
    return fact.valid_from or fact.said_at


def _add(applied: Applied, unit: Unit, change: ChangeType) -> None:
    applied.inserted.append(unit)
    applied.links += [_link(unit, turn, "evidence") for turn in unit.evidence]
    applied.changes.append((unit, change))


def _link(source: Unit, target: UUID, kind: LinkType) -> Link:
    return Link(namespace=source.namespace, source=source.id, target=target, type=kind)


def _episode(draft: EpisodeDraft, engine: str, current: Current, ordinal: int, now: datetime) -> Unit:
    turns = [current.turns[key] for key in draft.evidence]
    return Unit(
        **_common(draft, engine, current.command, ordinal, now),
        kind="episode",
        session=turns[-1].session,
        said_at=max(turn.said_at for turn in turns),
        keywords=draft.keywords,
        entities=draft.entities,
        topic=draft.topic,
        version=1 + max((head.version for head in current.heads), default=0),
    )


def _fact(draft: FactDraft, engine: str, current: Current, ordinal: int, now: datetime) -> Unit:
    turns = [current.turns[key] for key in draft.evidence]
    return Unit(
        **_common(draft, engine, current.command, ordinal, now),
        kind="fact",
        session=turns[-1].session,
        speaker=turns[-1].speaker,
        said_at=max(turn.said_at for turn in turns),
        subject=draft.subject,
        relation=draft.relation,
        object=draft.object,
        valid_from=draft.valid_from,
    )


def _common(
    draft: EpisodeDraft | FactDraft, engine: str, command: Command, ordinal: int, now: datetime
) -> dict[str, object]:
    return {
        "id": derived_id(command.namespace, command.id, ordinal),
        "namespace": command.namespace,
        "ordinal": ordinal,
        "text": draft.text,
        "evidence": draft.evidence,
        "occurred_from": draft.occurred_from,
        "occurred_to": draft.occurred_to,
        "recorded_at": now,
        "engine": engine,
        "status": Status.CONSOLIDATED,
    }


def pairs_of(plan: Plan) -> set[tuple[str, str]]:
    """Return the (subject, relation) pairs that a plan speaks of."""
    return {(fact.subject, fact.relation) for fact in plan.facts}


def evidence_of(plan: Plan, heads: Sequence[Unit], command: Command) -> list[UUID]:
    """Return every turn id that applying the plan may read, each once."""
    rests = [
        *(head.evidence for head in heads),
        *(draft.evidence for draft in plan.drafts),
        [each.turn for each in plan.resolved],
    ]
    return list(dict.fromkeys(key for keys in (command.evidence, *rests) for key in keys))
