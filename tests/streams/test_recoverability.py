"""How far what was archived is from what is visible (All-Mem app. G)."""

from uuid import UUID

import pytest

from lamina.streams.recoverability import HOPS, Graph, recoverability


def a_graph(visible, *links):
    units = {UUID(int=number): number in visible for number in range(1, 10)}
    known = {
        unit: seen for unit, seen in units.items() if seen or any(unit.int in link[:2] for link in links)
    }
    return Graph(
        known,
        dict.fromkeys(known, "fact"),
        tuple((UUID(int=source), UUID(int=target), kind) for source, target, kind in links),
    )


def test_distances_are_the_shortest_over_all_visible_units_and_all_types_of_links():
    graph = a_graph(
        {1, 2},
        (1, 3, "version"),
        (3, 4, "semantic"),
        (4, 5, "temporal"),
        (2, 5, "sibling"),
        (5, 6, "evidence"),
    )
    found = recoverability(graph)
    assert {unit.int: hops for unit, hops in found.hops.items()} == {3: 1, 4: 2, 5: 1, 6: 2}
    assert found.unreachable == ()
    assert [found.coverage(hops) for hops in HOPS] == [0.5, 1.0, 1.0, 1.0]


def test_links_are_followed_in_their_direction_only():
    found = recoverability(a_graph({1}, (2, 1, "version"), (3, 2, "version")))
    assert [unit.int for unit in found.unreachable] == [2, 3]
    assert found.coverage(4) == 0


def test_a_cycle_of_archived_units_is_unreachable():
    found = recoverability(a_graph({1}, (1, 4, "version"), (2, 3, "version"), (3, 2, "version")))
    assert [unit.int for unit in found.unreachable] == [2, 3]
    assert found.coverage(4) == pytest.approx(1 / 3)


def test_a_bank_without_archived_units_is_covered():
    assert recoverability(a_graph({1, 2}, (2, 1, "semantic"))).coverage(1) == 1.0
    assert recoverability(Graph({}, {}, ())).coverage(1) == 1.0


def test_a_link_to_what_is_not_there_is_reported():
    graph = Graph({UUID(int=1): True}, {UUID(int=1): "fact"}, ((UUID(int=1), UUID(int=2), "version"),))
    assert recoverability(graph).orphans == graph.links


def test_a_turn_that_never_became_visible_is_not_archived_but_may_be_evidence():
    gated, fact = UUID(int=2), UUID(int=1)
    links = ((fact, gated, "evidence"),)
    found = recoverability(
        Graph({fact: True, gated: False}, {fact: "fact", gated: "turn"}, links, frozenset({gated}))
    )
    assert (found.archived, found.unreachable, found.orphans) == (0, (), ())
