"""Needle in a haystack: the histories, what is shown of them, and the report."""

from io import StringIO

import orjson
import pytest
from rich.console import Console
from rich.progress import Progress

from lamina.bench.niah import Bench, measure_niah
from lamina.bench.niah_haystack import MOST_DISTRACTORS, haystack
from lamina.bench.niah_page import niah_page
from lamina.bench.niah_report import Report
from lamina.bench.niah_words import FACTS
from lamina.bench.page import render
from lamina.bench.qa_reader import EXTRACTIVE
from lamina.bench.qa_ways import HISTORY, RECALLED, TRUNCATED_CHARACTERS, Desk
from lamina.bench.scores import contains
from lamina.sinks.in_memory import HashEmbedder
from lamina.streams.errors import Misconfigured
from lamina.streams.questions import word_stems
from lamina.streams.settings import Settings


def test_the_same_numbers_give_the_same_history_and_others_another():
    assert haystack(50, 1, 5) == haystack(50, 1, 5)
    assert haystack(50, 1, 5).text != haystack(50, 2, 5).text
    assert haystack(50, 1, 5).text != haystack(50, 1, 5, seed=1).text


@pytest.mark.parametrize("turns", [2, 3, 20, 51, 200])
def test_the_needle_is_said_once_in_the_turn_that_is_its_evidence(turns: int):
    for run in range(5):
        hay = haystack(turns, run, 5)
        said = [turn for turn in hay.conversation.turns if contains(turn.text, hay.asked.answer)]
        assert len(hay.conversation.turns) == turns
        assert len({turn.id for turn in hay.conversation.turns}) == turns
        assert [turn.id for turn in said] == list(hay.asked.evidence) == list(hay.otherwise.evidence)
        assert hay.conversation.turns.index(said[0]) == round(hay.depth * turns)


def test_the_needles_of_the_runs_lie_in_equal_parts_of_the_history():
    assert [int(5 * haystack(1000, run, 5).depth) for run in range(5)] == [0, 1, 2, 3, 4]


def test_every_kind_of_fact_takes_its_turn():
    assert len({haystack(20, run, 10).asked.text.split()[-1] for run in range(10)}) > 1
    values = [fact.said.partition("{value}")[0].format(who="") for fact in FACTS]
    texts = "".join(haystack(20, run, 10, distractors=0).text for run in range(10))
    assert all(value.strip().split()[-1] in texts for value in values)


def test_distractors_are_of_the_needles_kind_or_about_the_same_one():
    bare, full = haystack(100, 0, 5, distractors=0), haystack(100, 0, 5, distractors=MOST_DISTRACTORS)
    (fact,) = [fact for fact in FACTS for who in fact.about if fact.asked.format(who=who) == full.asked.text]
    (who,) = [who for who in fact.about if who in full.asked.text]
    others = [turn.text for turn in full.conversation.turns if any(each in turn.text for each in fact.about)]
    assert len(others) == 1 + MOST_DISTRACTORS
    assert sum(who in text for text in others) == 1 + MOST_DISTRACTORS // 2
    assert sum(any(each in turn.text for each in fact.about) for turn in bare.conversation.turns) <= 1


def test_the_other_wording_shares_no_word_with_the_needle_but_whom_it_is_about():
    for fact in FACTS:
        said, otherwise = (word_stems(text.format(who="", value="")) for text in (fact.said, fact.otherwise))
        assert set(said).isdisjoint(otherwise)


def test_small_talk_does_not_repeat_itself_in_a_long_history():
    said = [turn.text for turn in haystack(1000, 0, 5).conversation.turns if turn.speaker == "Robin"]
    assert len(set(said)) == len(said)


def test_turns_are_about_as_long_as_the_papers():
    assert 68 <= len(haystack(200, 0, 5).text) / 200 <= 76


@pytest.mark.parametrize(("turns", "distractors"), [(1, 0), (20, -1), (20, MOST_DISTRACTORS + 1)])
def test_a_history_that_cannot_be_made_is_refused(turns: int, distractors: int):
    with pytest.raises(Misconfigured):
        haystack(turns, 0, 1, distractors=distractors)


async def report_on(*lengths: int, ways: tuple[str, ...], runs: int = 2, budget: int = 1000) -> Report:
    bench = Bench(Settings(), HashEmbedder(), False, Desk(EXTRACTIVE, budget), runs)
    return await measure_niah(lengths, ways, bench, Progress(disable=True))


async def test_every_needle_stands_in_the_whole_history_and_only_late_ones_in_its_end():
    report = await report_on(300, ways=("full", "truncated"))
    found = {(each.way, each.run): each.in_block for each in report.looked}
    assert {run for way, run in found if way == "full" and found[way, run]} == {0, 1}
    assert (found["truncated", 0], found["truncated", 1]) == (False, True)
    full, truncated = report.rows()
    assert truncated.tokens <= TRUNCATED_CHARACTERS / 4 < full.tokens
    assert (full.in_block, truncated.in_block) == (1.0, 0.5)


async def test_strategies_fill_the_budget_and_no_more():
    report = await report_on(40, ways=("bm25", "dense", "tiers"), budget=200)
    assert all(0 < each.tokens <= 200 for each in report.looked)
    assert {row.strategy: row.in_block for row in report.rows()}["bm25"] == 1.0
    assert all(row.answered <= (row.in_block or 0.0) for row in report.rows())


async def test_the_rank_is_that_of_the_result_that_holds_the_needle():
    report = await report_on(40, ways=("full", "bm25"))
    assert {each.rank for each in report.looked if each.way == "full"} == {None}
    asked = [each for each in report.looked if each.way == "bm25" and each.wording == "same"]
    assert [each.rank for each in asked] == [1, 1]
    assert report.rows()[1].rank == 1.0


async def test_a_block_without_room_answers_nothing():
    (row,) = (await report_on(20, ways=("bm25",), budget=1)).rows()
    assert (row.in_block, row.answered, row.tokens) == (0.0, 0.0, 0.0)


async def test_every_strategy_of_recall_has_its_row():
    ways = (*HISTORY, *RECALLED)
    report = await report_on(20, ways=ways, runs=1)
    assert [(row.strategy, row.in_block) for row in report.rows()] == [(name, 1.0) for name in ways]


async def test_the_report_says_what_was_made_and_read():
    report = await report_on(20, ways=("full", "bm25"))
    plain = report.json()
    assert orjson.loads(orjson.dumps(plain)) == plain
    assert {"turns", "strategy", "n", "in_block", "answered", "tokens"} <= plain["rows"][0].keys()
    assert len(plain["needles"]) == 2 * 2 * 2
    out = StringIO()
    Console(file=out, width=200).print(report.tables())
    assert "a quoted sentence" in out.getvalue()
    assert "the last 16,000 characters" in out.getvalue() or "whole history" in out.getvalue()
    assert "Needle in a haystack" in render(niah_page(plain))
