from datetime import UTC, datetime, timedelta

import pytest

from lamina.streams.facts import SINGLE_VALUED, facts_across, facts_in, replaces

from .turns_kit import SAID_AT, a_turn, turns_of


def stated(text, **fields):
    return [(fact.subject, fact.relation, fact.object) for fact in facts_in(a_turn(text, **fields))]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("I live in Lisbon now.", ("Nora", "lives_in", "Lisbon")),
        ("i live in berlin", ("Nora", "lives_in", "berlin")),
        ("I'm living in New York City with my dog.", ("Nora", "lives_in", "New York City")),
        ("I moved to Lisbon on 3 May!", ("Nora", "lives_in", "Lisbon")),
        ("We moved from Porto to Lisbon last week.", ("Nora", "lives_in", "Lisbon")),
        ("I just moved to Lisbon, and I love it.", ("Nora", "lives_in", "Lisbon")),
        ("I've lived in Lisbon since 2019.", ("Nora", "lives_in", "Lisbon")),
        ("Tom lives in Berlin.", ("Tom", "lives_in", "Berlin")),
        ("My friend Sarah lives in Boston.", ("Sarah", "lives_in", "Boston")),
        ("I'm from Sweden.", ("Nora", "comes_from", "Sweden")),
        ("I was born in Oslo.", ("Nora", "born_in", "Oslo")),
        ("I live in Lisbon and work at Siemens.", ("Nora", "works_at", "Siemens")),
        ("I work for the city council.", ("Nora", "works_at", "the city council")),
        ("I just started a new job at Acme Corp last month.", ("Nora", "works_at", "Acme Corp")),
        ("I'm working as a software engineer at Google.", ("Nora", "works_as", "software engineer")),
        ("I'm a teacher.", ("Nora", "works_as", "teacher")),
        ("My brother is a doctor.", ("Nora's brother", "works_as", "doctor")),
        ("I'm allergic to peanuts, so please be careful.", ("Nora", "allergic_to", "peanuts")),
        ("I have a peanut allergy.", ("Nora", "allergic_to", "peanut")),
        ("My sister Mia is severely allergic to peanuts.", ("Mia", "allergic_to", "peanuts")),
        ("The cake is for my sister, Mia, who is allergic to nuts.", ("Mia", "allergic_to", "nuts")),
        ("I'm vegetarian.", ("Nora", "diet", "vegetarian")),
        ("I have a sister named Mia.", ("Nora", "sister", "Mia")),
        ("My dog is called Rex.", ("Nora", "dog", "Rex")),
        ("My brother's name is Tom.", ("Nora", "brother", "Tom")),
        ("I have a golden retriever puppy named Max.", ("Nora", "dog", "Max")),
        ("Tom is my brother.", ("Nora", "brother", "Tom")),
        ("My husband Ben and I went hiking.", ("Nora", "husband", "Ben")),
        ("I'm married to Ben.", ("Nora", "spouse", "Ben")),
        ("I got married last month!", ("Nora", "marital_status", "married")),
        ("My birthday is on 3 May.", ("Nora", "birthday", "3 May")),
        ("I was born on 13 August 1990.", ("Nora", "birthday", "13 August 1990")),
        ("My sister Mia's birthday is June 5.", ("Mia", "birthday", "5 June")),
        ("I'm 34 years old.", ("Nora", "age", "34")),
        ("I have two kids.", ("Nora", "children", "two kids")),
        ("I really love Italian food because it's comforting.", ("Nora", "likes", "Italian food")),
        ("I'm a big fan of jazz.", ("Nora", "likes", "jazz")),
        ("I like hiking with my dog.", ("Nora", "likes", "hiking with Nora's dog")),
        ("I prefer tea to coffee.", ("Nora", "prefers", "tea to coffee")),
        ("I hate coriander.", ("Nora", "dislikes", "coriander")),
        ("My favorite ice cream is pistachio, how about you?", ("Nora", "favourite_ice_cream", "pistachio")),
        ("My favorite color is green.", ("Nora", "favourite_colour", "green")),
        ("Dune is my favourite book.", ("Nora", "favourite_book", "Dune")),
        ("My report is due on 12 June.", ("report", "deadline", "2026-06-12")),
        ("The deadline for the grant proposal is next Friday.", ("grant proposal", "deadline", "2026-05-08")),
        ("I have to submit my thesis by June 5.", ("thesis", "deadline", "2026-06-05")),
        ("My phone number is +351 912 345 678.", ("Nora", "phone", "+351 912 345 678")),
        ("My work email is nora@example.com.", ("Nora", "work_email", "nora@example.com")),
        ("Email me at n.s@example.org please.", ("Nora", "email", "n.s@example.org")),
        ("My name is Nora Silva.", ("Nora", "name", "Nora Silva")),
        ("I'm studying biology at Lund University.", ("Nora", "studies", "biology")),
        ("I study biology at Lund University.", ("Nora", "studies_at", "Lund University")),
        ("I speak Portuguese.", ("Nora", "speaks", "Portuguese")),
        ("I'm learning Japanese.", ("Nora", "learning", "Japanese")),
        ("I'm taking pottery classes.", ("Nora", "learning", "pottery")),
        ("I plan to visit my sister in June.", ("Nora", "plans_to", "visit Nora's sister in June")),
        ("I'm moving to Porto next month.", ("Nora", "plans_to", "move to Porto next month")),
    ],
)
def test_plain_statement_gives_its_fact(text, fact):
    assert fact in stated(text)


@pytest.mark.parametrize(
    "text",
    [
        "Do I live in Lisbon?",
        "where do you think I live in Lisbon",
        "I live in Lisbon, right?",
        "I don't live in Lisbon.",
        "I dont live in Lisbon",
        "I no longer work at Google.",
        "I'm not allergic to peanuts.",
        "I never said that I love hiking.",
        "I can't say I love hiking.",
        "I wish I lived in Lisbon.",
        "If I moved to Lisbon, I'd be happy.",
        "I would love to live in Rome.",
        "I'd like to order a pizza.",
        "I might move to Lisbon.",
        "Maybe I moved to Lisbon too early.",
        "I used to live in Lisbon.",
        "I lived in Lisbon.",
        "I almost moved to Paris.",
        "I hope to live in Rome.",
        "I'm thinking about whether I live in Rome.",
        "When I moved to Lisbon I was ten.",
        "I live in Lisbon, just kidding!",
        "You live in Lisbon.",
        "Your sister Mia is nice.",
        "He said I live in Lisbon.",
        "My sister says I work at Google.",
        "Tom thinks, I live in Paris.",
        '"I live in Lisbon," said Tom.',
        "I thought I was allergic to cats.",
        "She works at Google.",
        "Everyone lives in London.",
        "I live in fear.",
        "I live in a small flat.",
        "I moved to the kitchen.",
        "I work at night.",
        "I work at home",
        "We work as a team.",
        "I'm a bit tired.",
        "I love you!",
        "I love the painting.",
        "I love how it turned out.",
        "I like that!",
        "I like to think so.",
        "It is something I love doing every day.",
        "I love stories that tackle hard issues.",
        "I love creating a safe, inviting place.",
        "I'm learning a lot.",
        "I'm studying for the exam.",
        "My favorite part is when we sing.",
        "My birthday is next month.",
        "I decided to take a break yesterday.",
        "I told Anna about my sister. She's allergic to cats.",
        "My girlfriend, Toby and I are camping.",
        "I am from Monday on at work",
        "Thanks! That sounds great.",
        "",
    ],
)
def test_question_denial_supposition_report_or_vagueness_gives_no_fact(text):
    assert stated(text) == []


def test_assistants_words_are_no_facts_of_the_user():
    assert stated("I'm allergic to peanuts.", role="assistant", speaker="assistant") == []


def test_details_of_recmem_appendix_b_are_recovered():
    facts = stated(
        "I want to order a birthday cake at SweetLeaf for my sister Mia. She's allergic to peanuts!"
    )
    assert ("Nora", "sister", "Mia") in facts
    assert ("Mia", "allergic_to", "peanuts") in facts


def test_list_gives_a_fact_for_each_item():
    facts = stated("I'm allergic to peanuts, shellfish and cats.")
    assert facts == [("Nora", "allergic_to", item) for item in ("peanuts", "shellfish", "cats")]


def test_text_reads_as_a_sentence_with_name_and_date():
    (fact,) = facts_in(a_turn("I live in Lisbon now."))
    assert fact.text == "Nora lives in Lisbon (said 2026-05-04)"
    assert fact.evidence == (a_turn("").id,)
    (favourite,) = facts_in(a_turn("My favourite colour is green."))
    assert favourite.text == "Nora's favourite colour is green (said 2026-05-04)"


def test_user_without_a_name_is_the_user():
    (fact,) = facts_in(a_turn("I live in Lisbon.", speaker="user"))
    assert (fact.subject, fact.text) == ("user", "The user lives in Lisbon (said 2026-05-04)")


def test_fact_holds_from_the_past_date_of_its_clause():
    (fact,) = facts_in(a_turn("I moved to Lisbon on 3 May."))
    assert fact.valid_from == datetime(2026, 5, 3, tzinfo=UTC)
    assert (fact.occurred_from, fact.occurred_to) == (fact.valid_from, datetime(2026, 5, 4, tzinfo=UTC))


def test_fact_without_a_past_date_holds_from_when_it_was_said():
    turn = a_turn("I live in Lisbon.")
    assert facts_in(turn)[0].valid_from == turn.said_at
    plan = a_turn("I plan to visit Porto next month.")
    (fact,) = facts_in(plan)
    assert fact.valid_from == plan.said_at
    assert fact.occurred_from == datetime(2026, 6, 1, tzinfo=UTC)
    assert "next month = 2026-06" in fact.text


def test_only_relations_of_one_value_replace():
    assert all(replaces(relation) for relation in SINGLE_VALUED)
    assert replaces("favourite_colour")
    assert replaces("work_email")
    assert not any(replaces(relation) for relation in ("allergic_to", "likes", "sister", "speaks"))


def test_repetition_across_turns_adds_evidence_instead_of_a_fact():
    turns = turns_of("I'm allergic to nuts.", "Nice weather.", "As I said, I'm allergic to nuts.")
    (fact,) = facts_across(turns)
    assert fact.evidence == (turns[0].id, turns[2].id)
    assert fact.valid_from == turns[0].said_at


def test_moving_back_is_a_new_fact():
    moves = facts_across(turns_of("I live in Lisbon.", "I moved to Porto.", "I moved to Lisbon."))
    assert [fact.object for fact in moves] == ["Lisbon", "Porto", "Lisbon"]


def test_long_text_costs_bounded_time():
    assert facts_in(a_turn("I like " * 20_000)) == []
    assert facts_in(a_turn("Mia-" * 20_000 + " and I live in Lisbon")) == []
    assert len(facts_in(a_turn(("I moved from Porto to the " + "Big " * 80 + ". ") * 300))) == 1


def test_facts_do_not_depend_on_when_they_are_read():
    turn = a_turn("I moved to Lisbon on 3 May and I like surfing.")
    assert facts_in(turn) == facts_in(turn.model_copy(update={"recorded_at": SAID_AT.replace(year=2030)}))


def test_a_time_in_the_far_future_does_not_make_a_fact_the_newest_for_ever():
    future = datetime(2099, 1, 1, tzinfo=UTC)
    (fact,) = facts_in(a_turn("I live in Rome.", said_at=future, time_source="future"))
    assert fact.valid_from == SAID_AT + timedelta(days=1)
