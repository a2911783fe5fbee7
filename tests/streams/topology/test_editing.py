"""The executor: the published cases, what it refuses, and where links go (All-Mem app. A–C, I)."""

from datetime import timedelta

import pytest

from lamina.streams.records import Span
from lamina.streams.recurrence import Thread
from lamina.streams.topology.abstraction import Group
from lamina.streams.topology.bank import Limits
from lamina.streams.topology.editing import (
    abstract,
    applicable,
    decline,
    merge,
    redundancy,
    split,
    update,
)
from lamina.streams.topology.representatives import Part

from .bank_kit import (
    NAMESPACE,
    START,
    Memory,
    a_fact,
    a_turn,
    a_unit,
    described,
    direction,
    key,
    proposed,
)

CODING, SHOPPING, CITY = direction(1), direction(0, 1), direction(0, 0, 1)
PYTORCH = "I learned PyTorch today. Also, I need to buy eggs."


def part(turn, start, end, text, vector, *keywords):
    return Part((Span(turn=turn, start=start, end=end),), described(text, *keywords), vector)


@pytest.fixture
def memory():
    return Memory()


def conflated(memory, **fields):
    turn = memory.add(a_turn("t", PYTORCH))
    return turn, memory.add(a_unit("e", "episode", PYTORCH, turn, **fields), direction(1, 1))


def halves(turn):
    return [
        part(turn, 0, 24, "Nora learned PyTorch.", CODING, "PyTorch"),
        part(turn, 25, 50, "Nora needs to buy eggs.", SHOPPING, "eggs", "eggs", " "),
    ]


def test_split_pytorch_and_eggs(memory):
    turn, parent = conflated(memory, entities=("PyTorch",), version=2)
    bank = memory.bank("run")
    edit = split(bank, proposed("split", parent), halves(turn))
    memory.finish(bank)
    coding, shopping = edit.created
    assert edit.outcome == "executed"
    assert [unit.visible for unit in edit.before] == [True]
    assert {unit.id for unit in memory.visible("episode")} == {coding, shopping}
    assert not memory.units[parent].visible
    assert memory.units[parent].text == PYTORCH
    assert memory.units[coding].text == "Nora learned PyTorch."
    assert memory.units[coding].entities == ("PyTorch",)
    assert memory.units[coding].version == 3
    assert memory.units[shopping].keywords == ("eggs",)
    assert memory.units[shopping].evidence == (turn,)
    assert memory.units[shopping].spans == (Span(turn=turn, start=25, end=50),)
    for one, other in ((coding, shopping), (shopping, coding)):
        assert memory.linked(one, "sibling") == [other]
        assert memory.linked(one, "version") == [parent]
        assert memory.linked(one, "evidence") == [turn]
    assert memory.recoverability().coverage(1) == 1


def test_a_split_moves_each_neighbour_to_the_nearest_sibling(memory):
    turn, parent = conflated(memory)
    coder = memory.add(a_unit("c", "episode", "Code.", turn), direction(3, 1), (parent, "semantic", 0.9))
    buyer = memory.add(a_unit("b", "episode", "Milk.", turn), direction(1, 3), (parent, "semantic", 0.9))
    gone = memory.add(a_unit("g", "episode", "Old.", turn, visible=False), CODING, (parent, "semantic", 0.9))
    memory.link(parent, coder, "semantic", 0.9)
    memory.link(parent, buyer, "semantic", 0.9)
    before = memory.add(a_unit("p", "episode", "Before.", turn), CITY)
    memory.link(parent, before, "temporal")
    bank = memory.bank("run")
    edit = split(bank, proposed("split", parent), halves(turn))
    memory.finish(bank)
    coding, shopping = edit.created
    assert memory.linked(coder, "semantic") == [coding]
    assert memory.linked(buyer, "semantic") == [shopping]
    assert memory.linked(gone, "semantic") == [parent]
    assert set(memory.linked(coding, "semantic")) == {coder, buyer}
    assert memory.linked(coding, "temporal") == memory.linked(shopping, "temporal") == [before]
    assert memory.linked(parent, "temporal") == [before]
    weights = {link.weight for link in edit.added if link.source == coder and link.type == "semantic"}
    assert weights == {0.94868}


def test_a_split_into_fewer_than_two_parts_is_a_no_op(memory):
    turn, parent = conflated(memory)
    tries: list[list[Part]] = [[], halves(turn)[:1], halves(turn)[:1] * 2]
    for parts in tries:
        bank = memory.bank("run")
        edit = split(bank, proposed("split", parent), parts)
        assert edit.outcome == "no_op"
        assert bank.rows().inserted == bank.rows().updated == bank.rows().added == ()


def test_a_part_that_is_not_in_the_evidence_skips_the_split(memory):
    turn, parent = conflated(memory)
    other = memory.add(a_turn("other", "Milk."))
    for span in ((other, 0, 3), (turn, 40, 400), (turn, 5, 5)):
        bank = memory.bank("run")
        edit = split(bank, proposed("split", parent), [halves(turn)[0], part(*span, "Invented.", SHOPPING)])
        assert edit.outcome == "skipped"
        assert bank.rows().inserted == ()


def test_a_split_turn_becomes_episodes_and_stays_as_it_was_said(memory):
    turn = memory.add(a_turn("t", PYTORCH), direction(1, 1))
    bank = memory.bank("run", kinds="all")
    edit = split(bank, proposed("split", turn), halves(turn))
    memory.finish(bank)
    assert [memory.units[each].kind for each in edit.created] == ["episode", "episode"]
    assert memory.units[turn].text == PYTORCH
    assert not memory.units[turn].visible


def test_a_split_head_leaves_its_thread_to_the_sibling_nearest_to_it(memory):
    turn, parent = conflated(memory)
    memory.threads[key("th")] = Thread(key("th"), direction(1, 5) * 4, 4, None, heads=(parent,))
    bank = memory.bank("run")
    edit = split(bank, proposed("split", parent), halves(turn))
    memory.finish(bank)
    assert memory.threads[key("th")].heads == (edit.created[1],)
    assert edit.heads == {key("th"): (parent,)}


def tokyo(memory, **fields):
    first = memory.add(a_turn("t1", "I live in Tokyo."))
    second = memory.add(a_turn("t2", "My residence is in Tokyo.", day=3))
    one = memory.add(a_fact("f1", "Nora lives in Tokyo.", first), direction(1, 0.2), **fields)
    other = memory.add(
        a_fact("f2", "Nora's residence is in Tokyo.", second, day=3, about=("nora", "lives_in", "tokyo")),
        direction(1, 0.1),
    )
    return one, other


def test_merge_tokyo(memory):
    one, other = tokyo(memory)
    near = memory.add(a_unit("n", "fact", "Nora likes Tokyo."), direction(1, 1), (one, "semantic", 0.8))
    bank = memory.bank("run")
    edit = merge(bank, proposed("merge", one, other), described("Nora lives in Tokyo."), direction(1))
    memory.finish(bank)
    (new,) = edit.created
    unit = memory.units[new]
    assert {each.id for each in memory.visible("fact")} == {new, near}
    assert (unit.subject, unit.relation, unit.object) == ("Nora", "lives_in", "Tokyo")
    assert (unit.kind, unit.version, unit.valid_from, unit.said_at) == (
        "fact", 2, START, START + timedelta(days=3),
    )  # fmt: skip
    assert unit.evidence == (key("t1"), key("t2"))
    assert set(memory.linked(new, "version")) == {one, other}
    assert memory.linked(near, "semantic") == [new]
    assert memory.recoverability().coverage(1) == 1


def test_unrelated_units_are_not_merged_however_confident_the_proposal(memory):
    turn = memory.add(a_turn("t", "…"))
    one = memory.add(a_unit("e1", "episode", "Nora learned PyTorch.", turn), CODING)
    other = memory.add(a_unit("e2", "episode", "Nora bought eggs.", turn), SHOPPING)
    bank = memory.bank("run")
    assert redundancy(bank, [one, other]) == 0
    edit = merge(bank, proposed("merge", one, other, confidence=1), described("Nora."), CODING)
    assert edit.outcome == "skipped"
    assert "redundancy 0.00 is below 0.70" in edit.reason
    assert bank.rows().inserted == ()


def test_merged_facts_keep_the_latest_spelling_of_their_object(memory):
    turn = memory.add(a_turn("t", "…"))
    one = memory.add(
        a_fact("f1", "Nora avoids the peanut.", turn, about=("Nora", "avoids", "the peanut")), direction(1)
    )
    other = memory.add(
        a_fact("f2", "Nora avoids peanuts.", turn, day=1, about=("Nora", "avoids", "peanuts")),
        direction(1, 0.1),
    )
    bank = memory.bank("run")
    edit = merge(bank, proposed("merge", one, other), described("Nora avoids peanuts."), direction(1))
    unit = bank.units[edit.created[0]]
    assert (unit.subject, unit.relation, unit.object) == ("Nora", "avoids", "peanuts")


def test_a_merge_keeps_the_parts_of_turns_that_no_source_rests_on_whole(memory):
    turn, other = memory.add(a_turn("t", PYTORCH)), memory.add(a_turn("u", PYTORCH, day=1))
    spans = (Span(turn=turn, start=0, end=24), Span(turn=other, start=0, end=24))
    one = memory.add(a_unit("e1", "episode", "PyTorch.", turn, other, spans=spans), CODING)
    two = memory.add(a_unit("e2", "episode", "PyTorch!", other, day=1), CODING)
    bank = memory.bank("run")
    edit = merge(bank, proposed("merge", one, two), described("PyTorch."), CODING)
    assert bank.units[edit.created[0]].spans == spans[:1]


def restaurants(memory):
    memory.add(a_turn("t3", "I've tried three Korean restaurants."), direction(1, 0.3))
    memory.add(a_turn("t4", "I've tried four Korean restaurants now.", day=9), direction(1, 0.2))
    return key("t3"), key("t4")


def test_update_three_then_four_korean_restaurants(memory):
    older, newer = restaurants(memory)
    near = memory.add(a_turn("n", "Korean food is great.", day=5), direction(1, 1), (older, "semantic", 0.8))
    bank = memory.bank("run", kinds="all")
    edit = update(
        bank,
        proposed("update", newer, older),
        described("[2026-03-10] Four Korean restaurants.", "Korean"),
        None,
    )
    memory.finish(bank)
    current = memory.units[newer]
    assert edit.outcome == "executed"
    assert current.text == "I've tried four Korean restaurants now."
    assert current.summary == "[2026-03-10] Four Korean restaurants."
    assert (current.keywords, current.version) == (("Korean",), 2)
    assert not memory.units[older].visible
    assert memory.linked(newer, "version") == [older]
    assert memory.linked(near, "semantic") == [newer]
    assert memory.recoverability().coverage(1) == 1
    question = direction(1, 0.25)
    ranked = sorted(memory.visible("turn"), key=lambda unit: -float(memory.vectors[unit.id] @ question))
    assert ranked[0].id == newer


def test_an_unchanged_descriptor_still_archives_the_older_unit(memory):
    older = memory.add(a_fact("f1", "Nora lives in Tokyo."), CITY)
    newer = memory.add(a_fact("f2", "Nora lives in Osaka.", about=("Nora", "lives_in", "Osaka"), day=4), CITY)
    bank = memory.bank("run")
    edit = update(bank, proposed("update", newer, older), described(" Nora lives in  Osaka."), CITY)
    memory.finish(bank)
    assert edit.outcome == "executed"
    assert memory.units[newer].version == 1
    assert memory.units[older].valid_to == START + timedelta(days=4)
    assert [(unit.id, change) for unit, change in bank.rows().changes] == [(older, "archived")]


def test_an_update_of_what_was_superseded_already_links_it_once(memory):
    older = memory.add(a_fact("f1", "Nora lives in Tokyo.", visible=False), CITY)
    newer = memory.add(a_fact("f2", "Nora lives in Osaka.", about=("Nora", "lives_in", "Osaka"), day=4), CITY)
    same = described("Nora lives in Osaka.")
    bank = memory.bank("run")
    assert update(bank, proposed("update", newer, older), same, None).outcome == "executed"
    memory.finish(bank)
    bank = memory.bank("again")
    assert update(bank, proposed("update", newer, older), same, None).outcome == "no_op"
    assert len(bank.edits) == 1


@pytest.mark.parametrize("operator", ["merge", "update"])
def test_an_empty_description_changes_nothing(memory, operator):
    one, other = tokyo(memory)
    bank = memory.bank("run")
    edit = (merge if operator == "merge" else update)(
        bank, proposed(operator, other, one), described(" "), CITY
    )
    assert edit.outcome == ("no_op" if operator == "merge" else "skipped")
    assert bank.rows().updated == ()


def test_a_unit_is_edited_once_in_a_run(memory):
    one, other = tokyo(memory)
    third = memory.add(a_fact("f3", "Nora lives in Tokyo still.", day=5), direction(1))
    bank = memory.bank("run")
    merge(bank, proposed("merge", one, other), described("Tokyo."), direction(1))
    for late in (proposed("merge", other, third), proposed("update", third, one)):
        assert "stale" in str(applicable(bank, late))
    edit = merge(bank, proposed("merge", other, third), described("Tokyo."), direction(1))
    assert edit.outcome == "skipped"
    bank = memory.bank("second")
    update(bank, proposed("update", other, one), described("Nora's residence is in Tokyo."), None)
    assert "changed earlier in this run" in str(applicable(bank, proposed("merge", other, third)))


def test_a_proposal_of_unknown_units_is_skipped_and_journalled(memory):
    one, _ = tokyo(memory)
    bank = memory.bank("run")
    assert merge(bank, proposed("merge", one, key("invented")), described("x"), CITY).outcome == "skipped"
    assert decline(bank, proposed("split", one), "the reply is unusable").outcome == "skipped"
    assert [edit.outcome for edit in bank.edits] == ["skipped", "skipped"]
    assert bank.rows().changes == ()


def test_out_degrees_are_capped_with_the_strongest_kept(memory):
    turn, parent = conflated(memory)
    for number in range(12):
        vector = direction(1, 0.1 * number)
        target = memory.add(a_unit(f"n{number}", "episode", "…", turn, day=number), vector)
        memory.link(parent, target, "semantic", 0.5)
    words = PYTORCH.split()
    parts: list[Part] = []
    start = 0
    for number, word in enumerate(words):
        parts.append(part(turn, start, start + len(word), word, direction(1, 0.3 * number)))
        start += len(word) + 1
    bank = memory.bank("run", limits=Limits(semantic=4, sibling=3))
    edit = split(bank, proposed("split", parent), parts)
    memory.finish(bank)
    assert len(edit.created) == len(words)
    for each in edit.created:
        assert len(memory.linked(each, "semantic")) == 4
        assert len(memory.linked(each, "sibling")) == 3
    assert set(memory.linked(edit.created[0], "semantic")) == {key(f"n{number}") for number in range(4)}
    assert memory.recoverability().unreachable == ()


def test_an_abstract_stands_for_related_units(memory):
    turns = [memory.add(a_turn(f"t{day}", "I took pottery class.", day=day)) for day in range(3)]
    episodes = tuple(
        memory.add(a_unit(f"e{day}", "episode", "Pottery.", turn, day=day), direction(1, 0.1 * day))
        for day, turn in enumerate(turns)
    )
    memory.threads[key("th")] = Thread(key("th"), direction(1), 3, None, heads=(episodes[0],))
    bank = memory.bank("run")
    group = Group(episodes, 0.9, 0.95, "pairwise")
    edit = abstract(bank, group, described("Nora takes pottery classes.", "pottery"), direction(1))
    memory.finish(bank)
    (new,) = edit.created
    assert (edit.operator, edit.outcome) == ("abstract", "executed")
    assert "0.90" in edit.reason
    assert [unit.id for unit in memory.visible() if unit.kind != "turn"] == [new]
    assert memory.units[new].kind == "abstract"
    assert memory.units[new].evidence == tuple(turns)
    assert memory.threads[key("th")].heads == (new,)
    bank = memory.bank("again")
    assert abstract(bank, group, described("Pottery."), direction(1)).outcome == "skipped"


def test_a_run_that_is_repeated_makes_the_same_rows(memory):
    one, other = tokyo(memory)

    def run():
        bank = memory.bank("run")
        merge(bank, proposed("merge", one, other), described("Nora lives in Tokyo."), direction(1))
        return bank

    first, second = run(), run()
    assert first.rows() == second.rows()
    assert first.edits == second.edits
    assert first.rows().inserted[0].namespace == NAMESPACE
