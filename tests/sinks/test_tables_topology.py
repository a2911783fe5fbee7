"""What topology reads and writes: the buffer, threads by head, links, and a namespace as a graph."""

from uuid import uuid4

import numpy as np
import pytest

from lamina.streams.buffer import Buffered
from lamina.streams.namespace import Namespace
from lamina.streams.records import Link

from .tables_kit import ANN, BOB, NOW, a_command, a_fact, a_thread, a_turn, an_exchange, ids, insert, later


def buffered(seconds: float = 0, **fields) -> Buffered:
    return Buffered(**{"unit": uuid4(), "pushed_at": later(seconds)} | fields)


def link(source, target, kind="semantic", **fields) -> Link:
    return Link(namespace=ANN, source=source, target=target, type=kind, **fields)


async def test_buffered_units_come_in_the_order_of_pushing_until_a_command_takes_them(tables):
    rows = [buffered(-n) for n in range(3)]
    async with tables.transaction([ANN, BOB]) as transaction:
        await transaction.push_buffer(ANN, rows[:2])
        await transaction.push_buffer(ANN, [buffered(9, unit=rows[0].unit), rows[2]])
        await transaction.push_buffer(BOB, [buffered()])
        assert await transaction.buffer(ANN) == rows
        command = uuid4()
        await transaction.claim_buffer([rows[0].unit, rows[2].unit, uuid4()], command)
        await transaction.claim_buffer([rows[0].unit], uuid4())
        assert await transaction.buffer(ANN) == [rows[1]]
    assert (await tables.tally("acme/")).buffer_waiting == 2
    assert (await tables.tally(ANN)).buffer_waiting == 1


async def test_a_unit_that_was_ever_pushed_is_not_pushed_again(tables):
    row, command = buffered(), a_command(kind="topology", thread=None, reason="sessions")
    async with tables.transaction([ANN]) as transaction:
        await transaction.push_buffer(ANN, [row])
        await transaction.claim_buffer([row.unit], command.id)
        await transaction.issue_commands([command])
    await tables.admit_commands([command])
    claim = await tables.claim("w", NOW, 60)
    async with tables.transaction([ANN]) as transaction:
        await transaction.finish_command(claim, "applied", None)
        await transaction.push_buffer(ANN, [row])  # delivered again
        assert await transaction.buffer(ANN) == []


async def test_the_buffer_is_written_under_the_namespace_s_lock(tables):
    async with tables.transaction([ANN]) as transaction:
        with pytest.raises(ValueError, match="acme/bob"):
            await transaction.push_buffer(BOB, [buffered()])


async def test_buffers_are_idle_when_nothing_was_pushed_for_a_while(tables):
    async with tables.transaction([ANN, BOB]) as transaction:
        taken = buffered(99)
        await transaction.push_buffer(ANN, [buffered(0), buffered(10), taken])
        await transaction.claim_buffer([taken.unit], uuid4())
        await transaction.push_buffer(BOB, [buffered(5)])
    assert await tables.idle_buffers(later(5), 10) == []
    assert await tables.idle_buffers(later(6), 10) == [BOB]
    assert await tables.idle_buffers(later(11), 10) == [BOB, ANN]
    assert await tables.idle_buffers(later(11), 1) == [BOB]


async def test_sessions_are_counted_until_topology_looks(tables):
    async with tables.transaction([ANN, BOB]) as transaction:
        assert await transaction.count_sessions(ANN, 2) == 2
        assert await transaction.count_sessions(ANN, 0) == 2
        assert await transaction.count_sessions(ANN, 1, reset=True) == 3
        assert await transaction.count_sessions(ANN, 0, reset=True) == 0
        assert await transaction.count_sessions(ANN, 1) == 1
        assert await transaction.count_sessions(BOB, 0) == 0


async def test_a_closed_thread_takes_no_more_exchanges_and_can_still_be_read(tables):
    open_one, closed = a_thread(), a_thread(heads=(uuid4(),))
    async with tables.transaction([ANN]) as transaction:
        await transaction.save_recurrence(ANN, [], [open_one, closed])
        await transaction.save_recurrence(ANN, [], [a_thread(id=closed.id, heads=closed.heads, closed=True)])
        assert ids((await transaction.recurrence(ANN)).threads) == [open_one.id]
    assert (await tables.thread(ANN, closed.id)).closed
    assert not (await tables.thread(ANN, open_one.id)).closed


async def test_a_released_exchange_is_compared_again(tables):
    claimed = an_exchange("claimed", command=uuid4(), thread=uuid4())
    pending = an_exchange("pending", thread=uuid4())
    released = an_exchange(id=claimed.id, turns=claimed.turns)
    async with tables.transaction([ANN]) as transaction:
        await transaction.save_recurrence(ANN, [claimed, pending], [])
        assert ids(await transaction.exchanges([pending.id, claimed.id, uuid4()])) == [claimed.id, pending.id]
        await transaction.save_recurrence(ANN, [released], [])
        live = (await transaction.recurrence(ANN)).exchanges
    assert ids(live) == [claimed.id, pending.id]
    assert (live[0].state, live[0].thread, live[0].command) == ("unconsolidated", None, None)
    assert np.array_equal(live[0].vector, released.vector)


async def test_the_histogram_of_similarities_is_kept_until_it_is_replaced(tables):
    async with tables.transaction([ANN]) as transaction:
        assert (await transaction.recurrence(ANN)).similarities == ()
        await transaction.save_recurrence(ANN, [], [], similarities=(0, 3, 1))
        await transaction.save_recurrence(ANN, [], [])
        assert (await transaction.recurrence(ANN)).similarities == (0, 3, 1)


async def test_threads_are_found_by_their_heads(tables):
    one, two = uuid4(), uuid4()
    threads = [a_thread(heads=(one, two)), a_thread(heads=(uuid4(),)), a_thread(heads=(two,))]
    async with tables.transaction([ANN, BOB]) as transaction:
        await transaction.save_recurrence(ANN, [], threads)
        await transaction.save_recurrence(BOB, [], [a_thread(heads=(two,))])
        assert ids(await transaction.threads_of(ANN, [two])) == [threads[0].id, threads[2].id]
        assert ids(await transaction.threads_of(ANN, [one])) == [threads[0].id]
        assert await transaction.threads_of(ANN, []) == []


async def test_links_are_read_by_end_and_type_and_deleted_one_by_one(tables):
    a, b, c = sorted((uuid4() for _ in range(3)), key=lambda each: each.int)
    ab, ac, bc, version = link(a, b, weight=0.5), link(a, c), link(b, c), link(a, c, "version")
    async with tables.transaction([ANN]) as transaction:
        await transaction.insert_links([version, bc, ac, ab])
    assert await tables.links_from(ANN, [a, b]) == [ab, ac, version, bc]
    assert await tables.links_from(ANN, [a], ["version", "evidence"]) == [version]
    assert await tables.links_to(ANN, [c]) == [ac, version, bc]
    assert await tables.links_to(ANN, [c], ["semantic"]) == [ac, bc]
    assert await tables.links_from(BOB, [a]) == []
    assert await tables.links_from(ANN, []) == []
    async with tables.transaction([ANN]) as transaction:
        await transaction.delete_links([ac, link(uuid4(), a)])
        await transaction.delete_links([])
    assert await tables.links_from(ANN, [a, b]) == [ab, version, bc]


async def test_what_links_to_a_unit_is_read_with_its_row(tables):
    turns = [a_turn(ordinal=n, position=n + 1) for n in range(3)]
    holds = a_fact("Ann", "lives_in", evidence=(turns[0].id,))
    ended = a_fact("Ann", "lives_in", evidence=(turns[0].id, turns[1].id), valid_to=NOW)
    async with tables.transaction([ANN]) as transaction:
        await transaction.insert_units([*turns, holds, ended])
        await transaction.insert_links(
            [link(fact.id, turn, "evidence") for fact in (holds, ended) for turn in fact.evidence]
        )
        await transaction.insert_links([link(holds.id, ended.id, "version")])
    asked = [turn.id for turn in turns]
    late = [(turns[0].id, ended), (turns[1].id, ended)]
    by_source = sorted([(turns[0].id, holds), *late], key=lambda pair: (pair[1].id, pair[0]))
    assert await tables.linking_to(ANN, asked, "evidence") == by_source
    assert await tables.linking_to(ANN, asked, "evidence", ended=True) == sorted(late)
    assert await tables.linking_to(ANN, [ended.id], "version") == [(ended.id, holds)]
    assert await tables.linking_to(ANN, [holds.id], "version") == []
    assert await tables.linking_to(BOB, asked, "evidence") == []
    assert await tables.linking_to(ANN, [], "evidence") == []


async def test_a_namespace_is_read_as_a_graph(tables):
    old, new, theirs = a_fact("a", "b", visible=False), a_fact("a", "b"), a_turn(BOB)
    gone = uuid4()
    await insert(tables, old, new, theirs)
    async with tables.transaction([ANN, BOB]) as transaction:
        await transaction.insert_links([link(new.id, old.id, "version"), link(old.id, gone)])
        await transaction.insert_links([Link(namespace=BOB, source=theirs.id, target=gone, type="temporal")])
    graph = await tables.graph(ANN)
    assert graph.visible == {old.id: False, new.id: True}
    assert graph.kinds == {old.id: "fact", new.id: "fact"}
    assert set(graph.links) == {(new.id, old.id, "version"), (old.id, gone, "semantic")}


async def test_visible_units_of_some_kinds_come_by_position_and_ordinal(tables):
    second = a_fact("a", "b", position=90_002, ordinal=0)
    first = [a_turn(kind="episode", position=90_001, ordinal=n) for n in (1, 0)]
    turn, hidden, theirs = a_turn(), a_fact("a", "b", visible=False), a_fact("a", "b", namespace=BOB)
    await insert(tables, second, *first, turn, hidden, theirs)
    assert await tables.visible_units(ANN, ["fact", "episode"]) == [first[1], first[0], second]
    assert await tables.visible_units(ANN, ["turn"]) == [turn]
    assert await tables.visible_units(ANN, []) == []


async def test_namespaces_are_paged_in_order(tables):
    names = [Namespace(name) for name in ("acme-2/x", "acme/Zoe", "acme/ann", "acme/anna", "acme/bob")]
    async with tables.transaction(names):
        pass
    assert await tables.namespaces() == names
    assert await tables.namespaces("acme/") == names[1:]
    assert await tables.namespaces("acme/ann") == [names[2]]
    assert await tables.namespaces("acme/", names[2], 1) == [names[3]]
