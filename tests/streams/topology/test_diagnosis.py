"""What becomes of proposals before anything is edited (All-Mem app. B.1–B.2)."""

import pytest

from lamina.streams.settings import Settings
from lamina.streams.topology.diagnosis import Thresholds, queue

from .bank_kit import a_fact, a_turn, a_unit, key, proposed

UNITS = {
    unit.id: unit
    for unit in (
        a_turn("t1", "I live in Tokyo."),
        a_turn("t2", "I live in Osaka now.", day=2),
        a_fact("tokyo", "Nora lives in Tokyo."),
        a_fact("residence", "Nora's residence is in Tokyo.", day=1),
        a_fact("osaka", "Nora lives in Osaka.", about=("nora", "lives_in", "Osaka"), day=2),
        a_fact("job", "Nora works at a bank.", about=("Nora", "works_at", "bank"), day=3),
        a_fact("gone", "Nora lives in Kyoto.", about=("Nora", "lives_in", "Kyoto"), visible=False),
        a_unit("e1", "episode", "Nora moved.", key("t1")),
        a_unit("e2", "episode", "Nora moved again.", key("t2"), day=2),
        a_unit("e3", "episode", "Nora moved.", key("t2"), visible=False),
    )
}


def judged(*proposals, kinds="derived", thresholds=None):
    return queue([proposals], UNITS, thresholds or Thresholds(), kinds)


def keys(*names):
    return [key(name) for name in names]


def test_the_queue_is_split_then_merge_then_update_with_the_surest_first():
    update = proposed("update", *keys("osaka", "tokyo"), confidence=1.0)
    merge = proposed("merge", *keys("residence", "tokyo"), confidence=0.92)
    surer = proposed("merge", *keys("e1", "e2"), confidence=0.97)
    split = proposed("split", *keys("e1"), confidence=0.9)
    found = judged(update, merge, surer, split)
    assert [(each.operator, each.confidence) for each in found.queued] == [
        ("split", 0.9), ("merge", 0.97), ("merge", 0.92), ("update", 1.0),
    ]  # fmt: skip
    assert found == judged(split, surer, merge, update)


def test_a_merge_is_one_whatever_order_and_repetition_its_ids_come_in():
    found = judged(
        proposed("merge", *keys("tokyo", "residence", "tokyo"), confidence=0.91),
        proposed("merge", *keys("residence", "tokyo"), confidence=0.95),
    )
    (one,) = found.queued
    assert one.targets == tuple(sorted(keys("tokyo", "residence"), key=str))
    assert one.confidence == 0.95


def test_the_order_of_an_update_is_its_meaning():
    found = judged(proposed("update", *keys("osaka", "tokyo")), proposed("update", *keys("tokyo", "osaka")))
    assert [each.targets for each in found.queued] == [tuple(keys("osaka", "tokyo"))]
    assert "older" in found.skipped[0].reason


@pytest.mark.parametrize("confidence", [0.89, -1, 95, float("nan"), float("inf")])
def test_confidence_below_theta_or_beyond_one_is_skipped(confidence):
    found = judged(proposed("split", key("e1"), confidence=confidence))
    assert found.queued == ()
    assert "confidence" in found.skipped[0].reason


def test_thresholds_are_per_operator():
    thresholds = Thresholds(split=0.99, merge=0.5, update=0.9)
    found = judged(
        proposed("split", key("e1")),
        proposed("merge", *keys("tokyo", "residence"), confidence=0.6),
        thresholds=thresholds,
    )
    assert [each.operator for each in found.queued] == ["merge"]


@pytest.mark.parametrize("off", ["split", "merge", "update"])
def test_an_operator_that_is_switched_off_makes_no_edit_and_the_others_do(off):
    """All-Mem app. E: without Split, Merge, Update; even a confidence of 1 does not pass."""
    found = judged(
        proposed("split", key("e1"), confidence=1.0),
        proposed("merge", *keys("tokyo", "residence"), confidence=1.0),
        proposed("update", *keys("osaka", "gone"), confidence=1.0),
        thresholds=Thresholds.of_settings(Settings(**{f"topology_{off}": False})),
    )
    assert [each.operator for each in found.queued] == [
        each for each in ("split", "merge", "update") if each != off
    ]
    (edit,) = found.skipped
    assert (edit.operator, edit.outcome) == (off, "skipped")
    assert f"{off} is switched off" in edit.reason


def test_the_thresholds_come_from_the_settings():
    assert Thresholds.of_settings(Settings(theta_merge=0.5)) == Thresholds(0.9, 0.5, 0.9)


@pytest.mark.parametrize(
    ("operator", "targets", "why"),
    [
        ("split", ("e1", "e2"), "one unit"),
        ("split", ("e3",), "archived"),
        ("split", ("invented",), "not in its neighbourhood"),
        ("split", ("t1",), "turns stay visible"),
        ("split", (), "one unit"),
        ("merge", ("tokyo",), "2 to 4"),
        ("merge", ("tokyo", "tokyo"), "2 to 4"),
        ("merge", ("e1", "e3"), "archived"),
        ("merge", ("e1", "tokyo"), "different kinds"),
        ("merge", ("tokyo", "residence", "job", "e1", "e2"), "different kinds"),
        ("merge", ("tokyo", "osaka"), "exclude each other"),
        ("update", ("osaka",), "a current and a superseded"),
        ("update", ("osaka", "osaka"), "a current and a superseded"),
        ("update", ("gone", "tokyo"), "archived"),
        ("update", ("job", "tokyo"), "same subject and relation"),
        ("update", ("tokyo", "osaka"), "older"),
        ("update", ("e2", "e1"), "episodic worker"),
        ("update", ("t2", "t1"), "turns stay visible"),
        ("update", ("osaka", "invented"), "not in its neighbourhood"),
    ],
)
def test_what_does_not_hold_is_dropped_with_its_reason(operator, targets, why):
    found = judged(proposed(operator, *keys(*targets), reason="as the model says"))
    assert found.queued == ()
    (edit,) = found.skipped
    assert edit.outcome == "skipped"
    assert edit.confidence == 0.95
    assert why in edit.reason
    assert "as the model says" in edit.reason


def test_a_merge_of_five_is_dropped():
    units = {key(n): a_unit(n, "episode", "Same.") for n in range(5)}
    found = queue([[proposed("merge", *units)]], units, Thresholds(), "derived")
    assert found.queued == ()
    assert "2 to 4" in found.skipped[0].reason


def test_a_superseded_unit_may_be_archived_already():
    assert len(judged(proposed("update", *keys("osaka", "gone"))).queued) == 1


def test_turns_are_edited_where_all_kinds_are():
    found = judged(
        proposed("update", *keys("t2", "t1")),
        proposed("merge", *keys("t1", "e1")),
        proposed("update", *keys("e2", "e1")),
        proposed("split", key("t1")),
        kinds="all",
    )
    assert [each.operator for each in found.queued] == ["split", "merge", "update", "update"]
