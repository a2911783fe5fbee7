"""Undo brings back what an edit archived, refuses what others rest on, and deletes nothing."""

from datetime import timedelta

import pytest

from lamina.streams.records import Edit, Link
from lamina.streams.recurrence import Thread
from lamina.streams.topology.editing import merge, update
from lamina.streams.undo import Refused, Standing, reverse, to_reverse, touched

from .topology.bank_kit import (
    NAMESPACE,
    START,
    Memory,
    a_command,
    a_fact,
    a_turn,
    a_unit,
    an_entry,
    described,
    direction,
    key,
    proposed,
)


@pytest.fixture
def memory():
    memory = Memory()
    turn = memory.add(a_turn("t", "I live in Tokyo."))
    for number in range(4):
        fact = a_fact(f"f{number}", f"Nora lives in Tokyo ({number}).", turn, day=number)
        memory.add(fact, direction(1, 0.1 * number))
    near = memory.add(a_unit("near", "fact", "Nora likes Tokyo.", turn), direction(1, 1))
    memory.link(near, key("f0"), "semantic", 0.7)
    return memory


def merged(memory, name, *targets):
    bank = memory.bank(name)
    edit = merge(
        bank, proposed("merge", *targets), described(f"Nora lives in Tokyo, says {name}."), direction(1)
    )
    assert edit.outcome == "executed"
    return memory.finish(bank), edit.created[0]


def chosen(memory, entry, ordinal=None, **fields):
    entry = memory.journal[entry.ordinal]
    return to_reverse(entry, ordinal, memory.journal[entry.ordinal + 1 :], **fields)


def standing(memory, edits, without=()):
    ids = touched(edits) - set(without)
    return Standing(
        {each: memory.units[each] for each in ids},
        [link for link in memory.links.values() if link.source in ids],
        list(memory.threads.values()),
    )


def undone(memory, entry, ordinal=None, **fields):
    edits = chosen(memory, entry, ordinal, **fields)
    reversal = reverse(edits, standing(memory, edits), key("undo"))
    memory.reverse(reversal)
    return reversal


def test_a_merge_is_undone(memory):
    before, links = dict(memory.units), set(memory.links)
    entry, new = merged(memory, "one", key("f0"), key("f1"))
    reversal = undone(memory, entry)
    for name in ("f0", "f1"):
        now = memory.units[key(name)]
        assert now == before[key(name)].model_copy(update={"version": 3})
        assert memory.linked(key(name), "version") == [new]
    assert not memory.units[new].visible
    assert memory.linked(new, "version") == []
    assert memory.linked(new, "evidence") == [key("t")]
    assert memory.linked(key("near"), "semantic") == [key("f0")]
    assert links <= set(memory.links)
    assert memory.recoverability().coverage(1) == 1
    assert sorted(change for _, change in reversal.changes) == ["archived", "updated", "updated"]
    assert memory.journal[0].edits[0].undone_by == key("undo")
    (record,) = reversal.edits
    assert {unit.id for unit in record.before} == {new, key("f0"), key("f1")}


def test_it_is_undone_once(memory):
    entry, _ = merged(memory, "one", key("f0"), key("f1"))
    undone(memory, entry)
    assert chosen(memory, entry) == Refused("it did nothing, or was undone already")


def test_an_update_is_undone_to_the_text_and_validity_before(memory):
    osaka = a_fact("osaka", "Nora lives in Osaka.", about=("Nora", "lives_in", "Osaka"), day=9)
    memory.add(osaka, direction(1))
    old = memory.units[key("f0")]
    bank = memory.bank("one")
    update(bank, proposed("update", osaka.id, old.id), described("Nora lives in Osaka since March."), None)
    entry = memory.finish(bank)
    assert memory.units[old.id].valid_to == START + timedelta(days=9)
    undone(memory, entry)
    assert memory.units[old.id] == old.model_copy(update={"version": 2})
    assert memory.units[osaka.id].text == osaka.text
    assert memory.units[osaka.id].version == 3
    assert memory.linked(osaka.id, "version") == []


def test_what_later_edits_rest_on_is_refused_and_cascades(memory):
    first, new = merged(memory, "one", key("f0"), key("f1"))
    second, newer = merged(memory, "two", new, key("f2"))
    merged(memory, "three", newer, key("f3"))
    refused = chosen(memory, first)
    assert [at.entry.command.id for at in refused.dependents] == [key("two"), key("three")]
    assert [at.entry.command.id for at in chosen(memory, second).dependents] == [key("three")]
    order = chosen(memory, first, cascade=True)
    assert [at.entry.command.id for at in order] == [key("three"), key("two"), key("one")]
    undone(memory, first, cascade=True)
    assert {unit.id for unit in memory.visible("fact")} == {key("near"), *(key(f"f{n}") for n in range(4))}
    assert memory.linked(key("near"), "semantic") == [key("f0")]
    assert memory.recoverability().unreachable == ()
    assert all(entry.edits[0].undone_by == key("undo") for entry in memory.journal)


def test_an_edit_undone_since_is_no_dependent(memory):
    first, new = merged(memory, "one", key("f0"), key("f1"))
    second, _ = merged(memory, "two", new, key("f2"))
    undone(memory, second)
    assert [at.ordinal for at in chosen(memory, first)] == [0]
    undone(memory, first)
    assert len(memory.visible("fact")) == 5


def test_one_edit_of_a_run_is_undone_alone(memory):
    bank = memory.bank("one")
    for pair in (("f0", "f1"), ("f2", "f3")):
        merge(bank, proposed("merge", *map(key, pair)), described("Tokyo."), direction(1))
    entry = memory.finish(bank)
    undone(memory, entry, 1)
    assert {unit.id for unit in memory.visible("fact")} >= {key("f2"), key("f3")}
    assert [edit.undone_by for edit in memory.journal[0].edits] == [None, key("undo")]
    assert [at.ordinal for at in chosen(memory, entry)] == [0]
    assert "1" not in chosen(memory, entry, 7).reason
    assert isinstance(chosen(memory, entry, 7), Refused)


def test_a_promotion_has_nothing_to_return_to(memory):
    edit = Edit(operator="promote", outcome="executed", reason="recurrence", created=(key("f0"),))
    entry = an_entry(a_command("p", kind="promote"), [edit])
    for cascade in (False, True):
        refused = to_reverse(entry, None, [], cascade=cascade)
        assert "use forget" in refused.reason


def test_a_cascade_stops_at_a_promotion(memory):
    entry, new = merged(memory, "one", key("f0"), key("f1"))
    ended = memory.units[new]
    edit = Edit(
        operator="promote", outcome="executed", reason="recurrence", created=(key("f3"),), before=(ended,)
    )
    memory.journal.append(an_entry(a_command("p", kind="promote"), [edit], 1))
    refused = chosen(memory, entry, cascade=True)
    assert "use forget" in refused.reason
    assert [at.entry.command.id for at in refused.dependents] == [key("p")]


def test_an_undo_is_not_undone_and_no_dependent(memory):
    entry, _ = merged(memory, "one", key("f0"), key("f1"))
    later, _ = merged(memory, "two", key("f2"), key("f3"))
    reversal = undone(memory, later)
    undo = an_entry(a_command("u", kind="undo"), reversal.edits, 2)
    assert isinstance(to_reverse(undo, None, []), Refused)
    assert len(to_reverse(memory.journal[0], None, [memory.journal[1], undo])) == 1
    assert entry.ordinal == 0


def test_threads_get_their_heads_back(memory):
    turn = key("t")
    episodes = [memory.add(a_unit(f"e{n}", "episode", "Tokyo.", turn, day=n), direction(1)) for n in range(2)]
    for number, head in enumerate(episodes):
        memory.threads[key(f"th{number}")] = Thread(key(f"th{number}"), direction(1), 2, None, heads=(head,))
    entry, new = merged(memory, "one", *episodes)
    assert {thread.heads for thread in memory.threads.values()} == {(new,)}
    reversal = undone(memory, entry)
    assert [thread.heads for thread in memory.threads.values()] == [(episodes[0],), (episodes[1],)]
    assert len(reversal.threads) == 2


def test_a_thread_that_the_command_opened_loses_its_head(memory):
    """A merge that gave several episodes opened a thread for each but the nearest (DESIGN §5)."""
    turn = key("t")
    old = memory.units[memory.add(a_unit("e0", "episode", "v1", turn), direction(1))]
    new = [memory.add(a_unit(f"n{n}", "episode", "v2", turn, version=2), direction(1)) for n in range(2)]
    memory.units[old.id] = old.model_copy(update={"visible": False})
    for each in new:
        memory.link(each, old.id, "version")
        memory.threads[each] = Thread(each, direction(1), 2, None, heads=(each,))
    late = memory.add(a_fact("late", "Nora lived in Kyoto.", turn, visible=False))
    memory.link(key("f0"), late, "version")
    edit = Edit(
        operator="merge", outcome="executed", reason="merge_full", targets=(old.id,), created=tuple(new),
        before=(old,), heads={new[0]: (old.id,)},
        added=tuple(link for link in memory.links.values() if link.source in new or link.target == late),
    )  # fmt: skip
    entry = an_entry(a_command("m", kind="merge"), [edit])
    memory.journal.append(entry)
    undone(memory, entry)
    assert memory.units[old.id].version == 3
    assert memory.threads[new[0]].heads == (old.id,)
    assert memory.threads[new[1]].heads == ()
    assert memory.recoverability().unreachable == ()
    assert memory.linked(key("f0"), "version") == [late]


def test_links_that_come_back_keep_to_the_cap(memory):
    entry, new = merged(memory, "one", key("f0"), key("f1"))
    near = key("near")
    for number in range(8):
        other = memory.add(a_unit(f"x{number}", "fact", "…", key("t")), direction(1))
        memory.link(near, other, "semantic", 0.9)
    assert len(memory.linked(near, "semantic")) == 9
    undone(memory, entry)
    assert len(memory.linked(near, "semantic")) == 8
    assert key("f0") not in memory.linked(near, "semantic")
    assert new not in memory.linked(near, "semantic")


def test_what_was_forgotten_stays_forgotten(memory):
    entry, new = merged(memory, "one", key("f0"), key("f1"))
    edits = chosen(memory, entry)
    gone = reverse(edits, standing(memory, edits, without=(key("f0"), key("f1"))), key("undo"))
    assert "forgotten" in gone.reason
    half = reverse(edits, standing(memory, edits, without=(key("f0"),)), key("undo"))
    assert {unit.id for unit in half.units} == {new, key("f1")}
    assert all(key("f0") not in {link.source, link.target} for link in half.added)
    assert Link(namespace=NAMESPACE, source=key("f1"), target=new, type="version") in half.added
