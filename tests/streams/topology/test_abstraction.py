"""Affinity and groups (SimpleMem §2.2, eq. 5)."""

from itertools import permutations
from math import exp

import pytest

from lamina.streams.topology.abstraction import LARGEST, Affinity, groups

from .bank_kit import a_fact, a_unit, direction

CLASSES = [a_unit(f"e{n}", "episode", "Pottery.", day=n) for n in range(4)]
ALIKE = {unit.id: direction(1, 0.1 * n) for n, unit in enumerate(CLASSES)}


def test_affinity_weighs_similarity_and_days():
    one, other = CLASSES[0], CLASSES[3]
    affinity = Affinity(beta=0.6, decay=0.1)
    assert affinity.of(one, other, 0.5) == pytest.approx(0.6 * 0.5 + 0.4 * exp(-0.3), abs=1e-5)
    assert affinity.of(other, one, 0.5) == affinity.of(one, other, 0.5)
    assert Affinity(trigger="mean").of(one, other, 0.5) == 0.5


def test_units_that_are_alike_and_near_in_time_form_a_group():
    (found,) = groups(CLASSES, ALIKE, Affinity())
    assert found.units == tuple(unit.id for unit in CLASSES)
    assert found.weakest <= found.mean
    assert found.weakest >= 0.85


def test_time_alone_can_part_them():
    apart = [
        unit.model_copy(update={"said_at": unit.said_at.replace(year=2020 + n)})
        for n, unit in enumerate(CLASSES)
    ]
    assert groups(apart, ALIKE, Affinity()) == []
    assert len(groups(apart, ALIKE, Affinity(trigger="mean"))) == 1


def test_two_are_too_few():
    assert groups(CLASSES[:2], ALIKE, Affinity()) == []


def test_pairwise_needs_every_pair_where_the_mean_does_not():
    vectors = {unit.id: direction(1, slope) for unit, slope in zip(CLASSES, (-0.35, 0, 0.35), strict=False)}
    pairwise, mean = Affinity(threshold=0.9, beta=1), Affinity(trigger="mean", threshold=0.88)
    assert groups(CLASSES[:3], vectors, pairwise) == []
    (found,) = groups(CLASSES[:3], vectors, mean)
    assert found.weakest < 0.88 <= found.mean
    assert "mean similarity" in found.reason


def test_groups_do_not_depend_on_the_order_of_the_units():
    vectors = {unit.id: direction(1, 0.3 * n) for n, unit in enumerate(CLASSES)}
    found = [groups(list(order), vectors, Affinity(threshold=0.9)) for order in permutations(CLASSES)]
    assert all(each == found[0] for each in found)


def test_a_unit_is_in_one_group_and_a_group_is_bounded():
    many = [a_unit(f"m{n}", "episode", "Pottery.") for n in range(20)]
    found = groups(many, {unit.id: direction(1) for unit in many}, Affinity())
    assert [len(group.units) for group in found] == [LARGEST, 20 - LARGEST]
    assert len({unit for group in found for unit in group.units}) == 20


def facts(*about):
    return [a_fact(f"f{n}", "…", about=each) for n, each in enumerate(about)]


@pytest.mark.parametrize(
    "others",
    [
        facts(("Nora", "lives_in", "Tokyo"), ("Nora", "lives_in", "Osaka"), ("Nora", "lives_in", "Kyoto")),
        facts(("Nora", "likes", "tea"), ("Mia", "likes", "tea"), ("Ann", "likes", "tea")),
        [CLASSES[0], *facts(("Nora", "likes", "tea"), ("Nora", "likes", "jam"))],
        [unit.model_copy(update={"visible": False}) for unit in CLASSES],
    ],
)
def test_what_excludes_each_other_or_differs_in_kind_or_subject_is_no_group(others):
    assert groups(others, {unit.id: direction(1) for unit in others}, Affinity()) == []


def test_facts_about_one_subject_are_a_group():
    alike = facts(("Nora", "likes", "tea"), ("nora", "likes", "jam"), ("Nora", "enjoys", "cake"))
    assert len(groups(alike, {unit.id: direction(1) for unit in alike}, Affinity())) == 1
