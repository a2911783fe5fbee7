"""LongMemEval's form, and recall at the level of sessions over a small file of our own."""

from datetime import UTC, datetime
from io import StringIO
from math import log2
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from rich.progress import Progress
from typer.testing import CliRunner

from lamina.agents.cli import app
from lamina.bench.conversation import Question
from lamina.bench.dataset import load
from lamina.bench.longmemeval import ABSTENTION
from lamina.bench.page import render
from lamina.bench.ranking import recall_all
from lamina.bench.recall import Bench, measure_recall
from lamina.bench.recall_page import recall_page
from lamina.bench.recall_report import Asked
from lamina.bench.recall_sessions import SessionReport
from lamina.bench.recall_strategies import STRATEGIES
from lamina.bench.replay import placements_of
from lamina.sinks.in_memory import HashEmbedder
from lamina.streams.errors import Misconfigured
from lamina.streams.settings import Settings

FILE = Path(__file__).parent / "data" / "longmemeval.json"


def an_instance(**changed):
    return orjson.loads(FILE.read_bytes())[0] | changed


def loaded(folder: Path, *instances: object):
    file = folder / "longmemeval_s.json"
    file.write_bytes(orjson.dumps(list(instances)))
    return load(file).conversations


async def report_on(*names: str):
    bench = Bench(Settings(), HashEmbedder(), edge=False)
    return await measure_recall(FILE, names, bench, Progress(disable=True))


def test_each_question_has_its_own_history_in_the_order_of_the_sessions_times():
    dataset = load(FILE)
    assert (dataset.name, dataset.level) == ("LongMemEval", "session")
    first = dataset.conversations[0]
    assert (first.id, first.speakers) == ("q1", ("user", "assistant"))
    assert list(first.sessions()) == ["filler_bread", "filler_tax", "answer_hike_1"]
    assert first.turns[-1].id == "answer_hike_1:2"
    assert first.turns[0].said_at == datetime(2023, 5, 20, 2, 21, tzinfo=UTC)
    assert first.asked_at == datetime(2023, 6, 10, 18, 30, tzinfo=UTC)
    assert first.questions == (
        Question(
            "Which trail did I hike near the glacier lake?",
            "the Larch Ridge trail",
            "single-session-user",
            ("answer_hike_1",),
        ),
    )


def test_evidence_is_cleaned_answers_are_text_and_blank_messages_are_left_out():
    conversations = load(FILE).conversations
    assert conversations[1].questions[0].evidence == ("answer_trains_1", "answer_trains_2")
    assert conversations[1].questions[0].answer == "3"
    assert [each.dropped_evidence for each in conversations] == [0, 1, 0, 0]
    assert len(conversations[0].sessions()["filler_bread"]) == 2


def test_a_session_that_stands_twice_gives_no_name_twice():
    turns = load(FILE).conversations[2].turns
    assert [turn.id for turn in turns][-3:] == ["filler_tax:1", "filler_tax:2", "filler_tax:3"]
    assert len({turn.id for turn in turns}) == len(turns)


def test_an_id_that_ends_in_abs_is_a_question_to_abstain_from():
    assert [each.questions[0].category for each in load(FILE).conversations] == [
        "single-session-user",
        "multi-session",
        "single-session-assistant",
        ABSTENTION,
    ]


def test_roles_are_kept_so_that_replies_belong_to_what_they_answer():
    placements = placements_of(load(FILE).conversations[0])
    assert [placement.turn.role for placement in placements] == ["user", "assistant"] * 3


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"haystack_dates": ["2023/05/20 (Sat) 02:21"]}, "zip"),
        ({"question_date": "yesterday"}, "yesterday"),
        ({"haystack_session_ids": [], "haystack_dates": [], "haystack_sessions": []}, "no turn"),
        ({"haystack_sessions": None}, "NoneType"),
    ],
)
def test_an_instance_that_is_not_as_it_should_be_is_named(tmp_path, changed, named):
    with pytest.raises(Misconfigured, match=rf"instance 2: .*{named}"):
        loaded(tmp_path, an_instance(), an_instance(**changed))


def test_what_is_neither_data_set_says_what_is_wanted(tmp_path):
    file = tmp_path / "x.json"
    file.write_bytes(b"no json")
    with pytest.raises(Misconfigured, match="pass LoCoMo or a LongMemEval file"):
        load(file)
    file.write_bytes(b"[]")
    with pytest.raises(Misconfigured, match=r"x\.json"):
        load(file)


def test_all_of_the_evidence_or_nothing():
    assert recall_all("abc", "ac", 3) == 1.0
    assert recall_all("abc", "ac", 2) == 0.0
    assert recall_all("abc", "", 2) == 0.0


def asked(category: str, evidence: tuple[str, ...], *ranked: str) -> Asked:
    return Asked("1", "bm25", Question("?", "!", category, evidence), ranked, tokens=10, seconds=0.002)


def test_figures_of_a_session_ranking_by_hand():
    report = SessionReport(
        asked=(
            asked("multi-session", ("a", "b"), "x", "a"),
            asked("knowledge-update", ("c",), "c"),
            asked("knowledge-update", (), "c"),
        ),
        strategies={"bm25": "baseline"},
        conversations=("1", "2"),
        turns=4,
        dropped_evidence=0,
        embedder="hash",
        store="memory",
        machine="here",
    )
    rows = {row["category"]: row for row in report.rows()}
    assert list(rows) == ["all", "multi-session", "knowledge-update"]
    assert (rows["all"]["n"], rows["all"]["recall_any@5"], rows["all"]["recall_all@5"]) == (2, 1.0, 0.5)
    assert rows["multi-session"]["recall@5"] == 0.5
    ideal = 1 + 1 / log2(3)
    assert rows["multi-session"]["ndcg@5"] == pytest.approx((1 / log2(3)) / ideal, abs=1e-4)


async def test_recall_over_the_file_finds_the_sessions_and_leaves_abstention_out():
    report = await report_on(*STRATEGIES)
    assert report.conversations == ("q1", "q2", "q3")
    plain = report.json()
    assert orjson.loads(orjson.dumps(plain)) == plain
    assert (plain["dataset"], plain["level"], plain["dropped_evidence"]) == ("LongMemEval", "session", 1)
    overall = {row["strategy"]: row for row in plain["rows"] if row["category"] == "all"}
    assert set(overall) == set(STRATEGIES)
    assert {row["n"] for row in overall.values()} == {3}
    assert (overall["bm25"]["recall_any@5"], overall["bm25"]["recall_all@5"]) == (1.0, 1.0)


def test_the_command_writes_figures_and_page(weights_cache, monkeypatch, tmp_path):
    monkeypatch.setenv("LAMINA_CACHE_DIR", str(weights_cache))
    json, html = tmp_path / "figures.json", tmp_path / "page.html"
    words = ["bench", "recall", "--data", FILE, "--strategies", "bm25", "--json", json, "--html", html]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    assert orjson.loads(json.read_bytes())["level"] == "session"
    assert "all-MiniLM-L6-v2-int8" in html.read_text(encoding="utf-8")


async def test_the_report_prints_and_is_a_page():
    report = await report_on("bm25", "dense")
    out = StringIO()
    Console(file=out, width=160).print(report.tables())
    assert "all@5" in out.getvalue()
    assert "without the abstention questions" in " ".join(out.getvalue().split())
    page = render(recall_page(report.json()))
    assert "LongMemEval: which sessions each strategy finds" in page
    assert "multi-session" in page
