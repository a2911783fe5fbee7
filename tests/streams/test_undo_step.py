"""Undo through the tables: a merge that the flow made is taken back, once, and whatever else was going on."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from lamina.sinks.in_memory import FixedClock, HashEmbedder, InMemoryMetrics, InMemoryStore
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.streams import flow
from lamina.streams.codec import decode
from lamina.streams.errors import TablesUnavailable
from lamina.streams.facts import replaces
from lamina.streams.identity import turn_id_from_message
from lamina.streams.namespace import namespace_of
from lamina.streams.placement import arrive
from lamina.streams.records import Change, Command, Turn
from lamina.streams.recoverability import recoverability
from lamina.streams.settings import Settings
from lamina.streams.steps.index import index
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.undo import Undone, dependents_of, undo
from lamina.streams.topics import CHANGES
from lamina.streams.undo import Refused

TESS = namespace_of("local", "tess")
START = datetime(2026, 4, 1, 10, 0, tzinfo=UTC)
LATER = START + timedelta(days=1)
SETTINGS = Settings(
    theta_count=2, theta_sim=0.5, gate_enabled=False, salience=False, topology=False, merge_size=1
)
FLAVOURS = ("lemon", "cherry", "walnut", "honey")


@dataclass
class World:
    ports: Ports

    @property
    def tables(self):
        return self.ports.tables

    async def say(self, *flavours: str) -> None:
        """One exchange about the birthday cake for each flavour, through the whole flow."""
        arrived = []
        for flavour in flavours:
            for role, text in (
                ("user", f"The birthday cake for my sister Mia gets {flavour} cream from the bakery."),
                ("assistant", f"Noted: the birthday cake for your sister Mia, {flavour} cream, the bakery."),
            ):
                key, said_at = f"{flavour}-{role}", START + timedelta(minutes=FLAVOURS.index(flavour))
                turn = Turn(role=role, content=text, message_id=key, timestamp=said_at, run_id="cake")
                this = turn_id_from_message(TESS, key)
                arrived.append(arrive(TESS, turn, fallback_id=this, received_at=said_at))
        await flow.run(arrived, self.ports, replaces, batch_size=2)

    async def entry(self, kind: str):
        """The newest command of a kind."""
        return next(each for each in await self.tables.journal(TESS) if each.command.kind == kind)

    async def episodes(self) -> list[str]:
        return [unit.text for unit in await self.tables.visible_units(TESS, ("episode",))]

    async def everything(self):
        """Units, links and journal, to compare."""
        graph = await self.tables.graph(TESS)
        units = await self.tables.units(TESS, graph.visible)
        return units, set(graph.links), await self.tables.journal(TESS)

    async def undo(self, command, **options):
        return await undo(TESS, command, self.tables, SETTINGS, now=LATER, **options)


@pytest.fixture
def world(tables) -> World:
    outside = (InMemoryStore(), HashEmbedder(), ExtractiveEngine(), FixedClock(START), InMemoryMetrics())
    return World(Ports(SETTINGS, tables, *outside))


@pytest.fixture
async def merged(world) -> World:
    """Two exchanges promoted to an episode, a third merged into it: version 2."""
    await world.say("lemon", "cherry")
    assert len(await world.episodes()) == 1
    await world.say("walnut")
    assert (await world.entry("merge")).state == "applied"
    return world


async def test_a_merge_is_taken_back_and_the_thread_has_its_head_again(merged):
    entry = await merged.entry("merge")
    (edit,) = entry.edits
    (old,) = [unit for unit in edit.before if unit.kind == "episode"]
    done = await merged.undo(entry.command.id)
    assert isinstance(done, Undone)
    assert not done.already
    assert await merged.episodes() == [old.text]
    thread = await merged.tables.thread(TESS, entry.command.thread)
    assert thread.heads == (old.id,)
    units, links, _ = await merged.everything()
    assert units[old.id].version > units[edit.created[0]].version, "versions only grow"
    assert (old.id, edit.created[0], "version") in links, "what was undone stays reachable"
    assert recoverability(await merged.tables.graph(TESS)).unreachable == ()


async def test_the_store_follows_and_consumers_are_told(merged):
    entry = await merged.entry("merge")
    old, new = entry.edits[0].before[0], entry.edits[0].created[0]
    before = {row.id for row in await merged.tables.outbox(1000)}
    await merged.undo(entry.command.id)
    await index([TESS], {}, merged.ports)
    assert old.id in await merged.ports.store.present([old.id, new])
    assert new not in await merged.ports.store.present([old.id, new])
    rows = [row for row in await merged.tables.outbox(1000) if row.id not in before]
    told = [decode(Change, row.record.value) for row in rows if row.record.topic is CHANGES]
    assert {(change.unit_id, change.type) for change in told} >= {(old.id, "updated"), (new, "archived")}


async def test_what_is_said_next_merges_into_the_restored_episode(merged):
    entry = await merged.entry("merge")
    (old,) = [unit for unit in entry.edits[0].before if unit.kind == "episode"]
    await merged.undo(entry.command.id)
    await merged.say("honey")
    newest = await merged.entry("merge")
    assert newest.command.id != entry.command.id
    assert newest.edits[0].targets == (old.id,)
    assert recoverability(await merged.tables.graph(TESS)).unreachable == ()


async def test_undoing_again_changes_nothing_and_says_so(merged):
    entry = await merged.entry("merge")
    await merged.undo(entry.command.id)
    once = await merged.everything()
    again = await merged.undo(entry.command.id)
    assert isinstance(again, Undone)
    assert again.already
    assert await merged.everything() == once


async def test_the_journal_holds_the_undo_and_marks_the_edit(merged):
    entry = await merged.entry("merge")
    await merged.undo(entry.command.id)
    (done, *_) = await merged.tables.journal(TESS)
    assert (done.command.kind, done.command.target, done.state) == ("undo", entry.command.id, "applied")
    assert done.command.reason == "operator"
    marked = await merged.tables.journal_entry(entry.command.id)
    assert [edit.undone_by for edit in marked.edits] == [done.command.id]


async def test_a_dry_run_says_the_same_and_writes_nothing(merged):
    entry = await merged.entry("merge")
    before = await merged.everything()
    foreseen = await merged.undo(entry.command.id, dry_run=True)
    assert await merged.everything() == before
    done = await merged.undo(entry.command.id)
    assert [unit.id for unit in foreseen.reversal.units] == [unit.id for unit in done.reversal.units]


async def test_a_later_merge_of_the_thread_depends_and_cascade_takes_both_back(merged):
    first = await merged.entry("merge")
    await merged.say("honey")
    second = await merged.entry("merge")
    assert [at.entry.command.id for at in await dependents_of(first, merged.tables)] == [second.command.id]
    before = await merged.everything()
    refused = await merged.undo(first.command.id)
    assert isinstance(refused, Refused)
    assert [at.entry.command.id for at in refused.dependents] == [second.command.id]
    assert await merged.everything() == before
    done = await merged.undo(first.command.id, cascade=True)
    assert [at.entry.command.id for at in done.edits] == [second.command.id, first.command.id]
    assert await merged.episodes() == [unit.text for unit in first.edits[0].before if unit.kind == "episode"]
    marked = await merged.tables.journal_entry(second.command.id)
    assert marked.edits[0].undone_by is not None
    assert recoverability(await merged.tables.graph(TESS)).unreachable == ()


async def test_a_worker_in_flight_loses_its_lane_and_its_command_comes_again(merged):
    entry = await merged.entry("merge")
    waiting = Command(
        id=uuid4(), namespace=TESS, kind="topology", reason="sessions", position=99, issued_at=LATER
    )
    async with merged.tables.transaction([TESS]) as tx:
        await tx.issue_commands([waiting])
    await merged.tables.admit_commands([waiting])
    claim = await merged.tables.claim("in flight", LATER, 600)
    assert claim.command == waiting
    await merged.undo(entry.command.id)
    async with merged.tables.transaction([TESS]) as tx:
        assert not await tx.finish_command(claim, "applied", None)
    again = await merged.tables.claim("another", LATER, 600)
    assert again.command == waiting
    assert again.fence > claim.fence


async def test_a_fault_between_two_writes_leaves_everything_as_it_was(merged, monkeypatch):
    entry = await merged.entry("merge")
    before = await merged.everything()
    transaction = merged.tables.transaction

    def breaking(namespaces):
        return _Breaking(transaction(namespaces))

    monkeypatch.setattr(merged.tables, "transaction", breaking)
    with pytest.raises(TablesUnavailable):
        await merged.undo(entry.command.id)
    monkeypatch.undo()
    assert await merged.everything() == before
    assert not (await merged.undo(entry.command.id)).already


class _Breaking:
    """A transaction whose last write of an undo fails."""

    def __init__(self, inner):
        self._inner = inner

    async def __aenter__(self):
        tx = await self._inner.__aenter__()

        async def fail(*_):
            raise TablesUnavailable("the database went away")

        tx.record_undo = fail
        return tx

    async def __aexit__(self, *fault):
        return await self._inner.__aexit__(*fault)


@pytest.mark.parametrize("kind", ["promote", "unknown", "no_op", "elsewhere"])
async def test_what_cannot_be_undone_is_refused_with_its_reason(merged, kind):
    entry = await merged.entry("promote" if kind in {"promote", "elsewhere"} else "merge")
    namespace, command = TESS, entry.command.id
    if kind == "unknown":
        command = uuid4()
    elif kind == "elsewhere":
        namespace = namespace_of("local", "someone")
    elif kind == "no_op":
        order = Command(
            id=uuid4(), namespace=TESS, kind="topology", reason="sessions", position=99, issued_at=LATER
        )
        async with merged.tables.transaction([TESS]) as tx:
            await tx.issue_commands([order])
        await merged.tables.admit_commands([order])
        claim = await merged.tables.claim("x", LATER, 60)
        async with merged.tables.transaction([TESS]) as tx:
            await tx.finish_command(claim, "no_op", None, note="nothing drifted")
        command = order.id
    before = await merged.everything()
    refused = await undo(namespace, command, merged.tables, SETTINGS, cascade=True, now=LATER)
    assert isinstance(refused, Refused)
    words = {
        "promote": "forget",
        "unknown": "has no command",
        "elsewhere": "has no command",
        "no_op": "has changed nothing",
    }
    assert words[kind] in refused.reason
    assert await merged.everything() == before
