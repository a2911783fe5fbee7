"""What a question binds its answer to, asked on Sunday 15 October 2023."""

from datetime import UTC, date, datetime, timedelta

import pytest

from lamina.streams.recall.constraints import Constraints, constraints

from .recall_kit import a_unit

AT = datetime(2023, 10, 15, 12, tzinfo=UTC)
SPEAKERS = ("ada", "Caroline Smith", "Melanie", "assistant")


def day(moment):
    return moment and moment.date()


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("What did I do last spring?", date(2023, 3, 1), date(2023, 6, 1)),
        ("What happened before May 2023?", None, date(2023, 5, 1)),
        ("What happened until the end of May 2023?", None, date(2023, 6, 1)),
        ("What had I done by the end of 2022?", None, date(2023, 1, 1)),
        ("What was done by 2 June 2023?", None, date(2023, 6, 3)),
        ("Where did she go after 2 June 2023?", date(2023, 6, 3), None),
        ("What did she paint since March?", date(2023, 3, 1), None),
        ("What did we say in the week of 3 May 2023?", date(2023, 5, 1), date(2023, 5, 8)),
        (
            "What did we say in the week of 3 May 2023 and on 20 May 2023?",
            date(2023, 5, 1),
            date(2023, 5, 21),
        ),
        ("What happened between May and July 2023?", date(2023, 5, 1), date(2023, 8, 1)),
        ("What happened from 3 May 2023 to 5 May 2023?", date(2023, 5, 3), date(2023, 5, 6)),
        ("What did I say yesterday?", date(2023, 10, 14), date(2023, 10, 15)),
        ("What did I do two weeks ago?", date(2023, 9, 25), date(2023, 10, 2)),
        ("When did Nora run?", None, None),
        ("May I march?", None, None),
        ("2023-05-03 发生了什么？", date(2023, 5, 3), date(2023, 5, 4)),
        ("What did we do since the trip?", None, None),
        ("Was it on 2023-02-31, or on 0000-00-00?", None, None),
        ("Was it on 30 February 2023?", date(2023, 2, 1), date(2023, 3, 1)),
        ("What came before 0001-01-01?", None, None),
        ("What comes in the week of 9999-12-30?", date(9999, 12, 27), date(9999, 12, 31)),
        ("What comes after 9999-12-31?", None, None),
        ("Was it after May 2023 and before May 2023?", date(2023, 6, 1), date(2023, 5, 1)),
    ],
)
def test_date_phrases_become_a_range(question, start, end):
    bound = constraints(question, AT, ())
    assert (day(bound.start), day(bound.end)) == (start, end)
    assert bound.dated == (start is not None or end is not None)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What's Melanie's hobby?", {"melanie"}),
        ("where does ada live?", {"ada"}),
        ("What did Smith paint?", {"smith"}),
        ("Who did John meet in Italy in May 2023?", {"john", "italy"}),
        ("What did the assistant say on Monday?", {"assistant"}),
        ("What did she say?", set()),
        ("我的钥匙在哪里？", set()),
        ("", set()),
    ],
)
def test_names_are_those_of_speakers_and_of_others_with_capitals(question, names):
    assert constraints(question, AT, SPEAKERS).names == names


@pytest.mark.parametrize(
    ("bound", "met"),
    [
        (Constraints(), True),
        (Constraints(start=AT), True),
        (Constraints(end=AT), True),
        (Constraints(start=AT + timedelta(days=1)), False),
        (Constraints(end=AT - timedelta(days=9)), True),  # it happened ten days before it was told
        (Constraints(end=AT - timedelta(days=10)), False),
        (Constraints(start=AT - timedelta(days=10), end=AT - timedelta(days=9)), True),
        (Constraints(start=AT - timedelta(days=9), end=AT), False),
        (Constraints(names=frozenset({"ada"})), True),
        (Constraints(names=frozenset({"grace"})), True),
        (Constraints(names=frozenset({"zoe", "new york"})), True),
        (Constraints(names=frozenset({"york city"})), False),
        (Constraints(names=frozenset({"gra"})), False),
        (Constraints(start=AT, names=frozenset({"zoe"})), False),
    ],
)
def test_a_unit_meets_what_it_was_said_or_happened_in_and_who_it_is_by_or_about(bound, met):
    unit = a_unit(
        "Met Grace's sister in New York.",
        said_at=AT,
        occurred_from=AT - timedelta(days=10),
        occurred_to=AT - timedelta(days=9),
    )
    assert bound.met(unit) is met


def test_what_happened_at_a_moment_without_an_end_is_within_the_range_that_holds_it():
    unit = a_unit("ran", said_at=AT, occurred_from=AT - timedelta(days=10))
    assert Constraints(end=AT - timedelta(days=9)).met(unit)
    assert not Constraints(start=AT - timedelta(days=9), end=AT).met(unit)
