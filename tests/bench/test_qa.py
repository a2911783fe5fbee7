"""The benchmark of answers: what is asked, read, scored and reported."""

from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from rich.progress import Progress

from lamina.bench.conversation import Question
from lamina.bench.page import render
from lamina.bench.qa import Bench, Judge, measure_qa, scored
from lamina.bench.qa_page import qa_page
from lamina.bench.qa_reader import EXTRACTIVE, Given, Read, Reader
from lamina.bench.qa_report import Report
from lamina.bench.qa_rows import Asked, row_of
from lamina.bench.qa_ways import HISTORY, RECALLED, Desk
from lamina.bench.recall_memory import Memory
from lamina.bench.scores import Scores
from lamina.sinks.in_memory import HashEmbedder
from lamina.streams.recall.context import Packed
from lamina.streams.recall.found import Found
from lamina.streams.settings import Settings

LONGMEMEVAL = Path(__file__).parent / "data" / "longmemeval.json"
NOTHING = Scores(0.0, 0.0, 0.0, 0.0, 0.0)
ALL_RIGHT = Scores(1.0, 1.0, 1.0, 1.0, 1.0)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One session; a question that has an answer, and one that has none."""
    raw = {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1_date_time": "9:00 am on 1 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "I checked the bee hives behind the old barn"},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "How many frames of honey did they give?"},
            {"speaker": "Ada", "dia_id": "D1:3", "text": "My violin broke on the train to Lisbon"},
        ],
        "qa": [
            {"question": "Where are the bee hives of Ada?", "answer": "behind the old barn",
             "evidence": ["D1:1"], "category": 4},
            {"question": "Which zeppelin did Xaver purchase?", "adversarial_answer": "LZ 127",
             "evidence": ["D1:2"], "category": 5},
        ],
    }  # fmt: skip
    (tmp_path / "1.json").write_bytes(orjson.dumps(raw))
    return tmp_path


def reader(*, says: str = "behind the old barn", grounded: bool = True, at_once: int = 1) -> Reader:
    """A reader that always says the same."""

    async def over(_: Memory) -> Read:
        async def read(question: str, found: Sequence[Found], packed: Packed) -> Given:
            return Given(says, grounded)

        return read

    return Reader("parrot", "says the same", over, at_once)


async def report_on(
    data: Path, *names: str, reads: Reader = EXTRACTIVE, budget: int = 1000, runs: int = 1, judge=None
) -> Report:
    bench = Bench(Settings(), HashEmbedder(), False, Desk(reads, budget), judge, runs)
    return await measure_qa(data, names, bench, Progress(disable=True))


async def test_the_extractive_reader_quotes_what_is_asked_and_abstains_where_nothing_is(data: Path):
    report = await report_on(data, "bm25", "dense", "tiers", "adaptive")
    answered = {each.strategy: each for each in report.asked if each.question.category == 4}
    for each in answered.values():
        assert "behind the old barn" in each.said
        assert (each.scores.contains, each.scores.exact, each.abstained) == (1.0, 0.0, False)
    unanswerable = [each for each in report.asked if each.question.category == 5]
    assert {(each.abstained, each.scores) for each in unanswerable} == {(True, ALL_RIGHT)}


async def test_the_rows_keep_the_unanswerable_apart(data: Path):
    rows = {row.category: row for row in (await report_on(data, "dense", reads=reader())).rows()}
    assert list(rows) == ["all", "4", "5", "with-unanswerable"]
    assert [rows[name].means["em"] for name in rows] == [1.0, 1.0, 0.0, 0.5]
    assert [rows[name].n for name in rows] == [1, 1, 1, 2]
    assert [rows[name].means["in_block"] for name in rows] == [1.0, 1.0, None, 1.0]


async def test_an_answer_rests_on_what_the_budget_let_into_the_block(data: Path):
    report = await report_on(data, "dense", budget=1)
    assert {(each.tokens, each.abstained) for each in report.asked} == {(0, True)}


async def test_every_strategy_of_recall_can_be_asked_and_the_history_itself(data: Path):
    ways = (*HISTORY, *RECALLED)
    report = await report_on(data, *ways)
    answered = [each for each in report.asked if each.question.category == 4]
    assert [(each.strategy, each.in_block) for each in answered] == [(name, True) for name in ways]


async def test_every_run_asks_every_question_and_runs_are_averaged(data: Path):
    report = await report_on(data, "bm25", runs=3, reads=reader(at_once=4))
    assert sorted((each.run, each.question.category) for each in report.asked) == [
        (run, category) for run in range(3) for category in (4, 5)
    ]
    row = report.rows()[0]
    assert (row.n, row.means["f1"], row.sd["f1"]) == (1, 1.0, 0.0)


def asked(run: int, scores: Scores, *, right: bool | None = None, unjudged: bool = False) -> Asked:
    question = Question("?", "!", 4, ())
    return Asked(
        "1", "bm25", run, question, "!", False, True, scores, right, unjudged, tokens=10, seconds=0.002
    )


def test_the_spread_is_that_of_the_runs_means():
    runs = [asked(0, ALL_RIGHT, right=True), asked(0, NOTHING, unjudged=True), asked(1, NOTHING, right=False)]
    row = row_of("bm25", "all", [*runs, asked(1, NOTHING, right=False)], 2)
    assert (row.n, row.means["f1"], row.means["judge"], row.unjudged) == (2, 0.25, 0.5, 1)
    assert row.sd["f1"] == pytest.approx(0.5 / 2**0.5)
    assert row_of("bm25", "all", runs[:2], 1).sd["f1"] is None


def test_an_abstention_scores_only_where_there_is_no_answer():
    answerable, not_so = Question("?", "in memory", 4, ()), Question("?", "a trap", 5, ())
    assert scored(answerable, "Not in memory.", abstained=True) == NOTHING
    assert scored(not_so, "Not in memory.", abstained=True) == ALL_RIGHT
    assert scored(not_so, "a trap", abstained=False) == NOTHING
    assert scored(Question("?", "?", "abstention", ()), "no", abstained=True) == ALL_RIGHT


async def test_the_report_says_what_read_and_judged(data: Path):
    report = await report_on(data, "bm25")
    plain = report.json()
    assert orjson.loads(orjson.dumps(plain)) == plain
    assert (plain["reader"], plain["judge"], plain["runs"]) == ("extractive", None, 1)
    assert {"strategy", "category", "n", "em", "contains", "f1", "bleu1", "rouge_l", "tokens"} <= plain[
        "rows"
    ][0].keys()
    out = StringIO()
    Console(file=out, width=200).print(report.tables())
    assert "a quoted sentence" in out.getvalue()
    assert "single-hop" in out.getvalue()
    assert "SQuAD" in out.getvalue()


class _Unasked:
    """A judge that no test wants to be asked."""

    async def one(self, *_, **__):
        raise AssertionError("the judge was asked")


async def test_abstentions_are_judged_without_a_call(data: Path):
    judge = Judge("nobody", _Unasked())
    report = await report_on(data, "bm25", reads=reader(grounded=False), judge=judge)
    assert {each.question.category: each.right for each in report.asked} == {4: False, 5: True}


async def test_longmemeval_is_asked_by_its_kinds_of_questions():
    report = await report_on(LONGMEMEVAL, "bm25", reads=reader())
    kinds = {row.category: row.n for row in report.rows()}
    assert next(iter(kinds)) == "all"
    assert kinds["with-unanswerable"] == len(report.asked) == kinds["all"] + kinds["abstention"]
    assert "single-session-user" in kinds


async def test_the_page_holds_every_row(data: Path):
    report = await report_on(data, "bm25", "dense", runs=2)
    page = render(qa_page(orjson.loads(orjson.dumps(report.json()))))
    assert "a quoted sentence" in page
    assert page.count("<svg") >= 4
