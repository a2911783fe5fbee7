"""`adaptive` on examples worked by hand (SimpleMem §2.3)."""

from datetime import UTC, datetime, timedelta

import pytest

from lamina.streams.recall.adaptive import adaptive
from lamina.streams.recall.complexity import complexity
from lamina.streams.recall.found import Filters
from lamina.streams.recall.options import Adaptive

from .recall_kit import NOON, a_unit, asked, names

SIMPLE = "Where do I buy green tea?"
COMPLEX = "How many kinds of green tea did I buy, and why?"


async def found(memory, text=SIMPLE, *, filters=None, top_k=None, **options):
    return await adaptive(asked(text, filters=filters, top_k=top_k), memory.sources, Adaptive(**options))


@pytest.fixture
async def teas(memory):
    """Of three turns of three words, two hold "green" and one of them "tea"."""
    await memory.keep(
        (a_unit("green tea", minute=0), 0.4),
        (a_unit("green car", minute=1), 0.6),
        (a_unit("sunny day", minute=2), 0.7),
    )
    return memory


async def test_the_score_is_half_the_cosine_and_half_bm25_over_the_best(teas):
    """Every text has mean length (ada and two words), so tf = 2.2/2.2 = 1 and BM25 is the sum of IDFs.

    "buy" is in none; green: ln(1 + 1.5/2.5) = .4700; tea: ln(1 + 2.5/1.5) = .9808. Over the best, 1.4508:
    green tea 1, green car .3240, sunny day 0.
    """
    results = await found(teas)
    assert {one.unit.text: round(one.score, 3) for one in results} == {
        "green tea": 0.7,  # (.4 + 1)/2
        "green car": 0.462,  # (.6 + .3240)/2
        "sunny day": 0.35,  # .7/2
    }
    assert results[1].why["bm25"] == pytest.approx(0.3240, abs=1e-4)
    assert results[1].cosine == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("options", "order"),
    [
        ({"lexical_weight": 0}, ["sunny day", "green car", "green tea"]),
        ({"cosine_weight": 0}, ["green tea", "green car", "sunny day"]),
        ({"candidates": 2}, ["green car", "sunny day"]),
    ],
)
async def test_the_weights_and_the_candidates_are_parameters(teas, options, order):
    assert names(await found(teas, **options)) == order


@pytest.fixture
async def many(memory):
    """Thirty turns, an episode and two abstracts."""
    turn = a_unit("turn 0")
    await memory.keep(
        (turn, 0.5),
        *((a_unit(f"turn {n}", minute=n), 0.5 - n / 100) for n in range(1, 30)),
        (a_unit("episode", kind="episode", evidence=(turn.id,)), 0.45),
        (a_unit("likes tea", kind="abstract", evidence=(turn.id,)), 0.3),
        (a_unit("likes trains", kind="abstract", evidence=(turn.id,)), 0.2),
    )
    return memory


async def test_a_simple_question_gets_abstracts_alone(many):
    assert complexity(SIMPLE).low
    results = await found(many)
    assert names(results) == ["likes tea", "likes trains"]
    assert results[0].why["depth"] == 3


async def test_a_complex_question_gets_the_detail_too_and_as_much_as_it_is_complex(many):
    """C_q = .15 (clause) + .15 (clause) + .4 (how many) + .4 (why), held at 1: k = ⌊3·(1 + 17/3)⌋ = 20."""
    results = await found(many, COMPLEX)
    assert complexity(COMPLEX).value == 1.0
    assert (len(results), results[0].why["depth"]) == (20, 20)
    assert {one.unit.kind for one in results} == {"turn", "episode", "abstract"}
    assert len(await found(many, COMPLEX, top_k=7)) == 7


async def test_a_simple_question_gets_three_of_any_kind_where_there_are_no_abstracts(teas):
    await teas.keep(*((a_unit(f"turn {n}", minute=3 + n), 0.1) for n in range(5)))
    assert len(await found(teas)) == 3


async def test_without_adaptive_depth_every_question_gets_as_many_of_all_kinds(many):
    for question in (SIMPLE, COMPLEX):
        results = await found(many, question, depth=False)
        assert len(results) == 10
        assert {"turn", "episode"} <= {one.unit.kind for one in results}
    assert len(await found(many, SIMPLE, depth=False, fixed=5)) == 5


async def test_without_consolidation_turns_alone_are_found(many):
    for question in (SIMPLE, COMPLEX):
        assert {one.unit.kind for one in await found(many, question, consolidation=False)} == {"turn"}


@pytest.fixture
async def spring(memory):
    """Turns of two speakers in April and May 2023, and a fact that happened in April and was told in May."""
    april, may = (datetime(2023, month, 10, tzinfo=UTC) for month in (4, 5))
    await memory.keep(
        (a_unit("april ada", said_at=april), 0.2),
        (a_unit("april bo", said_at=april, speaker="bo"), 0.3),
        (a_unit("may ada", said_at=may), 0.8),
        (a_unit("may bo", said_at=may, speaker="bo"), 0.9),
        (
            a_unit(
                "Ada ran",
                kind="fact",
                subject="ada",
                said_at=may,
                occurred_from=april,
                occurred_to=april + timedelta(days=1),
            ),
            0.5,
        ),
    )
    return memory


@pytest.mark.parametrize(
    ("question", "expected", "bound"),
    [
        ("What was done before May 2023?", ["Ada ran", "april bo", "april ada"], "time"),
        ("What did Ada do in April 2023?", ["Ada ran", "april ada"], "names and time"),
        ("What did bo do since May 2023?", ["may bo"], "names and time"),
        ("What did bo do?", ["may bo", "april bo"], "names"),
        # nobody called Zoe: the name is let go, the time stays
        ("What did Zoe do in April 2023?", ["Ada ran", "april bo", "april ada"], "time"),
        # nothing then: nothing binds
        ("What was done in June 2019?", ["may bo", "may ada", "Ada ran"], "nothing"),
    ],
)
async def test_dates_and_names_in_the_question_bind(spring, question, expected, bound):
    results = await found(spring, question, lexical_weight=0, depth=False, fixed=3)
    assert names(results) == expected
    assert {one.why["bound"] for one in results} == {bound}
    free = await found(spring, question, lexical_weight=0, depth=False, fixed=3, constraints=False)
    assert names(free) == ["may bo", "may ada", "Ada ran"]


async def test_a_dated_question_finds_what_the_nearest_candidates_leave_out(spring):
    results = await found(spring, "What was done in April 2023?", candidates=2, depth=False)
    assert names(results) == ["april bo", "april ada"]


async def test_relative_dates_count_from_as_of_and_filters_stay(spring):
    then = datetime(2023, 5, 20, tzinfo=UTC)
    results = await found(spring, "What was done last month?", filters=Filters(as_of=then, speaker="bo"))
    assert names(results) == ["april bo"]


async def test_bm25_ties_and_questions_without_words_are_answered(teas):
    assert names(await found(teas, "what is it?")) == ["sunny day", "green car", "green tea"]
    assert len(await found(teas, "…", filters=Filters(said_to=NOON))) == 1
