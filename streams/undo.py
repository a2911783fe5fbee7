"""Undo of what a command did: pure, from the journal's records and the current rows (ours; All-Mem has none).

Edits only archived units, added units and moved links, and the journal holds each as it was: so an edit is
reversed by bringing back what it archived and archiving what it made. Nothing is deleted here either: what
was undone stays reachable, by a version link from each unit that came back. Two steps: `to_reverse` says
which edits, or why not; `reverse` says which rows, once the caller has read those that `touched` names.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

from lamina.streams.journal import JournalEntry
from lamina.streams.records import Edit, Link, Unit
from lamina.streams.recurrence import Thread
from lamina.streams.topology.bank import Limits, LinkKey, key_of
from lamina.streams.topology.rewiring import beyond_cap


@dataclass(frozen=True, slots=True)
class EditAt:
    """An executed edit by its place in the journal."""

    entry: JournalEntry
    ordinal: int
    """Place among the edits of its command, from 0."""

    @property
    def edit(self) -> Edit:
        """Return the edit itself."""
        return self.entry.edits[self.ordinal]


@dataclass(frozen=True, slots=True)
class Refused:
    """Why nothing is undone."""

    reason: str
    dependents: tuple[EditAt, ...] = ()
    """Later edits that depend on it, oldest first: `cascade` undoes them with it, where that can be."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The rows as they are now: those that `touched` names."""

    units: Mapping[UUID, Unit]
    links: Collection[Link]
    """All links that leave the units."""
    threads: Collection[Thread]
    """Those named by the edits' `heads`, and those that have one of the units as a head."""


@dataclass(frozen=True, slots=True)
class Reversal:
    """The rows that carry an undo out."""

    units: tuple[Unit, ...]
    added: tuple[Link, ...]
    removed: tuple[Link, ...]
    threads: tuple[Thread, ...]
    changes: tuple[tuple[Unit, Literal["updated", "archived"]], ...]
    edits: tuple[Edit, ...]
    """What the undo itself did, for its own entry in the journal."""
    undone: Mapping[UUID, tuple[Edit, ...]]
    """By command: all its edits, those that were reversed now marked with the undo."""


def to_reverse(
    entry: JournalEntry, ordinal: int | None, later: Sequence[JournalEntry], *, cascade: bool = False
) -> tuple[EditAt, ...] | Refused:
    """Choose the edits that an undo reverses, newest first.

    Args:
        entry: the command to undo.
        ordinal: one of its edits, from 0; None for all of them.
        later: the namespace's applied commands issued after it, in order.
        cascade: reverse later edits that depend on it too.

    An edit depends on an earlier one whose created or changed units it targets or changes itself. One that
    merely rests on an archived turn does not: evidence does not change.
    """
    refused = _not_undoable(entry, ordinal)
    if refused is not None:
        return refused
    places = range(len(entry.edits)) if ordinal is None else (ordinal,)
    chosen = [EditAt(entry, place) for place in places if _stands(entry.edits[place])]
    if not chosen:
        return Refused("it did nothing, or was undone already")
    following = dependents(chosen, later)
    stuck = next((at for at in (*chosen, *following) if _nothing_before(at)), None)
    if stuck is not None:
        which = f"{stuck.entry.command.kind} {stuck.entry.command.id}"
        return Refused(f"{which} replaced nothing, so there is nothing to return to: use forget", following)
    if following and not cascade:
        return Refused("later edits depend on it", following)
    return tuple(reversed((*chosen, *following)))


def dependents(chosen: Sequence[EditAt], later: Iterable[JournalEntry]) -> tuple[EditAt, ...]:
    """Return executed edits that depend on the chosen ones of a command, directly or not, oldest first."""
    entry, last = chosen[0].entry, chosen[-1].ordinal
    rest = [EditAt(entry, place) for place in range(last + 1, len(entry.edits))]
    rest += [
        EditAt(each, place)
        for each in later
        if each.command.kind != "undo"
        for place in range(len(each.edits))
    ]
    units = {key for at in chosen for key in _changed(at.edit)}
    found: list[EditAt] = []
    for at in rest:
        if _stands(at.edit) and units & {*at.edit.targets, *_changed(at.edit)}:
            found.append(at)
            units |= _changed(at.edit)
    return tuple(found)


def touched(edits: Iterable[EditAt]) -> set[UUID]:
    """Return the ids of the units that reversing reads: their rows and all links that leave them."""
    found: set[UUID] = set()
    for edit in (at.edit for at in edits):
        found |= _changed(edit)
        found |= {end for link in edit.removed for end in (link.source, link.target)}
        found |= {link.source for link in edit.added}
    return found


def reverse(
    edits: Sequence[EditAt], standing: Standing, undo: UUID, limits: Limits | None = None
) -> Reversal | Refused:
    """Reverse edits in the given order: newest first, as `to_reverse` gives them.

    A created unit is archived, whatever its links. A unit that was archived or refreshed gets its visibility,
    text, summary, keywords and validity back, and the next version; threads get their heads back. Links that
    the edit added go, except evidence and those version links that alone lead to what stays archived; links
    that it removed come back, within the out-degree caps. Each unit that comes back gets a version link to
    each that the edit created.

    Args:
        edits: to reverse.
        standing: the rows of all `touched` units under the namespace's lock; a unit that is missing was
            forgotten and stays so.
        undo: id of the undo command.
        limits: the out-degree caps; None: the defaults.
    """
    work = _Work(standing, limits or Limits())
    for at in edits:
        if at.edit.created and not any(unit.visible and unit.id in work.units for unit in at.edit.before):
            return Refused("what it replaced has been forgotten, so there is nothing to return to")
    records = tuple(work.reverse(at.edit) for at in edits)
    units = tuple(unit for key, unit in work.units.items() if unit != standing.units[key])
    old = {key_of(link): link for link in standing.links}
    known = {thread.id: thread for thread in standing.threads}
    return Reversal(
        units=units,
        added=tuple(link for key, link in work.links.items() if key not in old),
        removed=tuple(link for key, link in old.items() if key not in work.links),
        threads=tuple(thread for key, thread in work.threads.items() if thread.heads != known[key].heads),
        changes=tuple((unit, "updated" if unit.visible else "archived") for unit in units),
        edits=records,
        undone=_marked(edits, undo),
    )


@dataclass(slots=True, eq=False)
class _Work:
    """A working copy of the rows."""

    units: dict[UUID, Unit]
    links: dict[LinkKey, Link]
    threads: dict[UUID, Thread]
    limits: Limits

    def __init__(self, standing: Standing, limits: Limits) -> None:
        self.units = dict(standing.units)
        self.links = {key_of(link): link for link in standing.links}
        self.threads = {thread.id: thread for thread in standing.threads}
        self.limits = limits

    def reverse(self, edit: Edit) -> Edit:
        """Reverse one edit and return the record of having done so."""
        units, links, threads = dict(self.units), dict(self.links), dict(self.threads)
        self._bring_back(edit)
        self._relink(edit)
        self._give_heads_back(edit)
        return Edit(
            operator=edit.operator,
            targets=edit.targets,
            outcome="executed",
            reason=f"undone: {edit.reason}",
            before=tuple(units[key] for key in self.units if self.units[key] != units[key]),
            added=tuple(link for key, link in self.links.items() if key not in links),
            removed=tuple(link for key, link in links.items() if key not in self.links),
            heads={key: old.heads for key, old in threads.items() if self.threads[key].heads != old.heads},
        )

    def _bring_back(self, edit: Edit) -> None:
        made = [self.units[key] for key in edit.created if key in self.units]
        newest = max((unit.version for unit in made), default=0)
        for unit in made:
            self.units[unit.id] = unit.model_copy(update={"visible": False})
        for old in edit.before:
            if old.id in self.units:
                now = self.units[old.id]
                self.units[old.id] = now.model_copy(
                    update={
                        "visible": old.visible,
                        "text": old.text,
                        "summary": old.summary,
                        "keywords": old.keywords,
                        "valid_to": old.valid_to,
                        "version": max(newest, now.version) + 1,
                    }
                )

    def _relink(self, edit: Edit) -> None:
        back = [unit.id for unit in edit.before if unit.visible and unit.id in self.units]
        # What stays archived, and is no ancestor of what came back, stays reachable through its link.
        covered = {*back, *(link.target for link in self._versions() if link.source in back)}
        for link in edit.added:
            if link.type == "version" and link.target not in covered:
                continue
            if link.type != "evidence":
                self.links.pop(key_of(link), None)
        for link in edit.removed:
            if link.source in self.units and link.target in self.units:
                self.links.setdefault(key_of(link), link)
        self._prune({link.source for link in edit.removed})
        for source in back:
            for target in edit.created:
                if target in self.units:
                    namespace = self.units[source].namespace
                    link = Link(namespace=namespace, source=source, target=target, type="version")
                    self.links.setdefault(key_of(link), link)

    def _versions(self) -> list[Link]:
        return [link for link in self.links.values() if link.type == "version"]

    def _prune(self, sources: Collection[UUID]) -> None:
        for source in sources:
            for kind, cap in (("semantic", self.limits.semantic), ("sibling", self.limits.sibling)):
                leaving = [link for link in self.links.values() if (link.source, link.type) == (source, kind)]
                for link in beyond_cap(leaving, cap, self.units):
                    del self.links[key_of(link)]

    def _give_heads_back(self, edit: Edit) -> None:
        for key, thread in self.threads.items():
            heads = edit.heads.get(key)
            if heads is None:
                heads = tuple(head for head in thread.heads if head not in edit.created)
            self.threads[key] = replace(thread, heads=heads)


def _not_undoable(entry: JournalEntry, ordinal: int | None) -> Refused | None:
    if entry.command.kind == "undo":
        return Refused("an undo is not undone: what it archived is linked from what it brought back")
    if ordinal is not None and not 0 <= ordinal < len(entry.edits):
        return Refused(f"it has {len(entry.edits)} edit(s), counted from 0")
    return None


def _stands(edit: Edit) -> bool:
    """Tell whether an edit was executed and not undone since."""
    return edit.outcome == "executed" and edit.undone_by is None


def _changed(edit: Edit) -> set[UUID]:
    return {*edit.created, *(unit.id for unit in edit.before)}


def _nothing_before(at: EditAt) -> bool:
    """Tell whether an edit replaced nothing that could come back: a promotion, a first episode."""
    made = bool(at.edit.created) and not any(unit.visible for unit in at.edit.before)
    return made or at.entry.command.kind == "promote"


def _marked(edits: Iterable[EditAt], undo: UUID) -> dict[UUID, tuple[Edit, ...]]:
    """Return, by command, its edits with those that were reversed marked as undone."""
    marked: dict[UUID, list[Edit]] = {}
    for at in edits:
        rows = marked.setdefault(at.entry.command.id, list(at.entry.edits))
        rows[at.ordinal] = at.edit.model_copy(update={"undone_by": undo})
    return {command: tuple(rows) for command, rows in marked.items()}
