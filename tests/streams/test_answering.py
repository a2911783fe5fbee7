import random
from datetime import UTC, datetime, timedelta
from uuid import UUID

from lamina.streams.answering import NOT_IN_MEMORY, Evidence, answer
from lamina.streams.facts import facts_in
from lamina.streams.records import Unit

from .turns_kit import SAID_AT, a_turn


def found(*turns, score=0.5):
    return [Evidence(turn, score, (turn,)) for turn in turns]


def fact_of(turn, **changes):
    (draft,) = facts_in(turn)
    unit = Unit(
        **turn.model_dump(exclude={"kind", "text", "id", "evidence", "subject", "relation", "object"}),
        kind="fact",
        id=UUID(int=turn.id.int + 1000),
        text=draft.text,
        subject=draft.subject,
        relation=draft.relation,
        object=draft.object,
        evidence=draft.evidence,
    )
    return unit.model_copy(update=changes)


CHAT = [
    a_turn("Hi there! How are you?", number=1, speaker="Tom"),
    a_turn("Good! I live in Lisbon now. The food is great.", number=2),
    a_turn("I ran 18 km yesterday.", number=3, said_at=datetime(2026, 3, 8, 9, tzinfo=UTC)),
    a_turn("My sister Mia is allergic to peanuts.", number=4),
    a_turn("I adopted two kittens from the shelter.", number=5, speaker="Tom"),
]


def test_answer_quotes_speaker_and_date():
    given = answer("Where does Nora live?", found(*CHAT))
    assert given.text == "Nora: I live in Lisbon now. [4 May 2026]"
    assert given.evidence == (CHAT[1].id,)
    assert given.grounded
    assert given.engine == "extractive"
    assert given.turns == (CHAT[1],)


def test_when_question_is_answered_with_the_absolute_date():
    given = answer("When did Nora run 18 km?", found(*CHAT))
    assert given.text == "Nora: I ran 18 km yesterday. [said 2026-03-08; yesterday = 2026-03-07]"


def test_who_question_is_answered_with_a_name():
    turns = [a_turn("Somebody is allergic to peanuts here.", number=1), CHAT[3]]
    assert "Mia" in answer("Who is allergic to peanuts?", found(*turns)).text.splitlines()[0]


def test_how_many_question_is_answered_with_a_number():
    vague = a_turn("I adopted kittens from the shelter, they are sweet.", number=6, speaker="Tom")
    text = answer("How many kittens did Tom adopt from the shelter?", found(vague, *CHAT)).text
    assert "two kittens" in text.splitlines()[0]


def test_newer_fact_comes_before_the_one_it_replaced():
    old = a_turn("I live in Porto.", number=1, said_at=SAID_AT - timedelta(days=400))
    new = a_turn("I moved to Lisbon last week.", number=2)
    given = answer("Where does Nora live now?", [*found(old, score=0.8), *found(new, score=0.5)])
    assert "Lisbon" in given.text.splitlines()[0]
    assert "Porto" not in given.text


def test_ended_fact_stands_behind_even_without_its_successor():
    ended = a_turn("I live in Porto.", number=1)
    other = a_turn("I live in Lisbon.", number=2, said_at=SAID_AT - timedelta(days=30))
    evidence = [
        Evidence(fact_of(ended, visible=False, valid_to=SAID_AT), 0.7, (ended,)),
        *found(other, score=0.6),
    ]
    assert "Lisbon" in answer("Where does Nora live?", evidence).text.splitlines()[0]


def test_derived_memory_is_answered_with_the_turn_it_rests_on():
    turn = CHAT[3]
    fact = fact_of(a_turn("I'm allergic to nuts.", number=8))
    episode = fact.model_copy(
        update={"kind": "episode", "evidence": (turn.id,), "text": "[…] Nora: allergies"}
    )
    given = answer("What is Mia allergic to?", [Evidence(episode, 0.6, (turn,))])
    assert given.evidence == (turn.id,)
    assert "peanuts" in given.text


def test_derived_memory_without_its_turns_cites_its_evidence():
    fact = fact_of(a_turn("I'm allergic to nuts.", number=8))
    given = answer("What is Nora allergic to?", [Evidence(fact, 0.6, ())])
    assert given.evidence == fact.evidence
    assert "nuts" in given.text


def test_every_value_of_a_relation_is_named():
    turns = [
        a_turn("I'm allergic to peanuts.", number=1),
        a_turn("Lovely weather in the mountains.", number=2),
        a_turn("I found out that I'm allergic to cats.", number=3),
        a_turn("I'm allergic to shellfish.", number=4),
    ]
    given = answer("What is Nora allergic to?", found(*turns))
    assert "peanuts" in given.text
    assert "shellfish" in given.text
    assert len(given.evidence) == len(given.turns) >= 2


def test_the_question_repeated_is_no_evidence_for_itself():
    asked = a_turn("Where does Nora live?", number=9, speaker="Tom")
    given = answer("Where does Nora live?", [*found(asked, score=0.99), *found(*CHAT)])
    assert given.evidence == (CHAT[1].id,)


def test_reply_is_found_by_the_question_it_answers():
    turns = [
        a_turn("What instrument do you play, Nora?", number=1, speaker="Tom"),
        a_turn("The clarinet, since second grade.", number=2),
        a_turn("It rained on the roof all night.", number=3),
    ]
    assert "clarinet" in answer("What instrument does Nora play?", found(*turns)).text.splitlines()[0]


def test_what_memory_does_not_hold_is_not_guessed():
    for question in ("What is Nora's blood type?", "Who won the chess final?", "When did Nora visit Japan?"):
        given = answer(question, found(*CHAT, score=0.2))
        assert given.text == NOT_IN_MEMORY
        assert not given.grounded
        assert given.evidence == given.turns == ()


def test_nothing_found_gives_no_answer():
    assert answer("Where?", []).text == NOT_IN_MEMORY
    assert not answer("", found(a_turn("😊"))).grounded


def test_close_meaning_answers_without_a_shared_word():
    turn = a_turn("Our headcount doubled to forty.", number=1)
    assert answer("staff size?", found(turn, score=0.75)).grounded
    assert not answer("staff size?", found(turn, score=0.3)).grounded


def test_order_of_what_was_found_makes_no_difference():
    evidence = found(*CHAT)
    shuffled = evidence.copy()
    random.Random(2).shuffle(shuffled)
    for question in ("Where does Nora live?", "What is Mia allergic to?", "When did Nora run?"):
        assert answer(question, shuffled) == answer(question, evidence)
