from datetime import UTC, datetime

import pytest

from lamina.streams.resolution import answered, read, resolve

from .turns_kit import a_turn

SUNDAY = datetime(2023, 7, 2, 14, 32, tzinfo=UTC)


def talk(*said, at=SUNDAY):
    return [a_turn(text, number=n, speaker=who, said_at=at) for n, (who, text) in enumerate(said, start=1)]


def resolved(*said, at=SUNDAY):
    *before, turn = talk(*said, at=at)
    return read(turn, before[-2:]).text


EMMA = ("Emma", "Hey Sarah! What's up with you?")


# SimpleMem fig. 3
@pytest.mark.parametrize(
    ("said", "at", "expected"),
    [
        ("I just signed up for a pottery class yesterday!", SUNDAY, "yesterday (2023-07-01)"),
        ("I painted a sunset last week with my kids...", SUNDAY, "last week (2023-06-19 to 2023-06-25)"),
        ("I painted a sunset last week with my kids...", SUNDAY, "with Sarah's kids"),
        ("We're planning to go camping next month.", SUNDAY, "next month (2023-08)"),
        (
            "I took my kids to the Natural History Museum last Wednesday.",
            datetime(2023, 7, 15, 19, 21, tzinfo=UTC),
            "Sarah took Sarah's kids to the Natural History Museum last Wednesday (2023-07-12).",
        ),
        ("It was two weekends ago.", SUNDAY, "two weekends ago (2023-06-17 to 2023-06-18)"),
        ("Let's meet next Friday.", datetime(2025, 10, 20, 9, tzinfo=UTC), "next Friday (2025-10-24)"),
    ],
)
def test_the_published_case_is_resolved(said, at, expected):
    assert expected in resolved(EMMA, ("Sarah", said), at=at)


def test_the_speaker_takes_the_place_of_i_and_the_verb_goes_with_it():
    assert resolved(("Sarah", "I'm glad I have my own studio, and I'll show me.")) == (
        "Sarah is glad Sarah has Sarah's own studio, and Sarah will show Sarah."
    )


def test_a_role_is_no_name():
    assert resolved(("user", "My sister called.")) == "The user's sister called."


def test_we_stays_but_for_the_two_who_talk():
    assert resolved(EMMA, ("Sarah", "We should catch up.")) == "Sarah and Emma should catch up."
    assert resolved(EMMA, ("Sarah", "We went camping.")) == "We went camping."


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Do you like your new job?", "Does Sarah like Sarah's new job?"),
        ("You're so brave, proud of you!", "Sarah is so brave, proud of Sarah!"),
        ("You never know what comes.", "You never know what comes."),
        ("It helps when you paint.", "It helps when you paint."),
    ],
)
def test_you_is_the_other_of_two_where_it_is_addressed(said, expected):
    assert resolved(("Sarah", "Work was long."), ("Emma", said)) == expected


def test_you_stays_among_three():
    said = (("Sarah", "Hi"), ("Tom", "Hi"), ("Emma", "Do you like tea?"))
    assert resolved(*said) == "Do you like tea?"


def test_she_is_the_one_person_of_the_window():
    said = [("Sarah", "My sister Mia came for the cake."), ("Emma", "Does she like it?")]
    assert resolved(*said) == "Does Mia like it?"
    assert resolved(("Sarah", "My sister Mia is here. I love her and her dog.")) == (
        "Sarah's sister Mia is here. Sarah loves Mia and Mia's dog."
    )


@pytest.mark.parametrize(
    "before",
    [
        "My sister Mia and my aunt came.",
        "My sister Mia met Anna there.",
        "My sister Mia has a teacher she likes. The teacher is strict.",
        "Nothing new here.",
        "My brother came.",
    ],
)
def test_she_stays_where_more_than_one_or_none_fits(before):
    assert "She is" in resolved(("Sarah", before), ("Sarah", "She is late."))


def test_it_is_what_the_sentence_before_introduces():
    assert resolved(("Sarah", "I found a pottery class. It's like therapy.")) == (
        "Sarah found a pottery class. It (the pottery class) is like therapy."
    )
    assert "It was" in resolved(("Sarah", "I took a bag and a coat. It was cold."))


def test_a_single_noun_or_a_judgement_is_no_thing():
    assert resolved(("Sarah", "I made a plan. It's tough.")) == "Sarah made a plan. It's tough."
    assert resolved(("Sarah", "That is a good plan. It's tough.")) == "That is a good plan. It's tough."


def test_someone_of_either_sex_is_meant_in_the_same_turn_alone():
    assert resolved(("Sarah", "My cousin is ill, I help her find a home.")) == (
        "Sarah's cousin is ill, Sarah help Sarah's cousin find a home."
    )
    assert resolved(("Sarah", "My cousin is ill."), ("Emma", "How is she?")) == "How is she?"


def test_there_is_the_one_place_named():
    assert resolved(("Nora", "I order at SweetLeaf."), ("Nora", "The cakes there cost a lot.")) == (
        "The cakes there (SweetLeaf) cost a lot."
    )
    assert resolved(("Nora", "I order at SweetLeaf. There is a queue.")).endswith("There is a queue.")


def test_nothing_changes_gives_none():
    assert resolve(a_turn("The cake is ready."), ()) is None
    assert resolve(a_turn("I baked my cake.", speaker="Nora"), ()) is None, "it is embedded with its speaker"
    assert resolve(a_turn("I baked it yesterday.", speaker="Nora"), ()) is not None
    assert resolve(a_turn("3 May 2026 was sunny.", speaker="Nora"), ()) is None


def test_a_tools_words_are_not_talk():
    turn = a_turn("I fetched 3 rows yesterday, you asked for it", role="tool", speaker="tool")
    assert read(turn, ()).text.startswith("I fetched 3 rows yesterday (2026-05-03), you asked")


def test_what_is_left_open_can_be_answered():
    turn = a_turn("They sold it, and she kept it.", speaker="Nora")
    reading = read(turn, ())
    assert reading.open == ("They", "it", "she", "it")
    told = [("it", "the house"), ("they", "the Kims"), ("he", "Tom")]
    assert answered(reading, told) == "They (the Kims) sold it (the house), and she kept it."


def test_the_words_of_the_turn_stay_in_order():
    turn = a_turn("I love Lisbon, they sold it yesterday.\nYou said so — my cat agrees!", speaker="Nora")
    kept = read(turn, ()).text
    for word in ("love", "Lisbon", "sold", "yesterday", "said so —", "cat agrees!"):
        assert word in kept


def test_a_long_paste_is_read_in_part_and_kept_whole():
    turn = a_turn("I saw it. " * 5000, speaker="Nora")
    reading = read(turn, ())
    assert reading.text.endswith("I saw it. ")
    assert reading.text.startswith("Nora saw it. ")
    assert len(reading.open) == 6
