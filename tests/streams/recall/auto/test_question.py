"""What a question asks for, asked on Sunday 15 October 2023."""

from datetime import UTC, datetime

import pytest

from lamina.streams.recall.auto.question import read
from lamina.streams.recall.constraints import LONGEST

from .pool_kit import NOON

SPEAKERS = ("Ada", "Caroline Smith", "John Smith", "assistant", "Will", "李雷")


def moment(year, month, day):
    return datetime(year, month, day, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("When did Nora run?", {"when"}),
        ("In which year did she move?", {"when", "who", "what"}),
        ("How long did it take?", {"count"}),
        ("how many dogs are there", {"count"}),
        ("Who is it?", {"who"}),
        ("Where is it?", {"who"}),
        ("What is it?", {"what"}),
        ("Which one is it?", {"who", "what"}),
        ("Is it a whale?", set()),
        ("", set()),
    ],
)
def test_the_kind_of_answer(question, asks):
    said = read(question, NOON, ())
    assert {kind for kind in ("when", "count", "who", "what") if getattr(said, kind)} == asks


@pytest.mark.parametrize(
    ("question", "speaker"),
    [
        ("What's Ada's hobby?", "Ada"),
        ("what does ADA like", "Ada"),
        ("What did Caroline paint?", "Caroline Smith"),
        ("What did Caroline Smith paint?", "Caroline Smith"),
        ("What did Smith paint?", None),  # two of that name
        ("What did Ada and John do?", None),
        ("What did the assistant say?", "assistant"),
        ("Will it rain?", None),
        ("Where is Canada?", None),
        ("李雷 在哪里？", "李雷"),
        ("", None),
    ],
)
def test_the_one_speaker_that_is_named(question, speaker):
    place = read(question, NOON, SPEAKERS).speaker
    assert (None if place is None else SPEAKERS[place]) == speaker


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("What did she do last spring?", moment(2023, 3, 1), moment(2023, 6, 1)),
        ("What happened before May 2023?", None, moment(2023, 5, 1)),
        ("What happened until 3 May 2023?", None, moment(2023, 5, 3)),
        ("Where did she go after 2 June 2023?", moment(2023, 6, 3), None),
        ("What did she paint since March?", moment(2023, 3, 1), None),
        ("What did we say in the week of 3 May 2023?", moment(2023, 5, 1), moment(2023, 5, 8)),
        ("What did she do the week before 3 August 2023?", moment(2023, 7, 27), moment(2023, 8, 3)),
        ("When did Nora run?", None, None),
    ],
)
def test_the_time_that_is_named(question, start, end):
    said = read(question, NOON, ())
    assert (said.start, said.end) == (start, end)
    assert said.dated == (start is not None or end is not None)


@pytest.mark.parametrize("place", ["{asked} {pasted}", "{pasted} {asked}"])
def test_a_long_question_is_read_from_both_ends(place):
    said = read(place.format(asked="When did Ada sing on 2 May 2023?", pasted="x" * LONGEST), NOON, SPEAKERS)
    assert (said.when, said.speaker, said.dated) == (True, SPEAKERS.index("Ada"), True)


def test_the_middle_of_a_long_question_is_not_read():
    half = "x" * LONGEST
    said = read(f"{half} When did Ada sing on 2 May 2023? {half}", NOON, SPEAKERS)
    assert (said.when, said.speaker, said.dated) == (False, None, False)
