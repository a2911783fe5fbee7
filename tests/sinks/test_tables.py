"""The tables keep what they are given and give it back: the ports' contract, on SQLite and PostgreSQL."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import uuid4

import numpy as np
import pytest

from lamina.streams.codec import decode
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Request
from lamina.streams.records import Change, Link, Status
from lamina.streams.topics import CHANGES

from .tables_kit import ANN, BOB, NOW, a_command, a_fact, a_thread, a_turn, an_exchange, ids, insert, later


async def test_a_unit_comes_back_as_it_was(tables):
    unit = a_turn(
        session="séance \x00 1",
        text="nul \x00, escape \ue000, both \ue000\x00\ue0000 and \U0001f9e0",
        speaker="Ann",
        keywords=("a", "b"),
        entities=("Köln",),
        subject="she \x00",
        relation="is",
        object="here",
        evidence=(uuid4(), uuid4()),
        said_at=datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        occurred_from=datetime(1, 1, 1, tzinfo=UTC),
        occurred_to=datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        valid_from=NOW,
        valid_to=later(1e-6),
        score=0.1 + 0.2,
        reason="kept",
        status=Status.GATED,
        time_source="future",
        metadata={"nested": {"list": [1, 2.5, None, "\x00"]}},
    )
    await insert(tables, unit)
    found = (await tables.units(ANN, [unit.id]))[unit.id]
    assert found == unit
    assert found.said_at.tzinfo is UTC


async def test_a_unit_is_inserted_once(tables):
    first, second = a_turn(text="first"), a_turn()
    async with tables.transaction([ANN]) as transaction:
        assert await transaction.insert_units([first, first]) == {first.id}
        again = first.model_copy(update={"text": "again"})
        assert await transaction.insert_units([again, second]) == {second.id}
        assert await transaction.insert_units([]) == set()
        assert (await transaction.units([first.id]))[first.id].text == "first"


async def test_an_update_never_rewrites_what_was_said(tables):
    turn, episode = a_turn(), a_turn(kind="episode", text="draft", evidence=(uuid4(),))
    await insert(tables, turn, episode)
    changed = {
        "namespace": BOB, "kind": "fact", "session": "other", "ordinal": 9, "position": 10_000,
        "text": "changed",
        "evidence": (), "said_at": later(5), "recorded_at": later(5), "role": "tool", "speaker": "x",
        "time_source": "missing",
    }  # fmt: skip
    news = {"status": Status.REMEMBERED, "version": 2, "visible": False, "keywords": ("k",), "score": 0.5}
    async with tables.transaction([ANN]) as transaction:
        await transaction.update_units([unit.model_copy(update=changed | news) for unit in (turn, episode)])
        found = await transaction.units([turn.id, episode.id])
    assert found[turn.id] == turn.model_copy(update=news)
    assert found[episode.id] == episode.model_copy(update=news | {"text": "changed"})


async def test_what_the_vector_store_lacks_is_marked_until_that_version_is_indexed(tables):
    seen, hidden = a_turn(), a_turn(visible=False)
    await insert(tables, seen, hidden)
    assert await tables.dirty_namespaces(10) == [ANN]
    async with tables.transaction([ANN]) as transaction:
        assert ids(await transaction.dirty(ANN, 10)) == [seen.id]
        await transaction.mark_indexed([seen])
        assert await transaction.dirty(ANN, 10) == []

        archived = seen.model_copy(update={"visible": False, "version": 2})
        await transaction.update_units([archived])
        assert await transaction.dirty(ANN, 10) == [archived]
        await transaction.mark_indexed([seen])  # an older version: what the store has is not this
        assert await transaction.dirty(ANN, 10) == [archived]
        await transaction.mark_indexed([archived])
        assert await transaction.dirty(ANN, 10) == []
    assert await tables.dirty_namespaces(10) == []


async def test_an_update_marks_only_what_the_vector_store_holds_or_held(tables):
    hidden, seen = a_turn(visible=False), a_turn()
    await insert(tables, hidden, seen)
    async with tables.transaction([ANN]) as transaction:
        await transaction.mark_indexed([seen])
        await transaction.update_units([hidden.model_copy(update={"score": 0.1})])
        await transaction.set_status([seen.id], Status.CONSOLIDATED)
        assert await transaction.dirty(ANN, 10) == []
        await transaction.update_units([hidden.model_copy(update={"visible": True})])
        assert ids(await transaction.dirty(ANN, 10)) == [hidden.id]
        await transaction.update_units([hidden.model_copy(update={"visible": False})])
        assert ids(await transaction.dirty(ANN, 10)) == [hidden.id]


async def test_the_status_of_turns_is_set_and_of_nothing_else(tables):
    turn, episode, other = a_turn(), a_turn(kind="episode"), a_turn()
    await insert(tables, turn, episode, other)
    async with tables.transaction([ANN]) as transaction:
        await transaction.set_status({turn.id, episode.id}, Status.REMEMBERED)
        await transaction.set_status([], Status.FAILED)
    expected = {turn.id: turn.model_copy(update={"status": Status.REMEMBERED}), episode.id: episode}
    assert await tables.units(ANN, [turn.id, episode.id, other.id]) == expected | {other.id: other}


async def test_dirty_units_come_by_position(tables):
    units = [a_turn() for _ in range(5)]
    await insert(tables, *reversed(units))
    async with tables.transaction([ANN]) as transaction:
        assert ids(await transaction.dirty(ANN, 3)) == ids(units[:3])


async def test_turns_are_found_by_their_place_in_their_session(tables):
    one = [a_turn(session="one", ordinal=n) for n in range(5)]
    two = [a_turn(session="two", ordinal=n) for n in range(2)]
    other = a_turn(BOB, session="one", ordinal=7)
    derived = a_turn(kind="episode", session="one", ordinal=6)
    await insert(tables, *one, *two, other, derived)
    async with tables.transaction([ANN]) as transaction:
        assert await transaction.session_length(ANN, "one") == 5
        assert await transaction.session_length(ANN, "none") == 0
        assert await transaction.session_slice(ANN, "one", 1, 3) == one[1:3]
        assert await transaction.last_turn(ANN) == two[-1]
        assert await transaction.last_turn(Namespace("acme/new")) is None
    places = [("one", 0), ("two", 1), ("one", 7), ("none", 0)]
    assert await tables.turns_at(ANN, places) == {("one", 0): one[0], ("two", 1): two[1]}
    assert await tables.turns_at(ANN, []) == {}


async def test_units_are_read_within_their_namespace_and_found_in_any(tables):
    mine, theirs, fact = a_turn(ANN), a_turn(BOB), a_fact("a", "b")
    await insert(tables, mine, theirs, fact)
    everything = [mine.id, theirs.id, fact.id, uuid4()]
    assert await tables.units(ANN, everything) == {mine.id: mine, fact.id: fact}
    assert await tables.find(everything) == {each.id: each for each in (mine, theirs, fact)}


async def test_positions_are_given_once_and_in_order(tables):
    async with tables.transaction([ANN, BOB]) as transaction:
        assert await transaction.position(ANN) == 0
        assert await transaction.advance(ANN, 3) == 1
        assert await transaction.advance(ANN, 2) == 4
        assert await transaction.position(ANN) == 5
        assert await transaction.advance(BOB, 1) == 1


async def test_a_namespace_that_is_not_locked_is_not_counted_up(tables):
    async with tables.transaction([ANN]) as transaction:
        with pytest.raises(ValueError, match="acme/bob"):
            await transaction.advance(BOB, 1)


async def test_a_link_that_exists_is_left_as_it_is(tables):
    a, b, c = uuid4(), uuid4(), uuid4()
    first = Link(namespace=ANN, source=a, target=b, type="semantic", weight=0.75)
    others = [
        Link(namespace=ANN, source=a, target=b, type="temporal"),
        Link(namespace=ANN, source=c, target=a, type="version"),
    ]
    async with tables.transaction([ANN]) as transaction:
        await transaction.insert_links([first])
        await transaction.insert_links([first.model_copy(update={"weight": 0.1}), *others])
        await transaction.insert_links([])
    expected = sorted([first, *others], key=lambda link: (link.source.hex, link.target.hex, link.type))
    assert await tables.links_of(ANN, a) == expected
    assert await tables.links_of(ANN, c) == [others[1]]
    assert await tables.links_of(BOB, a) == []


async def test_a_turn_names_the_visible_units_that_rest_on_it(tables):
    turn, unused = a_turn(), a_turn()
    old = a_turn(kind="episode", evidence=(turn.id,))
    new = a_turn(kind="episode", evidence=(unused.id, turn.id))
    fact = a_fact("a", "b", evidence=(turn.id, turn.id))
    await insert(tables, turn, unused, old, new, fact)
    async with tables.transaction([ANN]) as transaction:
        await transaction.update_units([old.model_copy(update={"visible": False, "version": 2})])
    found = await tables.derived_from(ANN, [turn.id, unused.id, fact.id])
    assert found == {turn.id: [new.id, fact.id], unused.id: [new.id], fact.id: []}
    assert await tables.derived_from(BOB, [turn.id]) == {turn.id: []}


async def test_only_visible_facts_of_the_very_pairs_are_found(tables):
    likes, lives = a_fact("ann", "likes"), a_fact("ann", "lives in")
    away = a_fact("ann", "likes", visible=False)
    theirs = a_fact("ann", "likes", namespace=BOB)
    episode = a_fact("ann", "likes", kind="episode")
    await insert(tables, likes, lives, away, theirs, episode, a_fact("bob", "lives in"))
    async with tables.transaction([ANN]) as transaction:
        pairs = [("ann", "likes"), ("ann", "lives in"), ("bob", "likes")]
        assert await transaction.visible_facts(ANN, pairs) == [likes, lives]
        assert await transaction.visible_facts(ANN, []) == []
        await transaction.update_units([lives.model_copy(update={"subject": "eve"})])
        assert ids(await transaction.visible_facts(ANN, [("eve", "lives in")])) == [lives.id]


async def test_live_exchanges_and_threads_come_in_the_order_of_their_first_save(tables):
    late, early, claimed = (
        an_exchange(said_at=later(9)),
        an_exchange(said_at=later(-9)),
        an_exchange("claimed"),
    )
    threads = [a_thread(heads=(uuid4(), uuid4())), a_thread(promoted=None)]
    async with tables.transaction([ANN, BOB]) as transaction:
        assert await transaction.recurrence_version(ANN) == 0
        await transaction.save_recurrence(ANN, [late, early, claimed], threads)
        await transaction.save_recurrence(BOB, [an_exchange()], [])
        pending = an_exchange(
            "pending", id=late.id, turns=late.turns, thread=threads[0].id, salience="identity"
        )
        grown = a_thread(id=threads[0].id, members=3, promoted=threads[0].promoted)
        await transaction.save_recurrence(ANN, [pending], [grown])
        rows = await transaction.recurrence(ANN)
        assert await transaction.recurrence_version(ANN) == 2
        assert await transaction.observed([claimed.id, late.id, uuid4()]) == {claimed.id, late.id}
    assert (await tables.thread(ANN, grown.id)).members == 3
    assert await tables.thread(BOB, grown.id) is None
    assert ids(rows.exchanges) == [late.id, early.id]
    assert ids(rows.threads) == ids(threads)
    first = rows.exchanges[0]
    assert (first.state, first.thread, first.salience) == ("pending", threads[0].id, "identity")
    assert (first.turns, first.said_at, first.observed_at) == (pending.turns, NOW, NOW)
    assert first.vector.dtype == np.float32
    assert np.array_equal(first.vector, pending.vector)
    assert rows.threads[0].heads == ()
    assert rows.threads[1].promoted is None
    assert np.array_equal(rows.threads[1].total, threads[1].total)


async def test_a_namespace_is_idle_when_one_of_its_threads_has_been_quiet(tables):
    promoted = {"promoted": uuid4()}
    quiet, busy, other = a_thread(**promoted), a_thread(**promoted), a_thread(**promoted)
    async with tables.transaction([ANN, BOB]) as transaction:
        await transaction.save_recurrence(
            ANN,
            [
                an_exchange("pending", thread=quiet.id, observed_at=later(0), salience=None),
                an_exchange("pending", thread=busy.id, observed_at=later(0), salience=None),
                an_exchange("pending", thread=busy.id, observed_at=later(60), salience=None),
            ],
            [quiet, busy],
        )
        await transaction.save_recurrence(
            BOB,
            [
                an_exchange("pending", thread=other.id, observed_at=later(-60), salience=None),
                an_exchange("pending", thread=other.id, observed_at=later(60), salience=None),
                an_exchange("claimed", thread=other.id, observed_at=later(0), salience=None),
            ],
            [other],
        )
    assert await tables.idle_namespaces(later(0), later(0), 10) == []
    assert await tables.idle_namespaces(later(1), later(1), 10) == [ANN]
    assert await tables.idle_namespaces(later(0), later(61), 10) == [], "none of them presses"
    assert await tables.idle_namespaces(later(61), later(61), 10) == [ANN, BOB]
    assert await tables.idle_namespaces(later(61), later(61), 1) == [ANN]


async def test_a_thread_without_an_episode_or_with_something_salient_presses(tables):
    new, known = a_thread(promoted=None), a_thread(promoted=uuid4())
    async with tables.transaction([ANN, BOB]) as transaction:
        waiting = an_exchange("pending", thread=new.id, observed_at=later(0), salience=None)
        await transaction.save_recurrence(ANN, [waiting], [new])
        salient = [
            an_exchange("pending", thread=known.id, observed_at=later(0), salience="safety"),
            an_exchange("pending", thread=known.id, observed_at=later(1), salience=None),
        ]
        await transaction.save_recurrence(BOB, salient, [known])
    assert await tables.idle_namespaces(later(0), later(1), 10) == [ANN]
    assert await tables.idle_namespaces(later(0), later(2), 10) == [ANN, BOB]


async def test_changes_are_numbered_by_namespace_and_wait_in_the_outbox(tables):
    mine, theirs = a_turn(ANN, version=3), a_turn(BOB)
    async with tables.transaction([ANN, BOB]) as transaction:
        first = await transaction.record_changes([(mine, "created"), (theirs, "created")], NOW)
        second = await transaction.record_changes([(mine, "updated"), (mine, "archived")], later(1))
        assert await transaction.record_changes([], NOW) == []
    assert [change.seq for change in first + second] == [1, 1, 2, 3]
    assert first[0] == Change(
        namespace=ANN, seq=1, type="created", unit_id=mine.id, kind="turn", version=3, at=NOW
    )
    rows = await tables.outbox(10)
    assert [row.record.topic for row in rows] == [CHANGES] * 4
    assert [row.record.key for row in rows] == [ANN, BOB, ANN, ANN]
    assert [decode(Change, row.record.value) for row in rows] == first + second
    assert [row.record.headers for row in rows] == [{}] * 4


async def test_a_published_row_is_gone_and_its_number_never_given_again(tables):
    async def put() -> list[int]:
        async with tables.transaction([ANN]) as transaction:
            await transaction.record_changes([(a_turn(), "created"), (a_turn(), "created")], NOW)
        return [row.id for row in await tables.outbox(10)]

    old = await put()
    assert [row.id for row in await tables.outbox(1)] == old[:1]
    await tables.published(old)
    new = await put()
    await tables.published(old)  # the answer to the first call was lost
    assert [row.id for row in await tables.outbox(10)] == new
    assert min(new) > max(old)


async def test_unfinished_turns_are_paged_by_namespace_and_position(tables):
    zoe = Namespace("acme/Zoe")  # sorts before `ann` by code point, after it by most languages
    units = [a_turn(name, status=Status.ADMITTED) for name in (zoe, zoe, ANN, ANN, BOB)]
    done = [a_turn(status=status) for status in Status if status.terminal]
    await insert(tables, *units, *done, a_turn(kind="episode", status=Status.ACCEPTED))
    pages, after = [], None
    while page := await tables.unfinished_turns(after, 2):
        pages.append(page)
        after = (page[-1].namespace, page[-1].position)
    assert [unit for page in pages for unit in page] == units
    assert [len(page) for page in pages] == [2, 2, 1]


async def test_only_a_turn_that_is_not_terminal_can_fail(tables):
    open_turn, done = a_turn(), a_turn(status=Status.REMEMBERED)
    await insert(tables, open_turn, done)
    for turn in (open_turn, done):
        await tables.fail_turn(BOB, turn.id, "wrong namespace")
        await tables.fail_turn(ANN, turn.id, "malformed \x00")
    found = await tables.find([open_turn.id, done.id])
    assert (found[open_turn.id].status, found[open_turn.id].reason) == (Status.FAILED, "malformed \x00")
    assert found[done.id] == done


async def test_a_request_is_recorded_once(tables):
    request = Request(uuid4(), ANN, "digest", (uuid4(), uuid4()), NOW)
    assert await tables.request(request.id) is None
    assert await tables.record_request(request) == request
    assert await tables.record_request(Request(request.id, BOB, "other", (), later(1))) == request
    assert await tables.request(request.id) == request


async def test_requests_are_found_together(tables):
    first, second = (Request(uuid4(), ANN, "digest", (uuid4(),), NOW) for _ in range(2))
    async with tables.transaction([ANN]) as transaction:
        assert await transaction.record_request(first) == first
    await tables.record_request(second)
    found = await tables.requests([first.id, second.id, uuid4()])
    assert found == {first.id: first, second.id: second}


async def test_marks_are_made_found_and_dropped_by_age(tables):
    old, young, other = uuid4(), uuid4(), uuid4()
    async with tables.transaction([ANN]) as transaction:
        await transaction.mark(ANN, [old], NOW)
    await tables.mark(ANN, [old, young], later(60))
    assert await tables.marked([old, young, other]) == {old, young}
    assert await tables.drop_marks(later(30), 10) == 1
    assert await tables.marked([old, young]) == {young}
    await tables.mark(ANN, [other], later(60))
    assert await tables.drop_marks(later(61), 1) == 1
    await tables.unmark([young, other])
    assert await tables.marked([young, other]) == set()


async def test_faults_are_counted_by_record(tables):
    assert [await tables.count_fault("turns/0/7/ab", "boom") for _ in range(3)] == [1, 2, 3]
    assert await tables.count_fault("turns/0/8/cd", "boom") == 1


async def test_the_tally_counts_a_tenant_and_everything(tables):
    other = Namespace("acme-2/ann")
    await insert(
        tables,
        a_turn(status=Status.REMEMBERED),
        a_turn(recorded_at=later(-5)),
        a_turn(other, status=Status.ADMITTED, recorded_at=later(-9)),
        a_fact("a", "b"),
        a_fact("a", "b", visible=False),
    )
    async with tables.transaction([ANN, other]) as transaction:
        await transaction.save_recurrence(ANN, [an_exchange("pending"), an_exchange()], [])
        await transaction.issue_commands([a_command(), a_command(other)])
    everything, tenant = await tables.tally(), await tables.tally("acme/")
    assert (everything.turns["remembered"], everything.turns["admitted"], everything.turns["failed"]) == (
        1,
        1,
        0,
    )
    assert (tenant.turns["accepted"], tenant.turns["admitted"]) == (1, 0)
    assert tenant.derived == {"episode": 0, "fact": 1, "abstract": 0}
    assert (everything.commands["issued"], tenant.commands["issued"]) == (2, 1)
    assert (everything.outbox_waiting, tenant.outbox_waiting) == (2, 1)
    assert (everything.index_waiting, tenant.index_waiting) == (4, 3)
    assert tenant.merges_waiting == 1
    assert (everything.oldest_unfinished, tenant.oldest_unfinished) == (later(-9), later(-5))
    assert (await tables.tally("nobody/")).oldest_unfinished is None


async def test_a_batch_may_be_larger_than_a_statement_takes(tables):
    units = [a_turn(ordinal=n) for n in range(3_000)]
    links = [Link(namespace=ANN, source=unit.id, target=uuid4(), type="semantic") for unit in units] * 3
    async with tables.transaction([ANN]) as transaction:
        assert len(await transaction.insert_units(units)) == 3_000
        await transaction.insert_links(links)
        await transaction.update_units(units)
        await transaction.mark_indexed(units)
    unknown = [uuid4() for _ in range(35_000)]
    assert len(await tables.units(ANN, [*unknown, *ids(units)])) == 3_000
    assert len(await tables.turns_at(ANN, [("s1", n) for n in range(5_000)])) == 3_000


async def test_an_exception_leaves_nothing_behind(tables):
    turn = a_turn()
    with pytest.raises(KeyError):
        async with tables.transaction([ANN]) as transaction:
            await transaction.advance(ANN, 5)
            await transaction.insert_units([turn])
            await transaction.issue_commands([a_command()])
            await transaction.record_changes([(turn, "created")], NOW)
            raise KeyError
    assert await tables.units(ANN, [turn.id]) == {}
    assert await tables.outbox(10) == []
    async with tables.transaction([ANN]) as transaction:
        assert await transaction.position(ANN) == 0


async def test_marking_for_the_index_marks_what_is_visible(tables):
    shown, hidden = a_turn(visible=True), a_turn(visible=False)
    await insert(tables, shown, hidden)
    async with tables.transaction([ANN]) as transaction:
        await transaction.mark_indexed([shown, hidden])
        assert await transaction.dirty(ANN, 10) == []
    assert await tables.mark_for_index() == 1
    assert await tables.unindexed([shown.id, hidden.id]) == {shown.id}
    async with tables.transaction([ANN]) as transaction:
        assert ids(await transaction.dirty(ANN, 10)) == [shown.id]
