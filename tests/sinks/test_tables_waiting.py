"""Commands that wait hold back their own namespace and no other; the journal tells what became of each."""

from uuid import uuid4

import pytest

from lamina.streams.codec import decode
from lamina.streams.journal import Transition
from lamina.streams.records import Command, Edit, Link

from .tables_kit import ANN, BOB, NOW, a_call, a_command, a_completion, a_turn, ids, insert, later


async def admit(tables, *commands) -> None:
    async with tables.transaction({command.namespace for command in commands}) as transaction:
        await transaction.issue_commands(commands)
    await tables.admit_commands(commands)


async def finish(tables, claim, state="applied", plan=None, **outcome) -> bool:
    async with tables.transaction([claim.command.namespace]) as transaction:
        return await transaction.finish_command(claim, state, plan, **outcome)


async def test_a_waiting_command_is_claimed_when_its_time_has_come(tables):
    command = a_command()
    await admit(tables, command)
    claim = await tables.claim("w1", NOW, 60)
    assert claim.attempts == 0
    assert await tables.put_off(claim, later(30), "no answer", later(1)) == 0
    assert await tables.claim("w1", later(29), 60) is None
    again = await tables.claim("w2", later(30), 60)
    assert (again.command, again.fence, again.attempts) == (command, claim.fence + 1, 0)
    assert await tables.put_off(again, later(60), "unreadable", later(31), attempt=True) == 1
    last = await tables.claim("w2", later(61), 60)
    assert last.attempts == 1
    assert await finish(tables, last)
    assert await tables.claim("w2", later(999), 60) is None


async def test_a_waiting_command_holds_back_the_younger_ones_of_its_namespace_alone(tables):
    first, second, other = a_command(), a_command(), a_command(BOB)
    await admit(tables, first, second, other)
    claim = await tables.claim("w", NOW, 60)
    await tables.put_off(claim, later(30), "no answer", NOW)
    elsewhere = await tables.claim("w", NOW, 60)
    assert elsewhere.command == other
    assert await tables.claim("w", NOW, 60) is None
    await tables.admit_commands([first, second])  # delivered again: it goes on waiting
    assert await tables.claim("w", NOW, 60) is None
    done = []
    while claim := await tables.claim("w", later(30), 60):
        done.append(claim.command)
        await finish(tables, claim)
    assert done == [first, second]


async def test_a_waiting_command_is_open_work(tables):
    await admit(tables, a_command())
    await tables.put_off(await tables.claim("w", NOW, 60), later(30), "no answer", NOW)
    tally = await tables.tally()
    assert (tally.commands["waiting"], tally.open_commands) == (1, 1)


async def test_a_command_that_waits_again_after_a_crash_is_claimed_again(tables):
    await admit(tables, a_command())
    await tables.put_off(await tables.claim("w", NOW, 60), later(30), "no answer", NOW)
    lost = await tables.claim("killed", later(31), 60)
    again = await tables.claim("w", later(92), 60)  # its lease ran out
    assert again.command == lost.command
    assert await tables.put_off(lost, later(500), "slow", later(92), attempt=True) == 0
    assert (await tables.journal_entry(again.command.id)).not_before == later(30)
    await tables.release(again)
    assert (await tables.claim("w", later(92), 60)).command == lost.command


async def test_a_lease_is_held_for_longer_while_its_command_runs(tables):
    await admit(tables, a_command())
    claim = await tables.claim("w1", NOW, 60)
    assert await tables.renew(claim, later(50), 60)
    assert await tables.claim("w2", later(100), 60) is None
    taken = await tables.claim("w2", later(111), 60)
    assert not await tables.renew(claim, later(112), 60)
    assert await tables.renew(taken, later(112), 60)


async def test_the_journal_tells_a_command_s_whole_story(tables):
    command = a_command(kind="topology", thread=None, exchanges=(), units=(uuid4(),), reason="sessions")
    await admit(tables, command)
    claim = await tables.claim("w", NOW, 60)
    for second in (1, 2):  # an outage that lasts is told once
        await tables.put_off(claim, later(second), "no answer \x00", later(second))
        claim = await tables.claim("w", later(second), 60)
    await tables.put_off(claim, later(3), "budget spent", later(3))
    claim = await tables.claim("w", later(3), 60)
    call = a_call(command, purpose="diagnose")
    await tables.begin_call(call, None, later(3))
    await tables.end_call(call, a_completion(), later(4))
    turn = a_turn(text="before \x00")
    edit = Edit(
        operator="merge",
        targets=(turn.id,),
        outcome="executed",
        reason="the same said twice",
        confidence=0.95,
        created=(uuid4(),),
        before=(turn,),
        added=(Link(namespace=ANN, source=uuid4(), target=turn.id, type="version"),),
        heads={uuid4(): (turn.id,)},
    )
    assert await finish(tables, claim, "applied", {"engine": "x"}, edits=[edit], note="one of two")
    entry = await tables.journal_entry(command.id)
    assert (entry.command, entry.state, entry.note, entry.plan) == (
        command,
        "applied",
        "one of two",
        {"engine": "x"},
    )
    assert (entry.edits, entry.not_before, entry.attempts) == ((edit,), None, 0)
    assert [(change.state, change.note) for change in entry.history] == [
        ("issued", None),
        ("planned", None),
        ("waiting", "no answer \x00"),
        ("waiting", "budget spent"),
        ("applied", "one of two"),
    ]
    assert entry.history[0] == Transition("issued", NOW, None)
    assert entry.history[3] == Transition("waiting", later(3), "budget spent")
    assert [reply.completion for reply in entry.replies] == [a_completion()]
    assert await tables.journal_entry(uuid4()) is None
    async with tables.transaction([ANN]) as transaction:
        short = await transaction.entry(command.id)
        assert (short.edits, short.history, short.replies) == ((edit,), (), ())
        undone = edit.model_copy(update={"undone_by": uuid4()})
        await transaction.record_edits(command.id, [undone])
        assert (await transaction.entry(command.id)).edits == (undone,)
        assert await transaction.entry(uuid4()) is None


async def test_the_journal_is_read_newest_first_by_tenant_namespace_and_state(tables):
    anna = ANN + "a"
    commands = [a_command(name) for name in (ANN, BOB, ANN, anna, "acme-2/ann")]
    for command in commands:
        await admit(tables, command)
    claim = await tables.claim("w", NOW, 60)
    await tables.put_off(claim, later(9), "no answer", NOW)
    entries = await tables.journal()
    assert [entry.command for entry in entries] == commands[::-1]
    assert [entry.command for entry in await tables.journal("acme/")] == commands[3::-1]
    assert [entry.command for entry in await tables.journal(ANN)] == [commands[2], commands[0]]
    assert [entry.command for entry in await tables.journal(states=["waiting"])] == [commands[0]]
    assert await tables.journal("acme/", states=["applied", "skipped"]) == []
    page = await tables.journal("acme/", limit=2)
    rest = await tables.journal("acme/", before=page[-1].ordinal, limit=2)
    assert [entry.command for entry in page + rest] == commands[3::-1]


async def test_later_applied_commands_of_the_namespace_come_in_order(tables):
    commands = [a_command(), a_command(), a_command(), a_command(BOB)]
    await admit(tables, *commands)
    states = iter(("applied", "applied", "no_op", "applied"))
    while claim := await tables.claim("w", NOW, 60):
        await finish(tables, claim, next(states) if claim.command.namespace == ANN else "applied")
    last = a_command()
    await admit(tables, last)
    await finish(tables, await tables.claim("w", NOW, 60))
    first = await tables.journal_entry(commands[0].id)
    async with tables.transaction([ANN]) as transaction:
        later_ones = await transaction.entries_after(ANN, first.ordinal)
    assert [entry.command for entry in later_ones] == [commands[1], last]


async def test_an_undo_takes_the_lane_from_the_worker_in_flight(tables):
    command, other = a_command(), a_command(BOB)
    await admit(tables, command, other)
    working = await tables.claim("w1", NOW, 60)
    untouched = await tables.claim("w1", NOW, 60)
    undo = a_command(kind="undo", thread=None, target=uuid4(), reason="operator")
    edit = Edit(operator="merge", outcome="executed", reason="undone")
    for _ in range(2):  # said twice, it is done once
        async with tables.transaction([ANN]) as transaction:
            await transaction.record_undo(undo, [edit], later(1))
    assert not await finish(tables, working)
    assert await finish(tables, untouched)
    again = await tables.claim("w2", later(2), 60)
    assert again.command == command
    async with tables.transaction([ANN]) as transaction:
        await transaction.record_undo(undo, [], later(3))  # it is in the journal: the new worker goes on
    assert await finish(tables, again)
    entry = await tables.journal_entry(undo.id)
    assert (entry.state, entry.edits, entry.finished_at) == ("applied", (edit,), later(1))
    assert entry.history == (Transition("applied", later(1), None),)
    published = [decode(Command, row.record.value) for row in await tables.outbox(10)]
    assert published == [command, other]  # what is done already needs no worker


async def test_an_undo_that_fails_takes_nothing(tables):
    await admit(tables, a_command())
    working = await tables.claim("w1", NOW, 60)
    with pytest.raises(KeyError):
        async with tables.transaction([ANN]) as transaction:
            await transaction.record_undo(a_command(kind="undo", reason="operator"), [], NOW)
            raise KeyError
    assert await finish(tables, working)


async def test_a_turn_s_summary_is_regenerable_and_the_spans_it_rests_on_are_not(tables):
    turn = a_turn(text="one. two.")
    spans = ({"turn": turn.id, "start": 0, "end": 4},)
    sibling = a_turn(kind="episode", evidence=(turn.id,), spans=spans)
    await insert(tables, turn, sibling)
    found = await tables.find(ids([turn, sibling]))
    assert found == {turn.id: turn, sibling.id: sibling}
    assert found[sibling.id].spans[0].end == 4
    async with tables.transaction([ANN]) as transaction:
        await transaction.update_units(
            [
                turn.model_copy(update={"summary": "one and two \x00"}),
                sibling.model_copy(update={"spans": ()}),
            ]
        )
    found = await tables.find(ids([turn, sibling]))
    assert found[turn.id].summary == "one and two \x00"
    assert found[sibling.id] == sibling
