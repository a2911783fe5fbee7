"""What the tests of the tables write: records with the arguments that matter to a test."""

from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID, uuid4

import numpy as np

from lamina.streams.journal import Call
from lamina.streams.llm import Completion
from lamina.streams.namespace import Namespace
from lamina.streams.records import Command, Unit
from lamina.streams.recurrence import Exchange, Thread

ANN = Namespace("acme/ann")
BOB = Namespace("acme/bob")
NOW = datetime(2025, 3, 1, 12, 30, 15, 123_457, tzinfo=UTC)

_positions = count(1)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def a_turn(namespace: Namespace = ANN, **fields) -> Unit:
    common = {"id": uuid4(), "namespace": namespace, "kind": "turn", "session": "s1", "text": "hello"}
    times = {"said_at": NOW, "recorded_at": NOW, "position": next(_positions)}
    return Unit(**common | times | fields)


def a_fact(subject: str, relation: str, **fields) -> Unit:
    return a_turn(**{"kind": "fact", "subject": subject, "relation": relation, "engine": "x"} | fields)


def a_command(namespace: Namespace = ANN, **fields) -> Command:
    common = {"id": uuid4(), "namespace": namespace, "kind": "promote", "thread": uuid4()}
    content = {"exchanges": (uuid4(),), "evidence": (uuid4(),), "reason": "recurrence"}
    return Command(**common | content | {"position": 1, "issued_at": NOW} | fields)


def a_call(command: Command, **fields) -> Call:
    place = {"command": command.id, "namespace": command.namespace, "purpose": "consolidate", "ordinal": 0}
    return Call(**place | {"version": 1, "model": "tiny", "estimate": 100} | fields)


def a_completion(**fields) -> Completion:
    price = {"tokens_in": 30, "tokens_out": 20, "attempts": 1, "seconds": 0.5}
    return Completion(**{"text": '{"a": "\x00"}', "model": "tiny-2"} | price | fields)


def an_exchange(state: str = "unconsolidated", **fields) -> Exchange:
    this = fields.pop("id", None) or uuid4()
    vector = None if state == "claimed" else np.arange(4, dtype=np.float32) / 3
    common = {"turns": (uuid4(), this), "said_at": NOW, "observed_at": NOW, "vector": vector}
    return Exchange(**{"id": this, "salience": None, "state": state} | common | fields)


def a_thread(**fields) -> Thread:
    common = {"id": uuid4(), "total": np.ones(4, dtype=np.float32), "members": 2, "promoted": uuid4()}
    return Thread(**common | fields)


def ids(things) -> list[UUID]:
    return [thing.id for thing in things]


async def insert(tables, *units: Unit) -> None:
    async with tables.transaction({unit.namespace for unit in units}) as transaction:
        await transaction.insert_units(units)


async def plan_of(sql, statement: str, parameters) -> list[str]:
    """Return the steps by which SQLite carries out a statement."""
    explained = f"EXPLAIN QUERY PLAN {statement}"
    return await sql._threads.call(
        lambda connection: [row[3] for row in connection.exec_driver_sql(explained, parameters)]
    )
