"""The bank: a working copy of the units and links that one topology run may touch.

Edits change the copy only. `rows` then says what differs from what was read, so that a step writes one
transaction; `edits` says it edit by edit, for the journal and for undo.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

import numpy as np

from lamina.streams.codec import Vector
from lamina.streams.identity import derived_id
from lamina.streams.records import Command, Edit, Link, LinkType, Unit
from lamina.streams.recurrence import Thread
from lamina.streams.vector_table import DECIMALS, unit_length

LinkKey = tuple[UUID, UUID, LinkType]
"""Source, target and type: what makes a link one."""


def key_of(link: Link) -> LinkKey:
    """Return what identifies a link."""
    return (link.source, link.target, link.type)


@dataclass(frozen=True, slots=True)
class Limits:
    """What edits are held to; the defaults are those of `lamina.streams.settings`."""

    semantic: int = 8
    """Out-degree cap of semantic links (All-Mem A.4)."""
    sibling: int = 8
    """Out-degree cap of sibling links (All-Mem A.4)."""
    redundancy: float = 0.7
    """See `lamina.streams.topology.editing.redundancy`."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The difference between the bank and what was read: what a transaction writes."""

    inserted: tuple[Unit, ...]
    updated: tuple[Unit, ...]
    added: tuple[Link, ...]
    removed: tuple[Link, ...]
    threads: tuple[Thread, ...]
    changes: tuple[tuple[Unit, Literal["created", "updated", "archived"]], ...]


@dataclass(slots=True, eq=False)
class Bank:
    """Units, their vectors and links, the threads they head: read before the run, changed by its edits.

    The caller reads the visible units of all neighbourhoods (and superseded ones that are archived), every
    unit with a semantic or temporal link to one of them, and all links that leave or enter them, the version
    links of their direct ancestors included. What is missing is left as it is: a link from an unknown unit
    is not redirected, one to an unknown unit is not copied.
    """

    command: Command
    engine: str
    """Name that stands on new units."""
    now: datetime
    """`recorded_at` of new units."""
    units: dict[UUID, Unit]
    vectors: dict[UUID, Vector]
    """`dense` vectors, float32, unit length; of visible units at least."""
    links: dict[LinkKey, Link]
    threads: dict[UUID, Thread]
    """Threads that have one of the units as a head."""
    turns: dict[UUID, Unit]
    """Evidence turns of the units."""
    kinds: Literal["derived", "all"] = "derived"
    """What may be archived: with `derived`, turns stay visible."""
    limits: Limits = field(default_factory=Limits)
    edits: list[Edit] = field(default_factory=list)
    """Every edit of the run in order, skipped and declined ones too."""
    touched: set[UUID] = field(default_factory=set)
    """Units created, refreshed or archived by this run: no later split, merge or update takes them."""
    _read: "_Read" = field(init=False)
    _ordinal: int = 0

    def __post_init__(self) -> None:
        self._read = _Read(dict(self.units), dict(self.links), dict(self.threads))

    def next_id(self) -> UUID:
        """Return the id of the run's next new unit: by its place in the run, so a repeated run repeats it."""
        self._ordinal += 1
        return derived_id(self.command.namespace, self.command.id, self._ordinal - 1)

    @property
    def ordinal(self) -> int:
        """Place in the run of the unit whose id was given last, from 0."""
        return self._ordinal - 1

    def visible(self, unit: UUID) -> bool:
        """Tell whether the unit is known and visible."""
        return unit in self.units and self.units[unit].visible

    def similarity(self, one: UUID, other: UUID) -> float | None:
        """Return the cosine of two units, rounded so that ties are ties everywhere; None: one is unknown."""
        if one not in self.vectors or other not in self.vectors:
            return None
        return round(float(self.vectors[one] @ self.vectors[other]), DECIMALS)

    def leaving(self, units: Collection[UUID], *types: LinkType) -> list[Link]:
        """Return the links of these types that leave the units, in a fixed order."""
        return _in_order(link for link in self.links.values() if link.source in units and link.type in types)

    def entering(self, units: Collection[UUID], *types: LinkType) -> list[Link]:
        """Return the links of these types that enter the units, in a fixed order."""
        return _in_order(link for link in self.links.values() if link.target in units and link.type in types)

    def nearest(self, vector: Vector, units: Iterable[UUID]) -> UUID:
        """Return the unit nearest to a vector of any length; ties to the newer, then to the smaller id."""
        unit = unit_length(vector)

        def rank(key: UUID) -> tuple[float, float, str]:
            score = round(float(self.vectors[key] @ unit), DECIMALS) if key in self.vectors else -1.0
            return (-score, -self.units[key].said_at.timestamp(), str(key))

        return min(units, key=rank)

    def rows(self) -> Rows:
        """Return what differs from what was read."""
        read = self._read
        inserted = [unit for key, unit in self.units.items() if key not in read.units]
        updated = [unit for key, unit in self.units.items() if key in read.units and unit != read.units[key]]
        changes: list[tuple[Unit, Literal["created", "updated", "archived"]]] = []
        changes += [(unit, "created" if unit.visible else "archived") for unit in inserted]
        changes += [(unit, "updated" if unit.visible else "archived") for unit in updated]
        return Rows(
            inserted=tuple(inserted),
            updated=tuple(updated),
            added=tuple(_in_order(self.links[key] for key in self.links.keys() - read.links.keys())),
            removed=tuple(_in_order(read.links[key] for key in read.links.keys() - self.links.keys())),
            threads=tuple(
                thread for key, thread in self.threads.items() if thread.heads != read.threads[key].heads
            ),
            changes=tuple(changes),
        )


@dataclass(frozen=True, slots=True)
class _Read:
    units: dict[UUID, Unit]
    links: dict[LinkKey, Link]
    threads: dict[UUID, Thread]


@dataclass(slots=True)
class Draft:
    """One edit while it is made: changes the bank and remembers what to journal."""

    bank: Bank
    created: list[UUID] = field(default_factory=list)
    before: dict[UUID, Unit] = field(default_factory=dict)
    links_before: dict[LinkKey, Link] = field(init=False)
    heads: dict[UUID, tuple[UUID, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.links_before = dict(self.bank.links)

    def create(self, unit: Unit, vector: Vector) -> None:
        """Add a new unit."""
        self.bank.units[unit.id] = unit
        self.bank.vectors[unit.id] = vector
        self.created.append(unit.id)

    def revise(self, unit: Unit) -> None:
        """Replace a unit's row, keeping its image."""
        self.before.setdefault(unit.id, self.bank.units[unit.id])
        self.bank.units[unit.id] = unit

    def archive(self, unit: UUID, **ended: datetime | None) -> None:
        """Make a unit invisible; nothing of it is lost (All-Mem eq. 11)."""
        self.revise(self.bank.units[unit].model_copy(update={"visible": False, **ended}))

    def link(self, source: UUID, target: UUID, kind: LinkType, weight: float = 1.0) -> None:
        """Add a link unless it exists or would lead from a unit to itself."""
        key = (source, target, kind)
        if source != target and key not in self.bank.links:
            namespace = self.bank.command.namespace
            self.bank.links[key] = Link(
                namespace=namespace, source=source, target=target, type=kind, weight=weight
            )

    def unlink(self, link: Link) -> None:
        """Remove a link."""
        self.bank.links.pop(key_of(link), None)

    def replace_heads(self, gone: UUID, by: Callable[[Thread], UUID]) -> None:
        """Give the threads that a unit headed another head."""
        for key, thread in self.bank.threads.items():
            if gone in thread.heads:
                self.heads.setdefault(key, thread.heads)
                heads = (by(thread) if head == gone else head for head in thread.heads)
                self.bank.threads[key] = replace(thread, heads=tuple(dict.fromkeys(heads)))

    def finish(self, edit: Edit) -> Edit:
        """Complete the journal's record of the edit and add it to the run."""
        now = self.bank.links
        edit = edit.model_copy(
            update={
                "created": tuple(self.created),
                "before": tuple(self.before.values()),
                "added": tuple(_in_order(now[key] for key in now.keys() - self.links_before.keys())),
                "removed": tuple(
                    _in_order(self.links_before[key] for key in self.links_before.keys() - now.keys())
                ),
                "heads": self.heads,
            }
        )
        self.bank.touched.update(self.created, self.before)
        self.bank.edits.append(edit)
        return edit


def _in_order(links: Iterable[Link]) -> list[Link]:
    return sorted(links, key=lambda link: (str(link.source), link.type, -link.weight, str(link.target)))


def centroid(vectors: Iterable[Vector]) -> Vector:
    """Return the direction of a mean, unit length."""
    return unit_length(np.mean(np.stack(list(vectors)), axis=0).astype(np.float32))
