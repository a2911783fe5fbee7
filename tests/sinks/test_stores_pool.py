"""The contract of `VectorStore.pool`, kept by every store."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from lamina.sinks.in_memory import InMemoryStore
from lamina.sinks.qdrant_edge import EdgeStore, open_edge
from lamina.streams.errors import WrongDimension
from lamina.streams.late_interaction import QuestionTokens, TokenVectors, quantised
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Before, Leaf, Point, PoolQuery, Query
from lamina.streams.recall.auto.traits import TRAITS

ANA, BEN = Namespace("acme/ana"), Namespace("acme/ben")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DIMENSION = 8
TRAIT_VALUES = tuple(range(1, len(TRAITS) + 1))


@pytest.fixture(params=["memory", "edge"])
async def open_store(request, tmp_path):
    """Open the store; again: as after a restart (memory has none, so it is the same)."""
    memory, opened = InMemoryStore(DIMENSION), list[EdgeStore]()

    async def open_one(**options):
        if request.param == "memory":
            return memory
        for each in opened:
            await each.close()
        opened.append(await open_edge(tmp_path, "t", DIMENSION, **options))
        return opened[-1]

    yield open_one
    for each in opened:
        await each.close()


def towards(*degrees, width=DIMENSION):
    rows = np.zeros((len(degrees), width), np.float32)
    rows[:, 0], rows[:, 1] = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return rows


def a_turn(number, words="tea", *, degrees=80.0, token=None, ordinal=None, **changes):
    tokens = None
    if token is not None:
        tokens = TokenVectors(np.array([number], np.uint16), quantised(towards(token, width=4)))
    leaf = a_leaf(number if ordinal is None else ordinal, words, tokens)
    point = Point(UUID(int=number), ANA, "turn", "s", "Ana", NOON, towards(degrees)[0], leaf=leaf)
    return replace(point, **changes)


def a_leaf(ordinal, words, tokens=None, before=None):
    seen = Counter(words.split())
    return Leaf(ordinal, tuple(seen), tuple(seen.values()), TRAIT_VALUES, tokens, before)


def asking(*words, token=None, namespace=ANA, limit=10, around=0, **filters):
    tokens = None
    if token is not None:
        tokens = QuestionTokens(np.array([1, 2], np.uint16), towards(token, token + 90, width=4))
    nearest = Query(namespace, towards(0)[0], ("turn",), limit, **filters)
    return PoolQuery(nearest, words, tokens, words=100, around=around)


def numbers(pool):
    return sorted(turn.int for turn in pool.ids)


async def test_a_pool_holds_everything_that_was_written_of_a_turn(open_store):
    store = await open_store()
    later = NOON + timedelta(hours=1, microseconds=250)
    await store.upsert(
        [a_turn(1, "tea cup", degrees=60, token=0), a_turn(2, "tea", token=45, speaker="Ben", said_at=later)]
    )
    pool = await store.pool(asking("cup", token=0))
    order = np.argsort([turn.int for turn in pool.ids])
    assert numbers(pool) == [1, 2]
    assert pool.cosine[order] == pytest.approx(np.cos(np.radians([60, 80])), abs=1e-5)
    assert (pool.words[order] > 0).tolist() == [True, False]
    assert pool.ordinal[order].tolist() == [1, 2]
    assert pool.said_at[order] == pytest.approx([NOON.timestamp(), later.timestamp()], abs=1e-6)
    assert pool.latest == pytest.approx(later.timestamp(), abs=1e-6)
    assert [pool.speakers[n] for n in pool.speaker[order]] == ["Ana", "Ben"]
    assert pool.traits[order].tolist() == [list(TRAIT_VALUES)] * 2
    best = np.cos(np.radians([[0, 45], [90, 45]]))
    assert pool.similarity[:, order] == pytest.approx(best, abs=0.01)
    assert pool.idf == pytest.approx([np.log(1 + 1.5 / 1.5)] * 2, abs=1e-6)


async def test_what_is_written_or_deleted_after_a_question_counts_for_the_next(open_store):
    store = await open_store()
    await store.upsert([a_turn(n, token=n) for n in (1, 2, 3)])
    assert numbers(await store.pool(asking("tea"))) == [1, 2, 3]
    await store.upsert([a_turn(4), a_turn(1, "cup"), a_turn(5, namespace=BEN)])
    await store.delete([UUID(int=2), UUID(int=77)])
    assert numbers(await store.pool(asking("tea", limit=0))) == [3, 4]
    assert numbers(await store.pool(asking("cup", limit=0))) == [1]
    assert numbers(await store.pool(asking("tea", namespace=BEN))) == [5]
    await store.upsert([a_turn(3, namespace=BEN)])
    assert numbers(await store.pool(asking("tea"))) == [1, 4]


async def test_a_gated_turn_comes_with_the_turn_after_it(open_store):
    store = await open_store()
    tokens = TokenVectors(np.array([7], np.uint16), quantised(towards(0, width=4)))
    before = Before(UUID(int=90), "Ben", NOON - timedelta(minutes=1), a_leaf(4, "tea tea", tokens))
    await store.upsert([a_turn(5, token=90, leaf=a_leaf(5, "cup", tokens, before)), a_turn(7, "cup")])
    for _ in range(2):
        pool = await store.pool(asking("cup", token=0, around=1))
        context = dict(zip((turn.int for turn in pool.ids), pool.context.tolist(), strict=True))
        assert context == {5: False, 7: False, 90: True}
        place = [turn.int for turn in pool.ids].index(90)
        assert pool.similarity[0, place] == pytest.approx(1, abs=0.01)
        assert pool.speakers[pool.speaker[place]] == "Ben"
        assert pool.said_at[place] == before.said_at.timestamp()
        store = await open_store()
    await store.delete([UUID(int=5)])
    assert numbers(await store.pool(asking("cup", "tea", token=0, around=1))) == [7]


async def test_a_restart_changes_nothing(open_store):
    store = await open_store()
    await store.upsert([a_turn(n, token=20 * n, degrees=30 + n) for n in range(1, 30)])
    before = await store.pool(asking("tea", token=10))
    after = await (await open_store()).pool(asking("tea", token=10))
    place = {turn: n for n, turn in enumerate(after.ids)}
    same = [place[turn] for turn in before.ids]
    assert np.array_equal(before.similarity, after.similarity[:, same])
    assert np.array_equal(before.words, after.words[same])
    assert np.array_equal(before.cosine, after.cosine[same], equal_nan=True)


async def test_namespaces_share_nothing_not_even_how_rare_a_word_is(open_store):
    store = await open_store()
    await store.upsert([a_turn(1, "tea cup"), a_turn(2, "cup")])
    alone = await store.pool(asking("tea", "cup"))
    await store.upsert([a_turn(n, "tea", namespace=BEN) for n in range(10, 60)])
    again = await store.pool(asking("tea", "cup"))
    assert numbers(again) == [1, 2]
    assert again.words.tolist() == alone.words.tolist()
    assert len(await store.pool(asking("tea", namespace=Namespace("acme/nobody")))) == 0


async def test_other_kinds_and_turns_without_a_leaf_are_no_candidates(open_store):
    store = await open_store()
    await store.upsert([a_turn(1), a_turn(2, leaf=None), a_turn(3, kind="fact", leaf=None)])
    assert numbers(await store.pool(asking("tea"))) == [1]


async def test_the_nearest_of_other_kinds_come_along_where_they_are_asked_for(open_store):
    store = await open_store()
    facts = [a_turn(n, kind="fact", leaf=None, degrees=10.0 * n) for n in (5, 3, 7)]
    await store.upsert([a_turn(1), *facts, a_turn(9, kind="fact", leaf=None, namespace=BEN)])
    query = asking("tea")
    asked = replace(query, derived=replace(query.nearest, kinds=("fact",), limit=2))
    pool = await store.pool(asked)
    assert numbers(pool) == [1]
    assert [unit.int for unit, _ in pool.derived] == [3, 5]
    assert [cosine for _, cosine in pool.derived] == pytest.approx(np.cos(np.radians([30, 50])), abs=1e-5)
    assert (await store.pool(query)).derived == ()


async def test_the_time_that_a_question_names_has_candidates_of_its_own(open_store):
    store = await open_store()
    await store.upsert(
        [a_turn(n, degrees=float(n), said_at=NOON + timedelta(days=n), session=str(n)) for n in range(1, 30)]
    )
    query = asking("tea", limit=2)
    days = {"said_from": NOON + timedelta(days=20), "said_to": NOON + timedelta(days=25)}
    asked = replace(query, words=3, within=replace(query.nearest, **days))
    assert numbers(await store.pool(replace(asked, within=None))) == [1, 2, 3]
    assert numbers(await store.pool(asked)) == [1, 2, 3, 20, 21, 22]


async def test_filters_hold_but_for_neighbours(open_store):
    store = await open_store()
    await store.upsert(
        [a_turn(n, said_at=NOON + timedelta(minutes=n), speaker="Ben" if n % 2 else "Ana") for n in range(6)]
    )
    assert numbers(await store.pool(asking("tea", speakers=("Ben",)))) == [1, 3, 5]
    until = {"said_to": NOON + timedelta(minutes=3)}
    assert numbers(await store.pool(asking("tea", speakers=("Ben",), around=1, **until))) == [0, 1, 2, 3]
    assert numbers(await store.pool(asking("tea", said_from=NOON + timedelta(minutes=4)))) == [4, 5]
    assert numbers(await store.pool(asking("tea", sessions=("other",)))) == []


async def test_many_namespaces_are_answered_with_memory_for_few(open_store):
    store = await open_store(cache_mb=1)
    some = [Namespace(f"acme/u{n}") for n in range(12)]
    long = quantised(towards(*range(0, 180, 2), width=128))
    tokens = TokenVectors(np.arange(90, dtype=np.uint16), np.tile(long, (3, 1)))
    for n, namespace in enumerate(some):
        leaf = a_leaf(0, f"tea word{n}", tokens)
        await store.upsert(
            [a_turn(100 * n + m, namespace=namespace, leaf=replace(leaf, ordinal=m)) for m in range(1, 6)]
        )
    for _ in range(2):
        for n, namespace in enumerate(some):
            pool = await store.pool(asking(f"word{n}", namespace=namespace))
            assert numbers(pool) == [100 * n + m for m in range(1, 6)]
    await store.delete([UUID(int=1)])
    assert numbers(await store.pool(asking("tea", namespace=some[0]))) == [2, 3, 4, 5]


async def test_a_question_of_another_dimension_is_refused(open_store):
    store = await open_store()
    query = asking("tea")
    if isinstance(store, InMemoryStore):
        await store.upsert([a_turn(1)])
    with pytest.raises(WrongDimension):
        await store.pool(replace(query, nearest=replace(query.nearest, dense=np.ones(3, np.float32))))
