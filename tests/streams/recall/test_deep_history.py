"""The history as programs see it: numbers, sessions, searches, and what of it counts as read."""

import json
from datetime import timedelta

import pytest

from lamina.streams.recall.deep.functions import NOTHING, Claim, Misuse, claim_of, look, numbered, texts_of
from lamina.streams.recall.deep.history import History, read_history
from lamina.streams.recall.deep.sandbox import Call
from lamina.streams.recall.deep.shown import Shown

from .recall_kit import ADA, NOON, a_unit

TURNS = (
    a_unit("I grew up in Nairobi.", minute=0, session="one"),
    a_unit("And you?", minute=1, session="one", speaker="", role="assistant"),
    a_unit("Back in one?", minute=3, session="one"),
    a_unit("Lisbon, and\nsunny.", minute=2, session="two"),
)
HISTORY = History(tuple(sorted(TURNS, key=lambda turn: turn.said_at)))


class Pages:
    """Tables with turns alone, newest first; they count how many pages were read."""

    def __init__(self, turns):
        self.turns = sorted(turns, key=lambda turn: -turn.position)
        self.asked = []

    async def turns_before(self, namespace, position, limit, *, said_to=None):
        self.asked.append(position)
        assert namespace == ADA
        return [
            turn
            for turn in self.turns
            if (position is None or turn.position < position) and (said_to is None or turn.said_at <= said_to)
        ][: min(limit, 2)]


async def test_a_history_is_read_in_pages_and_ordered_by_when_it_was_said():
    late = a_unit("imported later", minute=9).model_copy(update={"said_at": NOON - timedelta(days=1)})
    tables = Pages([*TURNS, late])
    history = await read_history(tables, ADA, None, turns=100, characters=10_000)
    assert [turn.text for turn in history.turns] == [
        "imported later",
        "I grew up in Nairobi.",
        "And you?",
        "Lisbon, and\nsunny.",
        "Back in one?",
    ]
    assert not history.cut
    assert tables.asked == [None, 4, 2, 1]


@pytest.mark.parametrize(("turns", "characters", "kept"), [(3, 10_000, 3), (100, 30, 2), (100, 0, 0)])
async def test_reading_stops_at_a_limit_with_the_newest_arrivals(turns, characters, kept):
    history = await read_history(Pages(TURNS), ADA, None, turns=turns, characters=characters)
    assert [turn.position for turn in history.turns] == list(range(5 - kept, 5))
    assert history.cut


async def test_exactly_the_most_turns_is_not_cut():
    history = await read_history(Pages(TURNS), ADA, None, turns=4, characters=10_000)
    assert (len(history.turns), history.cut) == (4, False)


async def test_as_of_leaves_out_what_was_said_later():
    as_of = NOON + timedelta(minutes=1)
    history = await read_history(Pages(TURNS), ADA, as_of, turns=2, characters=10_000)
    assert (len(history.turns), history.cut) == (2, False)


def test_sessions_come_in_the_order_in_which_they_began_with_all_their_turns():
    one, two = HISTORY.parts(1000)
    assert one.text.splitlines() == [
        "Session 1, 2026-03-01",
        "[1] 2026-03-01 ada: I grew up in Nairobi.",
        "[2] 2026-03-01 assistant: And you?",
        "[4] 2026-03-01 ada: Back in one?",
    ]
    assert two.text.startswith("Session 2, 2026-03-01\n[3] ")


def test_a_long_session_is_several_parts_none_too_long_and_nothing_lost():
    turns = tuple(a_unit(f"number {number} " + "x" * 40, minute=number) for number in range(30))
    history = History((*turns, a_unit("y" * 5000, minute=40)))
    parts = history.parts(300)
    assert all(len(part.text) <= 300 for part in parts)
    assert all(part.text.startswith("Session 1, 2026-03-01\n[") for part in parts)
    text = "\n".join(part.text for part in parts)
    assert all(f"[{number + 1}] 2026-03-01 ada: {turn.text}" in text for number, turn in enumerate(turns))
    assert parts[-1].text.endswith("y…")


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("NAIROBI", [1]),
        ("in", [4, 1]),
        ("and", [3, 2]),
        ("sunny lisbon", [3]),
        ("lisbon nairobi", []),
        ("  ", []),
        ("", []),
    ],
)
def test_a_search_finds_turns_with_every_word_newest_first(query, numbers):
    assert HISTORY.search(query, 50) == numbers
    assert HISTORY.search(query, 1) == numbers[:1]


def test_recent_turns_are_the_last_ones_in_their_order():
    assert HISTORY.recent(2) == [3, 4]
    assert HISTORY.recent(99) == [1, 2, 3, 4]
    assert History(()).recent(3) == []


def test_a_hit_says_who_when_and_where():
    assert HISTORY.entry(2) == {
        "n": 2,
        "date": "2026-03-01 12:01",
        "session": 1,
        "speaker": "assistant",
        "text": "And you?",
    }


def shown(*, printed="", read=""):
    shown = Shown(HISTORY)
    shown.printed(printed)
    shown.read(read)
    return [number for number in range(-1, 7) if shown.holds(number)]


@pytest.mark.parametrize(
    "printed",
    [
        str([HISTORY.entry(3)]),
        json.dumps(HISTORY.entry(3)),
        "3 Lisbon, and\nsunny.",
        "Lisbon, and sunny. (turn 3)",
        "[3] ADA: LISBON, AND SUNNY.",
    ],
)
def test_a_printed_turn_with_its_number_was_seen_however_it_was_printed(printed):
    assert shown(printed=printed) == [3]


@pytest.mark.parametrize(
    "printed", ["[3]", "3", "Lisbon, and sunny.", "13 Lisbon, and sunny.", "33 Lisbon", "3 Lisbon", ""]
)
def test_a_number_or_words_alone_were_not(printed):
    assert shown(printed=printed) == []


def test_turns_of_a_text_given_to_a_reader_were_seen():
    assert shown(read=HISTORY.parts(1000)[0].text) == [1, 2, 4]


def test_words_of_other_scripts_and_none_at_all_are_recognised():
    history = History((a_unit("我在里斯本 ✨"), a_unit("🎉🎉", minute=1)))
    for printed in (str([history.entry(1)]), json.dumps(history.entry(1))):
        told = Shown(history)
        told.printed(printed)
        assert told.holds(1)
    told = Shown(history)
    told.printed("2: 🎉🎉")
    assert (told.holds(1), told.holds(2)) == (False, True)


def test_what_is_printed_later_counts_from_then_on():
    told = Shown(HISTORY)
    assert not told.holds(1)
    told.printed("[1] I grew up in Nairobi.")
    assert told.holds(1)


@pytest.mark.parametrize(
    "call",
    [
        Call("search_history"),
        Call("search_history", (5,)),
        Call("search_history", (None,)),
        Call("search_history", ("x", "2")),
        Call("search_history", ("x", True)),
        Call("search_history", ("x", 0)),
        Call("search_history", ("x", 10**9)),
        Call("search_history", ("x" * 501,)),
        Call("search_history", ("x", 1, 2)),
        Call("search_history", ("x",), {"query": "y"}),
        Call("search_history", ("x",), {"namespace": "t/mallory"}),
        Call("get_recent"),
        Call("get_recent", (-1,)),
        Call("get_recent", (2.0,)),
        Call("sessions", (1,)),
        Call("session_dates", (), {"user": "mallory"}),
    ],
    ids=str,
)
def test_a_look_with_wrong_arguments_is_told_what_it_takes(call):
    with pytest.raises(Misuse, match=call.name):
        look(call, HISTORY, 1000)


@pytest.mark.parametrize(
    "call",
    [
        Call("llm_query"),
        Call("llm_query", (5,)),
        Call("llm_query", (["a"],)),
        Call("llm_query", ("x" * 1001,)),
        Call("llm_query", ("x", 5)),
        Call("llm_query", ("x", "q" * 2001)),
        Call("llm_query_parallel", ("abc",)),
        Call("llm_query_parallel", ([1, 2],)),
        Call("llm_query_parallel", ([["a"]],)),
        Call("llm_query_parallel", (["x"] * 1001,)),
        Call("llm_query_parallel", ({"a": 1},)),
    ],
    ids=lambda call: str(call)[:60],
)
def test_texts_that_no_reader_takes_are_refused(call):
    with pytest.raises(Misuse):
        texts_of(call, "who?", 1000)


def test_readers_are_asked_the_users_question_unless_another_is_given():
    assert texts_of(Call("llm_query", ("a",)), "who?", 10).question == "who?"
    asked = texts_of(Call("llm_query_parallel", (("a", "b"),), {"question": "when?"}), "who?", 10)
    assert (asked.texts, asked.question, asked.alone) == (("a", "b"), "when?", False)


@pytest.mark.parametrize(
    ("args", "claim"),
    [
        (("Lisbon", [3]), Claim("Lisbon", (3,))),
        (("Lisbon", {3, 4}), Claim("Lisbon", (3, 4))),
        (("Lisbon", ["3", 3]), Claim("Lisbon", (3,))),
        (("Lisbon", 3), Claim("Lisbon", (3,))),
        ((7, [1]), Claim("7", (1,))),
        (("  ", []), NOTHING),
        ((None,), NOTHING),
    ],
)
def test_what_is_called_final_is_read_generously(args, claim):
    assert claim_of(Call("FINAL", args)) == claim


@pytest.mark.parametrize(
    "args",
    [
        (),
        (["Lisbon"], [3]),
        ({"a": 1}, [3]),
        ("Lisbon", [3.5]),
        ("Lisbon", [None]),
        ("Lisbon", [True]),
        ("Lisbon", ["t/mallory"]),
        ("Lisbon", [["3"]]),
        ("Lisbon", {"3": 3}),
        ("Lisbon", list(range(21))),
        ("x" * 4001, [3]),
        (10**5000, [3]),
    ],
    ids=lambda args: str(type(args[0]) if args else ())[:40],
)
def test_what_cannot_be_final_is_refused(args):
    with pytest.raises(Misuse, match="FINAL"):
        claim_of(Call("FINAL", args))


def test_a_finding_carries_its_turns_and_nothing_stays_nothing():
    assert numbered(" Lisbon ", [3, 4]) == "Lisbon [3] [4]"
    assert numbered("  ", [3]) == ""
