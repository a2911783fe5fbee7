"""A memory in dictionaries: what a topology run reads, and what it writes, as the tables would take it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import numpy as np

from lamina.streams.engine import Proposal
from lamina.streams.journal import JournalEntry
from lamina.streams.namespace import Namespace
from lamina.streams.records import Command, Descriptor, Link, Unit
from lamina.streams.recoverability import Graph, recoverability
from lamina.streams.topology.bank import Bank, Limits, key_of
from lamina.streams.vector_table import unit_length

NAMESPACE = Namespace("acme/nora")
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
ROOT = UUID(int=7)


def key(name):
    return uuid5(ROOT, str(name))


def direction(*parts):
    """A unit vector of eight numbers from its first ones."""
    return unit_length(np.array([*parts, *[0.0] * (8 - len(parts))], dtype=np.float32))


def a_turn(name, text, day=0, **fields):
    said_at = START + timedelta(days=day)
    values = {
        "id": key(name), "namespace": NAMESPACE, "kind": "turn", "session": "s", "speaker": "Nora",
        "text": text, "said_at": said_at, "recorded_at": said_at, "status": "consolidated",
        "position": day + 1,
    }  # fmt: skip
    return Unit(**{**values, **fields})


def a_unit(name, kind, text, *evidence, day=0, **fields):
    said_at = START + timedelta(days=day)
    values = {
        "id": key(name), "namespace": NAMESPACE, "kind": kind, "session": "s", "speaker": "Nora",
        "text": text, "evidence": evidence, "said_at": said_at, "recorded_at": said_at,
        "status": "consolidated", "engine": "test",
    }  # fmt: skip
    return Unit(**{**values, **fields})


def a_fact(name, text, *evidence, about=("Nora", "lives_in", "Tokyo"), day=0, **fields):
    subject, relation, value = about
    return a_unit(
        name, "fact", text, *evidence, day=day, subject=subject, relation=relation, object=value,
        valid_from=START + timedelta(days=day), **fields,
    )  # fmt: skip


def a_command(name, units=(), kind="topology"):
    return Command(
        id=key(name), namespace=NAMESPACE, kind=kind, units=tuple(units), reason="sessions", position=1,
        issued_at=START,
    )  # fmt: skip


def proposed(operator, *targets, confidence=0.95, reason="because"):
    return Proposal(operator, tuple(targets), reason, confidence)


def described(text, *keywords):
    return Descriptor(summary=text, keywords=keywords)


@dataclass
class Memory:
    """The tables, in dictionaries."""

    units: dict[Any, Any] = field(default_factory=dict)
    vectors: dict[Any, Any] = field(default_factory=dict)
    links: dict[Any, Any] = field(default_factory=dict)
    threads: dict[Any, Any] = field(default_factory=dict)
    journal: list[Any] = field(default_factory=list)

    def add(self, unit, vector=None, *links):
        self.units[unit.id] = unit
        if vector is not None:
            self.vectors[unit.id] = vector
        for turn in unit.evidence:
            self.link(unit.id, turn, "evidence")
        for target, kind, weight in links:
            self.link(unit.id, target, kind, weight)
        return unit.id

    def link(self, source, target, kind, weight=1.0):
        link = Link(namespace=NAMESPACE, source=source, target=target, type=kind, weight=weight)
        self.links.setdefault(key_of(link), link)

    def bank(self, name, **fields):
        turns = {unit.id: unit for unit in self.units.values() if unit.kind == "turn"}
        values = {
            "command": a_command(name), "engine": "test", "now": START + timedelta(days=100),
            "units": dict(self.units), "vectors": dict(self.vectors), "links": dict(self.links),
            "threads": dict(self.threads), "turns": turns, "limits": Limits(),
        }  # fmt: skip
        return Bank(**{**values, **fields})

    def write(self, rows):
        """Take rows as the tables do: a unit whose id exists, or a link that exists, is left as it is."""
        for unit in rows.inserted:
            self.units.setdefault(unit.id, unit)
        self.units |= {unit.id: unit for unit in rows.updated}
        self._links(rows)

    def _links(self, rows):
        for link in rows.removed:
            self.links.pop(key_of(link), None)
        for link in rows.added:
            self.links.setdefault(key_of(link), link)
        self.threads |= {thread.id: thread for thread in rows.threads}

    def finish(self, bank):
        """Write a run and its journal entry."""
        self.write(bank.rows())
        self.vectors |= bank.vectors
        entry = an_entry(bank.command, bank.edits, len(self.journal))
        self.journal.append(entry)
        return entry

    def reverse(self, reversal):
        """Write an undo and mark what it undid."""
        self.units |= {unit.id: unit for unit in reversal.units}
        self._links(reversal)
        self.journal = [
            an_entry(entry.command, reversal.undone.get(entry.command.id, entry.edits), entry.ordinal)
            for entry in self.journal
        ]

    def recoverability(self):
        links = tuple(sorted(self.links, key=str))
        visible = {unit.id: unit.visible for unit in self.units.values()}
        return recoverability(Graph(visible, {unit.id: unit.kind for unit in self.units.values()}, links))

    def visible(self, kind=None):
        return [unit for unit in self.units.values() if unit.visible and kind in {None, unit.kind}]

    def linked(self, source, kind):
        return [link.target for link in self.links.values() if (link.source, link.type) == (source, kind)]


def an_entry(command, edits, ordinal=0):
    return JournalEntry(
        command=command, ordinal=ordinal, state="applied", note=None, not_before=None, attempts=0, plan=None,
        edits=tuple(edits), finished_at=START,
    )  # fmt: skip
