"""Facts that cannot both hold."""

from datetime import timedelta

from lamina.streams.recall.conflicts import conflicts
from lamina.streams.recall.lines import note_of

from .recall_kit import NOON, a_unit


def lives(where, *, day=0, until=None, who="Ada", relation="lives_in"):
    return a_unit(
        f"{who} {relation} {where} {day}",
        kind="fact",
        subject=who,
        relation=relation,
        object=where,
        valid_from=NOON + timedelta(days=day),
        valid_to=None if until is None else NOON + timedelta(days=until),
    )


def places(found):
    return [[fact.object for fact in one.facts] for one in found]


def test_two_values_at_once_of_what_has_one_are_a_conflict():
    found = conflicts([lives("Kiel", day=3), lives("Bonn"), a_unit("a turn")])
    assert [(one.subject, one.relation) for one in found] == [("Ada", "lives_in")]
    assert places(found) == [["Bonn", "Kiel"]]
    assert note_of(found[0]) == "Conflict: Ada, lives in: Bonn (since 2026-03-01) or Kiel (since 2026-03-04)"


def test_names_and_relations_are_the_same_in_any_case():
    assert places(conflicts([lives("Bonn", who="ada"), lives("Kiel", relation="Lives_in")])) == []
    assert places(conflicts([lives("Bonn", who="ada"), lives("Kiel")])) == [["Bonn", "Kiel"]]


def test_one_after_the_other_is_no_conflict():
    assert conflicts([lives("Bonn", until=3), lives("Kiel", day=3)]) == ()
    assert places(conflicts([lives("Bonn", until=4), lives("Kiel", day=3)])) == [["Bonn", "Kiel"]]


def test_what_may_have_many_values_does_not_disagree():
    assert conflicts([lives("tea", relation="likes"), lives("coffee", relation="likes")]) == ()
    single = conflicts(
        [lives("tea", relation="likes"), lives("coffee", relation="likes")], single=lambda _: True
    )
    assert len(single) == 1


def test_the_same_in_more_words_is_the_same():
    assert conflicts([lives("Lisbon"), lives("Lisbon in Portugal", day=1), lives("lisbon.", day=2)]) == ()


def test_of_equal_values_the_first_stands_for_all():
    found = conflicts(
        [lives("Kiel", day=2), lives("Bonn", day=1), lives("bonn", day=5), lives("Kiel", day=9)]
    )
    assert places(found) == [["Bonn", "Kiel"]]
    assert found[0].facts[0].valid_from == NOON + timedelta(days=1)


def test_other_subjects_and_facts_without_an_object_stay_apart():
    assert conflicts([lives("Bonn"), lives("Kiel", who="Bo")]) == ()
    assert conflicts([lives("Bonn"), a_unit("bare", kind="fact", subject="Ada", relation="lives_in")]) == ()


def test_signs_as_objects_are_compared_as_they_stand():
    assert len(conflicts([lives("🐝"), lives("🐞")])) == 1


def test_a_note_is_one_short_line_whatever_the_objects_hold():
    note = note_of(conflicts([lives("Bonn\n[x · y] " + "z" * 500), lives("Kiel", day=1)])[0])
    assert "\n" not in note
    assert "[" not in note
    assert len(note) < 200
