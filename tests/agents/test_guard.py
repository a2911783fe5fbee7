"""The guard: whatever happens to a record, it is handled or dead-lettered, and acked once, after that."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count, pairwise
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from lamina.agents.guard import Guard, Step
from lamina.sinks.dead_letters import DeadLetters
from lamina.sinks.in_memory import InMemoryMetrics, InMemoryPublisher
from lamina.sinks.tables import open_tables
from lamina.streams.errors import BrokerUnavailable, Fatal, InvalidTurn, MalformedRecord, StoreUnavailable
from lamina.streams.metrics import DEAD_LETTERS as DEAD_LETTERS_TOTAL
from lamina.streams.metrics import RETRIES, TURNS
from lamina.streams.namespace import Namespace
from lamina.streams.records import Status, Unit
from lamina.streams.settings import Settings
from lamina.streams.topics import DEAD_LETTERS

ANN = Namespace("acme/ann")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ATTEMPTS = 3
DEADLINE_SECONDS = 10

topics = count()


@pytest.fixture
async def tables(tmp_path):
    opened = await open_tables(f"sqlite+aiosqlite:///{tmp_path / 'tables.db'}")
    yield opened
    await opened.close()


@dataclass
class Event:
    """A Faust event, as far as the guard looks at it; it keeps what happened in the run's diary."""

    message: SimpleNamespace
    diary: list[str]
    acks: int = 0

    def ack(self):
        self.acks += 1
        self.diary.append(f"ack {self.message.value.decode(errors='replace')}")


@dataclass
class Run:
    """One step over one batch: what its handler does with an item is told by `faults`."""

    tables: object
    faults: dict[str, list[Any]] = field(default_factory=dict)
    """Raised one by one when a batch holds the item, the last one for ever; None is no fault."""
    publisher: InMemoryPublisher = field(default_factory=InMemoryPublisher)
    settings: Settings = field(
        default_factory=lambda: Settings(retry_max_seconds=0.001, unknown_fault_attempts=ATTEMPTS)
    )
    turns: dict[str, UUID] = field(default_factory=dict)
    metrics: InMemoryMetrics = field(default_factory=InMemoryMetrics)
    diary: list[str] = field(default_factory=list)
    calls: list[list[str]] = field(default_factory=list)
    handled: Counter[str] = field(default_factory=Counter)
    stopped: list[Fatal] = field(default_factory=list)
    topic: str = field(default_factory=lambda: f"topic-{next(topics)}")

    def events(self, *values: str | bytes) -> list[Event]:
        return [
            Event(
                SimpleNamespace(
                    topic=self.topic,
                    partition=2,
                    offset=offset,
                    key=f"acme/{offset}".encode(),
                    value=value if isinstance(value, bytes) else value.encode(),
                    headers=[("dense", b"\x00\xff")],
                ),
                self.diary,
            )
            for offset, value in enumerate(values)
        ]

    def guard(self) -> Guard:
        return Guard(
            dead_letters=DeadLetters(self.publisher, self.metrics),
            tables=self.tables,
            metrics=self.metrics,
            settings=self.settings,
            stop=self.stopped.append,
        )

    def step(self) -> Step[str]:
        return Step("gate", self.decode, self.handle, self.turn_of)

    def decode(self, message) -> str:
        if message.value.startswith(b"odd"):
            raise OverflowError("date value out of range")
        try:
            return message.value.decode()
        except UnicodeDecodeError as exc:
            raise MalformedRecord("not UTF-8") from exc

    async def handle(self, items) -> None:
        self.calls.append(list(items))
        for item in items:
            faults = self.faults.get(item)
            if faults and (fault := faults.pop(0) if len(faults) > 1 else faults[0]) is not None:
                raise fault
        self.handled.update(items)
        self.diary += [f"handle {item}" for item in items]

    def turn_of(self, item):
        return (ANN, self.turns[item]) if item in self.turns else None

    async def over(self, events) -> None:
        await asyncio.wait_for(self.guard().run(self.step(), events), DEADLINE_SECONDS)

    @property
    def buried(self) -> list[bytes]:
        return [record.value for record in self.publisher.records]


async def an_accepted_turn(tables) -> UUID:
    turn = Unit(id=uuid4(), namespace=ANN, kind="turn", session="s", text="e", said_at=NOON, recorded_at=NOON)
    async with tables.transaction([ANN]) as tx:
        await tx.insert_units([turn])
    return turn.id


async def until(condition) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # a poll with a deadline
            await asyncio.sleep(0.002)


@contextlib.asynccontextmanager
async def underway(coroutine):
    """Run a coroutine beside the block, and cancel it at its end."""
    task = asyncio.create_task(coroutine)
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_handled_records_are_acked_once_and_in_order(tables):
    run = Run(tables)
    events = run.events("a", "b", "c")
    await run.over(events)
    assert run.diary == ["handle a", "handle b", "handle c", "ack a", "ack b", "ack c"]
    assert run.calls == [["a", "b", "c"]]
    assert run.buried == []


async def test_a_transient_fault_is_retried_until_it_passes_and_nothing_is_acked_meanwhile(tables):
    away = [StoreUnavailable("away")] * 200
    run = Run(tables, {"b": away})
    events = run.events("a", "b")
    async with underway(run.guard().run(run.step(), events)) as task:
        await until(lambda: len(run.calls) > 20 * ATTEMPTS)
        assert not task.done()
        assert [event.acks for event in events] == [0, 0]
        run.faults.clear()
        await asyncio.wait_for(task, DEADLINE_SECONDS)
    assert [event.acks for event in events] == [1, 1]
    assert {tuple(call) for call in run.calls} == {("a", "b")}, "the batch is not taken apart for an outage"
    assert run.buried == []
    assert run.metrics.value(RETRIES, step="gate", reason="store_unavailable") == len(run.calls) - 1


async def test_the_delay_that_a_dependency_asks_for_is_kept(tables):
    run = Run(tables, {"a": [StoreUnavailable("busy", retry_after=0.3)]})
    times = []

    async def noted(items):
        times.append(asyncio.get_running_loop().time())
        if len(times) == 3:
            run.faults.clear()
        await run.handle(items)

    step = Step("gate", run.decode, noted, run.turn_of)
    await asyncio.wait_for(run.guard().run(step, run.events("a")), DEADLINE_SECONDS)
    assert [b - a >= 0.3 for a, b in pairwise(times)] == [True, True]


async def test_an_unreadable_record_is_dead_lettered_as_it_came_and_only_then_acked(tables):
    class Watched(InMemoryPublisher):
        async def publish(self, records):
            run.diary.append("bury")
            await super().publish(records)

    run = Run(tables, publisher=Watched())
    await run.over(run.events("a", b"\xff\xfe", "c"))
    assert run.diary == ["bury", "ack \ufffd\ufffd", "handle a", "handle c", "ack a", "ack c"]
    [letter] = run.publisher.records
    assert (letter.topic, letter.key, letter.value) == (DEAD_LETTERS, f"{run.topic}/2", b"\xff\xfe")
    assert letter.headers == {
        "schema_version": b"1",
        "step": b"gate",
        "reason": b"malformed",
        "detail": b"not UTF-8",
        "topic": run.topic.encode(),
        "partition": b"2",
        "offset": b"1",
        "source-key": b"acme/1",
        "source-null": b"0",
        "source-header-dense": b"\x00\xff",
    }
    assert run.metrics.value(DEAD_LETTERS_TOTAL, step="gate", reason="malformed") == 1
    assert run.metrics.value(TURNS, step="gate", outcome="dead_letter") == 1


async def test_a_record_that_the_handler_rejects_leaves_the_rest_of_the_batch_whole_and_in_order(tables):
    run = Run(tables, {"d": [InvalidTurn("too much of it")]})
    await run.over(run.events(*"abcdef"))
    assert run.diary[-1] == "ack f"
    assert [line for line in run.diary if line.startswith("handle")] == [f"handle {x}" for x in "abcef"]
    assert [line for line in run.diary if line.startswith("ack")] == [f"ack {x}" for x in "abcdef"]
    assert run.buried == [b"d"]
    assert run.publisher.records[0].headers["reason"] == b"invalid_turn"


async def test_a_record_that_breaks_the_decoder_is_dead_lettered_and_the_rest_is_handled(tables):
    run = Run(tables)
    await run.over(run.events("a", "odd", "c"))
    assert run.buried == [b"odd"]
    assert run.publisher.records[0].headers["reason"] == b"unknown"
    assert b"date value out of range" in run.publisher.records[0].headers["detail"]
    assert run.handled == {"a": 1, "c": 1}
    assert [line for line in run.diary if line.startswith("ack")] == ["ack odd", "ack a", "ack c"]


async def test_an_unknown_fault_is_isolated_tried_and_dead_lettered_and_the_others_are_handled(tables):
    turn = await an_accepted_turn(tables)
    run = Run(tables, {"e": [ZeroDivisionError("by nothing")]}, turns={"e": turn})
    events = run.events(*"abcdefgh")
    await run.over(events)
    assert run.calls.count(["e"]) == ATTEMPTS
    assert run.handled == dict.fromkeys("abcdfgh", 1)
    assert run.buried == [b"e"]
    letter = run.publisher.records[0]
    assert (letter.headers["reason"], letter.headers["detail"]) == (b"unknown", b"by nothing")
    assert [event.acks for event in events] == [1] * 8
    unit = (await tables.units(ANN, [turn]))[turn]
    assert unit.status is Status.FAILED
    assert "gate" in unit.reason
    assert "by nothing" in unit.reason


async def test_an_unknown_fault_that_passes_before_its_last_try_costs_nothing(tables):
    run = Run(tables, {"b": [*[KeyError("x")] * ATTEMPTS, None]})
    await run.over(run.events("a", "b"))
    assert run.diary == ["handle a", "ack a", "handle b", "ack b"]
    assert run.buried == []


async def test_tries_are_counted_across_restarts(tables):
    first = Run(tables, {"a": [ValueError("poison"), ValueError("poison"), StoreUnavailable("crash here")]})
    events = first.events("a")
    async with underway(first.guard().run(first.step(), events)):
        await until(lambda: len(first.calls) > ATTEMPTS)
    assert events[0].acks == 0
    second = Run(tables, {"a": [ValueError("poison")]}, topic=first.topic)
    await second.over(second.events("a"))
    assert second.calls == [["a"]], "two tries were made before the restart"
    assert second.buried == [b"a"]


async def test_another_record_at_the_same_offset_has_its_own_tries(tables):
    first = Run(tables, {"a": [ValueError("poison")]})
    await first.over(first.events("a"))
    again = Run(tables, {"b": [ValueError("poison")]}, topic=first.topic)
    await again.over(again.events("b"))
    assert again.calls == [["b"]] * ATTEMPTS, "an embedded broker restarts at offset 0"


async def test_a_fatal_fault_stops_the_process_and_acks_nothing(tables):
    fatal = Fatal("wrong dimension")
    run = Run(tables, {"b": [fatal]})
    events = run.events("a", "b", "c")
    async with underway(run.guard().run(run.step(), events)) as task:
        await until(lambda: run.stopped)
        assert not task.done(), "the agent must not return: the next batch would be taken"
    assert run.stopped == [fatal]
    assert run.calls == [["a", "b", "c"]]
    assert (run.diary, run.buried) == ([], [])


async def test_dead_letters_that_cannot_be_written_now_are_written_later_and_acked_only_then(tables):
    class Away(InMemoryPublisher):
        tries = 0
        away = True

        async def publish(self, records):
            self.tries += 1
            if self.away:
                raise BrokerUnavailable("away")
            await super().publish(records)

    publisher = Away()
    run = Run(tables, {"c": [MalformedRecord("no")]}, publisher)
    events = run.events(b"\xff", "b", "c")
    async with underway(run.guard().run(run.step(), events)) as task:
        await until(lambda: publisher.tries > 10)
        assert run.diary == []
        publisher.away = False
        await asyncio.wait_for(task, DEADLINE_SECONDS)
    assert run.buried == [b"\xff", b"c"]
    assert [event.acks for event in events] == [1, 1, 1]
    assert run.handled == {"b": 1}


async def test_a_dead_letter_that_can_never_be_written_stops_the_process_and_keeps_the_record(tables):
    class Refusing(InMemoryPublisher):
        async def publish(self, records):
            raise InvalidTurn("a record of 5000000 bytes; the topic takes less")

    run = Run(tables, publisher=Refusing())
    events = run.events(b"\xff")
    async with underway(run.guard().run(run.step(), events)):
        await until(lambda: run.stopped)
    assert "5000000" in str(run.stopped[0])
    assert events[0].acks == 0


@pytest.mark.parametrize("moment", ["handling", "waiting", "burying"])
async def test_a_cancelled_run_acks_nothing(tables, moment):
    begun = asyncio.Event()

    async def hang(*_):
        begun.set()
        await asyncio.Event().wait()

    class Hanging(InMemoryPublisher):
        publish = hang

    run = Run(tables, publisher=Hanging())
    if moment == "waiting":
        run.faults["a"] = [StoreUnavailable("away", retry_after=60)]
        step = run.step()
    else:
        step = Step("gate", run.decode, hang, run.turn_of)
    events = run.events(b"\xff" if moment == "burying" else "a", "b")
    task = asyncio.create_task(run.guard().run(step, events))
    await until(lambda: begun.is_set() or run.calls)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert run.diary == []
    assert run.stopped == []


OUTCOMES: dict[str, Callable[[], list[Any]]] = {
    "well": list,
    "unreadable": list,
    "odd": list,
    "rejected": lambda: [MalformedRecord("no")],
    "poison": lambda: [KeyError("bug")],
    "away": lambda: [StoreUnavailable("away")] * 2 + [None],
    "sick": lambda: [KeyError("bug"), StoreUnavailable("away"), None],
}
DEAD = {"unreadable", "odd", "rejected", "poison"}


@given(kinds=st.lists(st.sampled_from(sorted(OUTCOMES)), min_size=1, max_size=9))
@effort(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_every_record_is_handled_or_dead_lettered_and_acked_exactly_once(tables, kinds):
    names = [f"{kind}-{place}" for place, kind in enumerate(kinds)]
    run = Run(tables, {name: OUTCOMES[kind]() for name, kind in zip(names, kinds, strict=True)})
    values = [b"\xff" + name.encode() if name.startswith("unreadable") else name.encode() for name in names]
    events = run.events(*values)
    await run.over(events)
    assert [event.acks for event in events] == [1] * len(events)
    dead = [value for value, kind in zip(values, kinds, strict=True) if kind in DEAD]
    assert sorted(run.buried) == sorted(dead)
    assert run.handled == {name: 1 for name, kind in zip(names, kinds, strict=True) if kind not in DEAD}
    assert run.stopped == []
    well = [line.removeprefix("handle ") for line in run.diary if line.startswith("handle")]
    assert well == [name for name in names if name in run.handled], "in the order of the partition"
