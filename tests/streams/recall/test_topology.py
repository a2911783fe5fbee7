"""`topology` on an example worked by hand (All-Mem §3.4).

    v (fact, .9) ── version ──▶ old (archived, .95) ── version ──▶ older (archived, .2)
      └─ sibling ─▶ s (fact, .5)
    w (turn, .8) ── temporal ─▶ x (turn, .3)
      └─ semantic ▶ y (turn, .7)

The anchors for k = 2 are v and w.
"""

import pytest

from lamina.streams.recall.options import Topology
from lamina.streams.recall.topology import topology

from .recall_kit import a_unit, archived, asked, at, id_of, names


@pytest.fixture
async def bank(memory):
    await memory.keep(
        (a_unit("v", kind="fact", evidence=(id_of("x"),)), 0.9),
        (a_unit("s", kind="fact"), 0.5),
        (a_unit("w", minute=2), 0.8),
        (a_unit("x", minute=1), 0.3),
        (a_unit("y", minute=0), 0.7),
        (archived("old", kind="fact", evidence=(id_of("y"),)), None),
        (archived("older", kind="fact"), None),
    )
    memory.embedder.vectors = {"old": at(0.95), "older": at(0.2)}
    await memory.link(
        ("v", "version", "old"),
        ("old", "version", "older"),
        ("v", "sibling", "s"),
        ("w", "temporal", "x"),
        ("w", "semantic", "y"),
        ("v", "evidence", "x"),
    )
    return memory


async def found(memory, **options):
    return await topology(asked(), memory.sources, Topology(**{"anchors": 2, "candidates": 5, **options}))


async def test_versions_and_siblings_come_before_other_links_within_the_budget(bank):
    """L = 5: v, w, then old, s (one hop) and older (two hops); ranked by cosine."""
    results = await found(bank)
    assert names(results) == ["old", "v", "w", "s", "older"]
    assert [round(one.score, 3) for one in results] == [0.95, 0.9, 0.8, 0.5, 0.2]
    why = {one.unit.text: one.why for one in results}
    assert (why["v"]["hops"], why["old"]["hops"], why["older"]["hops"]) == (0, 1, 2)
    assert (why["older"]["by"], why["older"]["from"]) == ("version", str(id_of("old")))
    assert {name for name, reasons in why.items() if "archived" in reasons} == {"old", "older"}
    assert not results[0].unit.visible
    assert [turn.text for turn in results[0].turns] == ["y"]


async def test_with_room_for_all_temporal_comes_before_semantic(bank):
    assert names(await found(bank, candidates=6)) == ["old", "v", "w", "s", "x", "older"]
    assert names(await found(bank, candidates=7)) == ["old", "v", "w", "y", "s", "x", "older"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"recovery": False}, ["v", "w", "y", "x"]),
        ({"expansion": False}, ["v", "w"]),
        ({"visibility": False, "expansion": False}, ["old", "v"]),
        # one hop from old and v: older, and s
        ({"visibility": False}, ["old", "v", "s", "older"]),
        ({"hops": 0}, ["v", "w"]),
        # older is two hops away, so x comes in
        ({"hops": 1}, ["old", "v", "w", "s", "x"]),
        ({"results": 3}, ["old", "v", "w"]),
        ({"anchors": 1}, ["old", "v", "s", "older"]),
        ({"candidates": 1}, ["v"]),
    ],
)
async def test_each_switch_and_budget_changes_what_it_names(bank, options, expected):
    assert names(await found(bank, **options)) == expected


async def test_without_type_priority_links_are_followed_hop_by_hop(bank):
    """One hop from v: old, s; then from w the smaller id of x and y; older is two hops away."""
    third = min(("x", "y"), key=id_of)
    assert set(names(await found(bank, priority=False))) == {"v", "w", "old", "s", third}


async def test_the_heavier_of_two_semantic_links_is_followed_first(bank):
    await bank.keep((a_unit("light"), 0.1), (a_unit("heavy"), 0.1))
    await bank.link(("v", "semantic", "light", 0.7), ("v", "semantic", "heavy", 0.8))
    assert "heavy" in names(await found(bank, candidates=7))
    assert "light" not in names(await found(bank, candidates=7))


async def test_circles_of_links_end(memory):
    await memory.keep((a_unit("one"), 0.9), (a_unit("two", minute=1), 0.8))
    await memory.link(("one", "semantic", "two"), ("two", "semantic", "one"), ("one", "sibling", "one"))
    assert names(await found(memory, anchors=1)) == ["one", "two"]


async def test_only_what_comes_in_archived_is_embedded_again(bank):
    await found(bank)
    assert sorted(bank.embedder.texts) == ["old", "older"]
    bank.embedder.texts.clear()
    await found(bank, recovery=False)
    assert bank.embedder.texts == []
