"""The contract of the VectorStore port, kept by every store."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from lamina.sinks.in_memory import InMemoryStore
from lamina.sinks.qdrant_edge import open_edge
from lamina.streams.errors import WrongDimension
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Point, Query

ANA, BEN = Namespace("acme/ana"), Namespace("acme/ben")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALL_KINDS = ("turn", "episode", "fact", "abstract")
DIMENSION = 8


@pytest.fixture(params=["memory", "edge"])
async def store(request, tmp_path):
    store = (
        InMemoryStore(DIMENSION) if request.param == "memory" else await open_edge(tmp_path, "t", DIMENSION)
    )
    yield store
    await store.close()


def towards(degrees):
    """A unit vector whose cosine with `towards(0)` is that of the angle."""
    vector = np.zeros(DIMENSION, np.float32)
    vector[:2] = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return vector


def a_point(number, degrees=0.0, **changes):
    point = Point(UUID(int=number), ANA, "turn", "s1", "Ana", NOON, towards(degrees))
    return replace(point, **changes)


def a_query(**changes):
    return replace(Query(ANA, towards(0), ALL_KINDS, 10), **changes)


async def found(store, **changes):
    [hits] = await store.search([a_query(**changes)])
    return [hit.id.int for hit in hits]


async def test_the_nearest_come_first_with_their_cosine(store):
    await store.upsert([a_point(1, 80), a_point(2, 10), a_point(3, 40), a_point(4, 170)])

    [hits] = await store.search([a_query(limit=3)])

    assert [hit.id.int for hit in hits] == [2, 3, 1]
    assert [hit.score for hit in hits] == pytest.approx(np.cos(np.radians([10, 40, 80])), abs=2e-6)


async def test_vectors_of_any_length_are_compared_by_cosine(store):
    await store.upsert([a_point(1, dense=towards(60) * 5), a_point(2, dense=towards(30) * 0.1)])

    [hits] = await store.search([a_query(dense=towards(0) * 3)])

    assert [hit.id.int for hit in hits] == [2, 1]
    assert [hit.score for hit in hits] == pytest.approx(np.cos(np.radians([30, 60])), abs=2e-6)


async def test_ties_are_ordered_by_id_also_where_the_limit_cuts_through_them(store):
    numbers = [int(n) for n in np.random.default_rng(1).permutation(100) + 1]
    await store.upsert([a_point(n, 20) for n in numbers])
    await store.upsert([a_point(500, 0)])

    assert await found(store, limit=5) == [500, 1, 2, 3, 4]


async def test_the_same_points_in_another_order_give_the_same_answer(store):
    angles = np.random.default_rng(2).integers(0, 20, 200)
    points = [a_point(n + 1, float(angle)) for n, angle in enumerate(angles)]
    await store.upsert(points)
    first = await store.search([a_query(limit=n) for n in (1, 7, 50, 300)])

    await store.delete([p.id for p in points])
    await store.upsert(points[::-1])

    assert await store.search([a_query(limit=n) for n in (1, 7, 50, 300)]) == first
    assert [len(hits) for hits in first] == [1, 7, 50, 200]


async def test_an_upsert_replaces_vector_and_payload(store):
    await store.upsert([a_point(1, 80), a_point(2, 40)])
    await store.upsert([a_point(1, 10, session="s2")])

    assert await found(store) == [1, 2]
    assert await found(store, sessions=("s1",)) == [2]
    assert await store.count() == 2


async def test_a_batch_that_names_a_point_twice_keeps_the_last(store):
    await store.upsert([a_point(1, 10), a_point(2, 20), a_point(1, 30)])

    assert await found(store) == [2, 1]


async def test_a_point_that_moves_to_another_namespace_leaves_the_first(store):
    await store.upsert([a_point(1), a_point(2)])
    await store.upsert([a_point(1, namespace=BEN)])

    assert await found(store) == [2]
    assert await found(store, namespace=BEN) == [1]


async def test_namespaces_never_mix(store):
    await store.upsert([a_point(1), a_point(2, namespace=BEN), a_point(3, namespace=Namespace("acme/an"))])

    assert await found(store) == [1]
    assert await found(store, namespace=BEN) == [2]
    assert await found(store, namespace=Namespace("acme/nobody")) == []


async def test_every_filter_holds_alone_and_with_the_others(store):
    await store.upsert(
        [
            a_point(1, kind="fact"),
            a_point(2, session="s2"),
            a_point(3, speaker="Ben"),
            a_point(4, said_at=NOON - timedelta(hours=1)),
            a_point(5, said_at=NOON + timedelta(microseconds=1)),
        ]
    )

    assert await found(store) == [1, 2, 3, 4, 5]
    assert await found(store, kinds=("fact",)) == [1]
    assert await found(store, kinds=("fact", "turn")) == [1, 2, 3, 4, 5]
    assert await found(store, kinds=()) == []
    assert await found(store, sessions=("s2", "none")) == [2]
    assert await found(store, speakers=("Ben",)) == [3]
    assert await found(store, said_from=NOON) == [1, 2, 3, 5]
    assert await found(store, said_to=NOON) == [1, 2, 3, 4]
    assert await found(store, said_from=NOON, said_to=NOON) == [1, 2, 3]
    assert await found(store, said_from=NOON, said_to=NOON, kinds=("turn",), sessions=("s1",)) == [3]
    assert await found(store, said_from=datetime.fromisoformat("2026-03-01T14:00:00+02:00")) == [1, 2, 3, 5]


async def test_times_before_1970_are_times(store):
    await store.upsert([a_point(1, said_at=datetime(1969, 7, 20, tzinfo=UTC)), a_point(2)])

    assert await found(store, said_to=datetime(1970, 1, 1, tzinfo=UTC)) == [1]


async def test_filtered_out_points_take_no_place_of_the_limit(store):
    await store.upsert([a_point(n, 1, session="other") for n in range(1, 101)])
    await store.upsert([a_point(n, 60) for n in range(101, 104)])

    assert await found(store, sessions=("s1",), limit=3) == [101, 102, 103]


async def test_deleted_points_are_gone_and_unknown_ids_are_ignored(store):
    await store.upsert([a_point(n, n) for n in range(1, 6)])

    await store.delete([UUID(int=2), UUID(int=5), UUID(int=99)])

    assert await found(store) == [1, 3, 4]
    assert await store.count() == 3
    await store.upsert([a_point(2, 2)])
    assert await found(store) == [1, 2, 3, 4]


async def test_present_tells_which_ids_are_held(store):
    await store.upsert([a_point(1), a_point(2, namespace=BEN)])

    assert await store.present([UUID(int=n) for n in (1, 2, 3)]) == {UUID(int=1), UUID(int=2)}
    assert await store.present([]) == set()


async def test_a_point_is_as_near_as_the_better_of_its_words_and_its_summary(store):
    await store.upsert(
        [a_point(1, 80, summary=towards(10)), a_point(2, 20), a_point(3, 5, summary=towards(90))]
    )

    [hits] = await store.search([a_query()])

    assert [hit.id.int for hit in hits] == [3, 1, 2]
    assert [hit.score for hit in hits] == pytest.approx(np.cos(np.radians([5, 10, 20])), abs=2e-6)
    assert await found(store, words_only=True) == [3, 2, 1]


async def test_the_best_of_words_and_summaries_together_are_exact_under_a_limit_and_through_ties(store):
    angles = np.random.default_rng(3).integers(0, 30, (200, 2))
    points = [
        a_point(n + 1, float(words), summary=towards(float(summary)) if n % 3 == 0 else None)
        for n, (words, summary) in enumerate(angles)
    ]
    await store.upsert(points)
    [whole] = await store.search([a_query(limit=300)])

    assert len(whole) == len({hit.id for hit in whole}) == 200
    for limit in (1, 7, 40, 150):
        assert await store.search([a_query(limit=limit)]) == [whole[:limit]]


async def test_a_summary_obeys_every_filter_and_leaves_with_its_point(store):
    near = {"summary": towards(0)}
    await store.upsert(
        [a_point(1, 80, **near), a_point(2, 80, namespace=BEN, **near), a_point(3, 80, kind="fact", **near)]
    )
    await store.upsert([a_point(4, 80, session="s2", speaker="Ben", **near)])

    assert await found(store, kinds=("turn",)) == [1, 4]
    assert await found(store, sessions=("s2",), speakers=("Ben",)) == [4]
    assert await found(store, namespace=BEN) == [2]
    await store.upsert([a_point(1, 80), a_point(5, 40)])
    assert await found(store, kinds=("turn",)) == [4, 5, 1]
    await store.delete([UUID(int=4)])
    assert await found(store, kinds=("turn",)) == [5, 1]


async def test_the_vectors_of_words_can_be_read_back_at_unit_length(store):
    await store.upsert([a_point(1, 30, summary=towards(10)), a_point(2, dense=towards(60) * 5)])

    held = await store.vectors([UUID(int=n) for n in (2, 1, 9)])

    assert set(held) == {UUID(int=1), UUID(int=2)}
    assert held[UUID(int=1)] == pytest.approx(towards(30), abs=1e-6)
    assert held[UUID(int=2)] == pytest.approx(towards(60), abs=1e-6)
    assert await store.vectors([]) == {}


async def test_nothing_asked_is_nothing_answered(store):
    await store.upsert([])
    await store.delete([])

    assert await store.search([]) == []
    assert await store.count() == 0
    await store.upsert([a_point(1)])
    assert await found(store, limit=0) == []


async def test_many_queries_are_answered_in_their_order(store):
    await store.upsert([a_point(n, n, namespace=ANA if n % 2 else BEN) for n in range(1, 41)])

    answers = await store.search(
        [a_query(dense=towards(n), namespace=ANA if n % 2 else BEN, limit=1) for n in range(1, 41)]
    )

    assert [hits[0].id.int for hits in answers] == list(range(1, 41))


async def test_large_upserts_and_answers_are_whole(store):
    points = [a_point(n, n * 0.01) for n in range(1, 3001)]
    await store.upsert(points)

    assert await store.count() == 3000
    assert len(await found(store, limit=5000)) == 3000
    assert await store.present([p.id for p in points]) == {p.id for p in points}
    await store.delete([p.id for p in points[:2500]])
    assert await store.count() == 500


async def test_a_vector_of_another_dimension_is_refused_and_nothing_written(store):
    with pytest.raises(WrongDimension, match="dimension 8"):
        await store.upsert([a_point(1), a_point(2, dense=np.ones(9, np.float32))])
    with pytest.raises(WrongDimension):
        await store.upsert([a_point(1, summary=np.ones(9, np.float32))])
    with pytest.raises(WrongDimension):
        await store.search([a_query(dense=np.ones(7, np.float32))])

    assert await store.count() == 0
