"""`chain` on an example worked by hand (Chain-of-Memory §3.2).

With q = (1, 0, 0):

    turn  vector              cos q    cos a    cos b    cos c
    a     (.8, .6, 0)         .8
    b     (.6, .8, 0)         .6       .96
    c     (.64, 0, .76837)    .64      .512     .384
    d     (.1, 0, .99499)     .1       .08      .06      .82852
"""

import numpy as np
import pytest

from lamina.streams.recall.chain import chain, gate
from lamina.streams.recall.options import Chain

from .recall_kit import a_unit, asked, id_of, names

VECTORS = {
    "a": (0.8, 0.6, 0.0),
    "b": (0.6, 0.8, 0.0),
    "c": (0.64, 0.0, np.sqrt(1 - 0.64**2)),
    "d": (0.1, 0.0, np.sqrt(1 - 0.1**2)),
}


@pytest.fixture
async def four(memory):
    await memory.keep(*((a_unit(name, minute=n), vector) for n, (name, vector) in enumerate(VECTORS.items())))
    return memory


async def scores(memory, **options):
    found = await chain(asked(), memory.sources, Chain(**{"anchors": 1, "context": "last", **options}))
    return {one.unit.text: round(one.score, 4) for one in found}


async def test_one_chain_takes_the_best_successor_until_the_score_falls(four):
    """S(b|a) = .6·.96 = .576 ≥ ½·.8; then S(c|b) = .64·.384 = .2458 < ½·.576: the chain ends."""
    assert await scores(four) == {"a": 0.8, "b": 0.576}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # then S(d|c) = .1·.82852
        ({"truncation": False}, {"a": 0.8, "b": 0.576, "c": 0.2458, "d": 0.0829}),
        ({"beta": 0.3}, {"a": 0.8, "b": 0.576, "c": 0.2458, "d": 0.0829}),
        ({"beta": 0.35}, {"a": 0.8, "b": 0.576, "c": 0.2458}),
        ({"beta": 0.8}, {"a": 0.8}),
        # c before b, by the question alone; .1 < ½·.6
        ({"gate": "query"}, {"a": 0.8, "c": 0.64, "b": 0.6}),
        # cos(a, b) = .96; .384 < ½·.96
        ({"gate": "context"}, {"b": 0.96, "a": 0.8}),
        # ½·(.6 + .96), then ½·(.64 + .384), then ½·(.1 + .82852)
        ({"gate": "weighted"}, {"a": 0.8, "b": 0.78, "c": 0.512, "d": 0.4643}),
        ({"gate": "weighted", "weight": 1.0}, {"a": 0.8, "c": 0.64, "b": 0.6}),
        # mean of a and b: (.7071, .7071, 0), whose cosine with c is .4525: .64·.4525 = .2896 ≥ .288;
        # mean of a, b, c: (.68, .4667, .2561)/.8637, whose cosine with d is .3738: .0374 < .1448
        ({"context": "mean"}, {"a": 0.8, "b": 0.576, "c": 0.2896}),
        ({"chained": False}, {"a": 0.8, "c": 0.64, "b": 0.6, "d": 0.1}),
        ({"chained": False, "pool": 2}, {"a": 0.8, "c": 0.64}),
        # the pool of two holds a and c: .64·.512 = .3277 < .4
        ({"pool": 2}, {"a": 0.8}),
    ],
)
async def test_each_switch_changes_what_it_names(four, options, expected):
    found = await scores(four, **options)
    assert found == expected
    assert list(found) == list(expected)


async def test_chains_share_turns_and_none_holds_one_twice(four):
    """The second chain begins at c: S(a|c) = .8·.512 = .4096 ≥ ½·.64, S(b|a) = .576, S(d|b) = .006."""
    found = await chain(asked(), four.sources, Chain(anchors=2, context="last"))
    told = {one.unit.text: one.why for one in found}
    assert names(found) == ["a", "c", "b"]
    assert (told["a"]["chain"], told["a"]["step"], told["a"]["chains"]) == (1, 0, 2)
    assert (told["c"]["chain"], told["c"]["step"], told["c"]["chains"]) == (2, 0, 1)
    assert (told["b"]["chain"], told["b"]["step"], told["b"]["chains"]) == (1, 1, 2)
    assert told["b"]["after"] == str(id_of("a"))
    assert told["b"]["consistency"] == pytest.approx(0.96, abs=1e-6)
    assert "after" not in told["a"]


async def test_the_context_is_the_text_of_the_whole_chain_embedded_again(four):
    """Told that "a, b" has c's vector, the chain goes on to c: S = .64·1 ≥ ½·.576; "a, b, c" has none."""
    four.embedder.vectors = {"ada: a": VECTORS["a"], "ada: a\nada: b": VECTORS["c"]}
    found = await chain(asked(), four.sources, Chain(anchors=1))
    assert {one.unit.text: round(one.score, 4) for one in found} == {"a": 0.8, "c": 0.64, "b": 0.576}
    assert four.embedder.texts == ["ada: a", "ada: a\nada: b", "ada: a\nada: b\nada: c"]


async def test_a_chain_that_is_longer_than_the_model_reads_is_not_embedded_again(four):
    """Told that "a" and "a, b" are the same to the model, it is not asked for "a, b, c"."""
    four.embedder.vectors = {"ada: a": VECTORS["a"], "ada: a\nada: b": VECTORS["a"]}
    found = await chain(asked(), four.sources, Chain(anchors=1, truncation=False))
    assert four.embedder.texts == ["ada: a", "ada: a\nada: b"]
    # S(c|a) = .64·.512, S(d|a) = .1·.08
    assert [round(one.score, 4) for one in found] == [0.8, 0.576, 0.3277, 0.008]


async def test_two_negative_cosines_make_no_high_score_and_nothing_follows_zero(memory):
    assert gate(-0.5, -0.5, Chain()) == 0
    assert gate(-0.5, 0.9, Chain(gate="weighted")) == pytest.approx(0.45)
    far = (-0.6, 0.8, 0.0)
    await memory.keep((a_unit("one"), (-0.6, -0.8, 0.0)), (a_unit("two", minute=1), far))
    found = await chain(asked(), memory.sources, Chain(anchors=1, context="last"))
    assert len(found) == 1


async def test_nodes_are_turns_though_facts_are_nearer(four):
    await four.keep((a_unit("fact", kind="fact"), 0.99))
    assert "fact" not in await scores(four, chained=False)


async def test_a_pool_smaller_than_the_anchors_is_no_fault(memory):
    await memory.keep((a_unit("only"), 0.5))
    assert names(await chain(asked(), memory.sources, Chain())) == ["only"]
