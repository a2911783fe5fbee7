"""Commands run once, in order and one at a time per namespace, whoever carries them out."""

import asyncio
from collections import Counter, defaultdict
from uuid import uuid4

from lamina.sinks.tables import open_tables
from lamina.streams.codec import decode
from lamina.streams.namespace import Namespace
from lamina.streams.records import Command
from lamina.streams.topics import CONSOLIDATION

from .tables_kit import ANN, BOB, NOW, a_command, later


async def issue(tables, *commands: Command, admit: bool = True) -> None:
    async with tables.transaction({command.namespace for command in commands}) as transaction:
        await transaction.issue_commands(commands)
    if admit:
        await tables.admit_commands(commands)


async def finish(tables, claim, state="applied", plan=None) -> bool:
    async with tables.transaction([claim.command.namespace]) as transaction:
        return await transaction.finish_command(claim, state, plan)


async def test_a_command_is_issued_once_and_waits_in_the_outbox(tables):
    first, second = a_command(), a_command(BOB)
    await issue(tables, first, second, admit=False)
    await issue(tables, second, first, admit=False)
    records = [row.record for row in await tables.outbox(10)]
    assert [record.topic for record in records] == [CONSOLIDATION] * 2
    assert [record.key for record in records] == [ANN, BOB]
    assert [decode(Command, record.value) for record in records] == [first, second]


async def test_a_command_is_claimed_whole_once_it_is_admitted(tables):
    command = a_command()
    await issue(tables, command, admit=False)
    assert await tables.claim("w1", NOW, 60) is None
    await tables.admit_commands([command, command])
    claim = await tables.claim("w1", NOW, 60)
    assert (claim.command, claim.owner, claim.until) == (command, "w1", later(60))
    assert await tables.claim("w2", NOW, 60) is None
    assert await finish(tables, claim, "applied", {"engine": "extractive", "facts": []})
    assert (await tables.tally()).commands["applied"] == 1
    await tables.admit_commands([command])  # delivered again
    assert await tables.claim("w2", NOW, 60) is None


async def test_a_command_of_an_operator_needs_no_journal_row(tables):
    command = a_command()
    await tables.admit_commands([command])
    assert (await tables.claim("w1", NOW, 60)).command == command


async def test_commands_of_a_namespace_run_in_the_order_of_issue(tables):
    commands = [a_command() for _ in range(3)]
    await issue(tables, *commands, admit=False)
    await tables.admit_commands([commands[2], commands[1]])
    assert await tables.claim("w1", NOW, 60) is None  # the oldest has not arrived yet
    await tables.admit_commands([commands[0]])
    done = []
    while claim := await tables.claim("w1", NOW, 60):
        assert await finish(tables, claim)
        done.append(claim.command)
    assert done == commands


async def test_a_lost_lease_writes_nothing(tables):
    command = a_command()
    await issue(tables, command)
    slow = await tables.claim("w1", NOW, 60)
    assert await tables.claim("w2", later(60), 60) is None  # to the last moment
    fast = await tables.claim("w2", later(61), 60)
    assert (fast.command, fast.fence) == (command, slow.fence + 1)
    await tables.release(slow)  # not its lane any more
    assert await tables.claim("w3", later(62), 60) is None
    assert not await finish(tables, slow)
    assert (await tables.tally()).commands["planned"] == 1
    assert await finish(tables, fast, "no_op")
    assert not await finish(tables, fast, "applied")
    assert (await tables.tally()).commands["no_op"] == 1


async def test_a_lease_that_ran_out_unnoticed_still_counts(tables):
    await issue(tables, a_command())
    claim = await tables.claim("w1", NOW, 1)
    assert await finish(tables, claim)  # late, but nobody took the lane


async def test_a_released_command_is_claimed_again(tables):
    command = a_command()
    await issue(tables, command)
    first = await tables.claim("w1", NOW, 60)
    await tables.release(first)
    again = await tables.claim("w1", NOW, 60)
    assert (again.command, again.fence) == (command, first.fence + 1)
    assert not await finish(tables, first)


async def test_commands_that_the_broker_lost_are_issued_again(tables):
    lost, waiting, known = a_command(), a_command(BOB), a_command(BOB)
    await issue(tables, known)
    await issue(tables, lost, admit=False)
    await tables.published([row.id for row in await tables.outbox(10)])
    await issue(tables, waiting, admit=False)
    assert await tables.reissue_commands() == 1
    assert await tables.reissue_commands() == 0
    published = [decode(Command, row.record.value) for row in await tables.outbox(10)]
    assert published == [waiting, lost]


async def test_four_workers_never_share_a_namespace(database_url):
    names = [Namespace(f"acme/u{n}") for n in range(3)]
    commands = [a_command(name, id=uuid4()) for _ in range(8) for name in names]
    workers = [await open_tables(database_url) for _ in range(4)]
    await issue(workers[0], *commands)
    busy: Counter[Namespace] = Counter()
    done: dict[Namespace, list[Command]] = defaultdict(list)

    async def work(name: str, tables) -> None:
        while sum(map(len, done.values())) < len(commands):
            claim = await tables.claim(name, NOW, 60)
            if claim is None:
                await asyncio.sleep(0.002)
                continue
            namespace = claim.command.namespace
            busy[namespace] += 1
            assert busy[namespace] == 1
            await asyncio.sleep(0.003)
            busy[namespace] -= 1
            done[namespace].append(claim.command)
            assert await finish(tables, claim)

    await asyncio.gather(*(work(f"w{n}", tables) for n, tables in enumerate(workers)))
    assert {name: [c for c in commands if c.namespace == name] for name in names} == done
    for tables in workers:
        await tables.close()


async def test_lanes_of_a_killed_process_are_free_again_and_it_can_no_longer_finish_in_them(tables):
    order = a_command()
    async with tables.transaction([ANN]) as transaction:
        await transaction.issue_commands([order])
    await tables.admit_commands([order])
    lost = await tables.claim("killed", NOW, 60)
    assert await tables.claim("next", NOW, 60) is None
    await tables.free_lanes()
    claim = await tables.claim("next", NOW, 60)
    assert claim.fence > lost.fence
    async with tables.transaction([ANN]) as transaction:
        assert not await transaction.finish_command(lost, "applied", None)
        assert await transaction.finish_command(claim, "applied", None)
