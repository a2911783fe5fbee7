"""Topology by rules: the published cases (All-Mem app. C.2, app. I), and what must stay as it is."""

from datetime import timedelta
from uuid import UUID

import pytest

from lamina.streams.engine import Neighbourhood, Node
from lamina.streams.namespace import Namespace
from lamina.streams.records import Unit
from lamina.streams.topology.rule_plans import in_common, merged, parts_of, refreshed
from lamina.streams.topology.rules import CERTAIN, diagnose, diagnose_all

from .turns_kit import SAID_AT, a_turn

GATE = 0.9
"""θ_op: what is proposed below is not carried out."""


def said(*texts, days=1, **fields) -> list[Unit]:
    """Turns of one person, each of another session, some days apart."""
    return [
        a_turn(text, number=n, session=str(n), said_at=SAID_AT + timedelta(days=n * days), **fields)
        for n, text in enumerate(texts, start=1)
    ]


def node(unit: Unit, *evidence: Unit) -> Node:
    return Node(unit, evidence or (unit,))


def around(*units: Unit) -> Neighbourhood:
    """The last unit as the target, the others as its anchors, nearest (last) first."""
    *anchors, target = units
    return Neighbourhood(node(target), tuple(node(unit) for unit in reversed(anchors)))


def accepted(*units: Unit) -> list[tuple[str, list[int]]]:
    return [
        (each.operator, [key.int for key in each.targets])
        for each in diagnose(around(*units))
        if each.confidence >= GATE
    ]


def a_fact(number, subject, relation, what, *, days=0, text=None) -> Unit:
    since = SAID_AT + timedelta(days=days)
    return Unit(
        id=UUID(int=number),
        namespace=Namespace("tenant/nora"),
        kind="fact",
        session="s",
        text=text or f"{subject} {relation} {what} (said {since.date()})",
        subject=subject,
        relation=relation,
        object=what,
        said_at=since,
        valid_from=since,
        recorded_at=SAID_AT,
    )


@pytest.mark.parametrize(
    ("texts", "edits"),
    [
        (["I learned PyTorch today. Also, I need to buy eggs."], [("split", [1])]),
        (["I went to the library, studied PyTorch, and then wrote some code."], []),
        (["I live in Tokyo.", "My residence is in Tokyo."], [("merge", [2, 1])]),
        (["I felt sad yesterday.", "I feel happy today."], []),
        (["I like apples.", "I hate apples now."], [("update", [2, 1])]),
        (["I live in New York.", "I moved to San Francisco."], [("update", [2, 1])]),
        (["I like apples.", "I like oranges."], []),
        (
            ["I have tried three Korean restaurants.", "I've now tried four Korean restaurants!"],
            [("update", [2, 1])],
        ),
    ],
)
def test_the_published_cases(texts, edits) -> None:
    assert accepted(*said(*texts)) == edits


@pytest.mark.parametrize(
    "texts",
    [
        ["I bought three apples.", "I bought four apples."],
        ["I have three meetings today.", "I have four meetings today."],
        ["I have tried three Korean restaurants.", "I have tried four Thai restaurants."],
        ["I live in New York and I am allergic to nuts.", "I moved to San Francisco."],
        ["I live in Tokyo and my knee hurts.", "My residence is in Tokyo."],
        ["I went hiking with Bob yesterday.", "I went hiking with Bob yesterday."],
        ["I was late again.", "I was late again."],
        ["Thanks!", "Thanks!"],
        ["My sister lives in Tokyo.", "I live in Tokyo."],
        ["I live in Tokyo.", "If I lived in Osaka, would I like it?"],
        ["I learned PyTorch today. I love how PyTorch feels."],
        ["We went camping on Saturday. Also, the kids roasted marshmallows by the lake."],
        ["I painted the fence. By the way, it took two days."],
        ["I completely agree! By the way, did you watch the Liverpool match?"],
        ["Lesson learned - save progress! By the way, I organised the programming seminar."],
        ["The graphics are truly stunning! By the way, look! [photo: a gaming room]"],
        ["My flight was late. Also, I need to call the airline because of it."],
    ],
)
def test_what_leaves_a_doubt_stays_as_it_is(texts) -> None:
    assert accepted(*said(*texts)) == []


def test_an_older_target_is_superseded_by_a_newer_anchor() -> None:
    older, newer = said("I live in New York.", "I moved to San Francisco.")
    assert accepted(newer, older) == [("update", [2, 1])]


def test_two_statements_of_one_moment_do_not_supersede_each_other() -> None:
    assert accepted(*said("I like apples.", "I hate apples.", days=0)) == []


def test_a_return_is_not_the_same_stay() -> None:
    tokyo, osaka, again = said("I live in Tokyo.", "I live in Osaka.", "I live in Tokyo.")
    assert accepted(tokyo, osaka, again) == [("update", [3, 2])]


def test_a_merge_takes_four_at_most_the_nearest_first() -> None:
    units = said(*["I live in Tokyo."] * 6)
    assert accepted(*units) == [("merge", [6, 5, 4, 3])]


def test_only_units_of_one_voice_and_kind_are_compared() -> None:
    (mine,) = said("I live in Tokyo.")
    other = a_turn("I live in Tokyo.", number=7, speaker="Ben", session="7", said_at=SAID_AT)
    fact = a_fact(8, "Nora", "lives_in", "Tokyo")
    assert accepted(other, fact, mine) == []


def test_the_same_words_about_the_same_day_are_one() -> None:
    first = a_turn("I went hiking with Bob on 3 May 2026.", number=1, session="1")
    again = a_turn("On 3 May 2026 I went hiking with Bob!", number=2, session="2")
    assert accepted(first, again) == []
    assert accepted(first, again.model_copy(update={"text": first.text})) == [("merge", [2, 1])]


@pytest.mark.parametrize(
    ("older", "newer", "edits"),
    [
        (("Nora", "allergic_to", "peanuts"), ("Nora", "allergic_to", "the peanut"), [("merge", [2, 1])]),
        (("Nora", "lives_in", "Lisbon"), ("Nora", "lives_in", "Porto"), [("update", [2, 1])]),
        (("Nora", "likes", "tea"), ("Nora", "likes", "coffee"), []),
        (("Nora", "lives_in", "Lisbon"), ("Mia", "lives_in", "Porto"), []),
        (
            ("Nora", "has_tried", "three Korean restaurants"),
            ("Nora", "has_tried", "4 Korean restaurants"),
            [("update", [2, 1])],
        ),
        (("Nora", "has_read", "two books"), ("Nora", "has_read", "two papers"), []),
    ],
)
def test_facts_are_compared_by_subject_relation_and_object(older, newer, edits) -> None:
    assert accepted(a_fact(1, *older), a_fact(2, *newer, days=3)) == edits


def test_an_episode_of_two_unrelated_threads_comes_apart_and_one_of_a_thread_does_not() -> None:
    bees = said(
        "The bees behind the barn made forty jars of honey in spring.",
        "Honey sold out at the farmers market, the bees work hard.",
    )
    tax = [
        a_turn("My accountant filed the income statement for the freelance job.", number=11, session="11"),
        a_turn("The accountant wants every invoice scanned by Friday.", number=12, session="12"),
    ]

    def episode(*turns: Unit) -> Node:
        unit = a_turn("narrative", number=99).model_copy(
            update={"kind": "episode", "evidence": tuple(turn.id for turn in turns)}
        )
        return Node(unit, turns)

    apart, sure = parts_of(episode(bees[0], tax[0], bees[1], tax[1]))
    assert sure
    assert [part.split("\n") for part in apart] == [
        [bees[0].text, bees[1].text],
        [tax[0].text, tax[1].text],
    ]
    assert parts_of(episode(*bees)) == ((), False)


def test_parts_of_a_turn_are_copied_and_leave_nothing_out() -> None:
    text = "I learned PyTorch today.  It was fun! Also, I need to buy eggs. And some milk."
    (turn,) = said(text)
    parts, sure = parts_of(node(turn))
    assert sure
    assert parts == ("I learned PyTorch today.  It was fun!", "Also, I need to buy eggs. And some milk.")


def test_a_merge_keeps_the_words_of_the_source_that_says_most_and_all_keywords() -> None:
    short, long = said("I live in Tokyo.", "I live in Tokyo, in Shibuya ward.")
    descriptor = merged([node(long), node(short)])
    assert descriptor is not None
    assert descriptor.summary == "Nora: I live in Tokyo, in Shibuya ward."
    assert {"tokyo", "shibuya"} <= set(descriptor.keywords)


def test_a_refreshed_descriptor_names_the_date_once() -> None:
    (turn,) = said("I moved to San Francisco.")
    first = refreshed(node(turn))
    assert first.summary == "[2026-05-05] Nora: I moved to San Francisco."
    again = refreshed(node(turn.model_copy(update={"summary": first.summary, "keywords": first.keywords})))
    assert again == first
    fact = a_fact(1, "Nora", "lives_in", "Lisbon")
    assert refreshed(node(fact)).summary == fact.text


def test_an_abstract_needs_something_in_common() -> None:
    hobbies = [
        node(a_fact(n, "Sarah", "likes", what)) for n, what in enumerate(("pottery", "painting", "hiking"))
    ]
    descriptor = in_common(hobbies)
    assert descriptor is not None
    assert descriptor.summary == "Sarah likes: pottery; painting; hiking"
    assert in_common(hobbies[:2]) is None
    assert in_common([*hobbies[:2], node(a_fact(9, "Sarah", "lives_in", "Lisbon"))]) is None


def test_the_same_neighbourhood_gives_the_same_proposals() -> None:
    units = said("I live in New York.", "I like apples.", "I moved to San Francisco.")
    first, again = diagnose_all([around(*units)] * 2)
    assert first == again
    assert [each.confidence for each in first] == [CERTAIN]
