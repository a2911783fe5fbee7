"""The results page as a file: what it refuses, what it escapes, and that it is the same for the same figures.

How it looks and behaves in a browser is tested in `tests/browser`.
"""

import asyncio
import re
import sys
from io import StringIO
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from rich.progress import Progress
from typer.testing import CliRunner

from lamina.agents.cli import app
from lamina.bench.construction import Rig, build
from lamina.bench.construction_page import construction_page
from lamina.bench.conversation import Question
from lamina.bench.latency import Taken
from lamina.bench.latency_page import latency_page
from lamina.bench.latency_report import Report as LatencyReport
from lamina.bench.modes import MODES
from lamina.bench.page import Column, Page, Section, Table, render, written
from lamina.bench.page_charts import Bars, Dots, Lines, in_words
from lamina.bench.page_svg import svg_of
from lamina.bench.recall_page import recall_page
from lamina.bench.recall_report import Asked, Report
from lamina.bench.rehearsal import RehearsalModel
from lamina.bench.tokens import Tokenizer
from lamina.sinks.in_memory import HashEmbedder
from lamina.streams.errors import Misconfigured
from lamina.streams.settings import Settings

BARS = Bars("Found", ["bm25", "auto"], {"recall@5": [53.3, 74.0]}, "%")


def a_page(*parts):
    return Page("Title", {"machine": "here"}, [Section("Heading", "Says.", parts)], {"n": "questions"})


def test_a_cell_is_written_as_its_column_says():
    assert written(1033, "count") == "1,033"
    assert written(0.5333, "share") == "53.3 %"
    assert written(1234.56, "number") == "1,234.6"
    assert written("auto", "share") == "auto"
    assert written(None, "number") == "–"


def test_the_same_figures_make_the_same_page():
    table = Table("T", [Column("strategy"), Column("n", "count")], [["auto", 3]])
    assert render(a_page(table, BARS)) == render(a_page(table, BARS))


def test_the_page_needs_nothing_from_elsewhere_and_runs_only_its_own_script():
    html = render(a_page(BARS))
    assert "default-src 'none'" in html
    assert not re.search(r"(?:src|href)=\"(?!#)", html)
    assert not re.search(r"https?://", html)
    assert html.count("<script>") == 1


def test_labels_that_look_like_markup_ids_or_formulas_stay_as_they_are():
    label = 'x id="y" <b> $a_1$ #010203'
    drawing = svg_of(Bars(label, [label], {"a": [1.0]}, label))
    assert drawing.count('x id="y" &lt;b&gt; $a_1$ #010203') == 2, "on both axes"
    assert "<b>" not in drawing


@pytest.mark.parametrize(
    ("chart", "why"),
    [
        (Bars("B", ["a", "b"], {"x": [1.0]}, "%"), "2 values"),
        (Bars("B", ["a"], {"x": [0.0]}, "ms", log=True), "above 0"),
        (Bars("B", ["a"], {"x": [None]}, "%"), "nothing to draw"),
        (Lines("L", {"x": [(0.0, 1.0)]}, "turns", "%", log_x=True), "above 0"),
        (Lines("L", {"x": [(1.0, 0.0)]}, "turns", "%", log_y=True), "above 0"),
        (Lines("L", {}, "turns", "%"), "nothing to draw"),
        (Dots("D", {"x": []}, "%"), "nothing to draw"),
    ],
)
def test_a_chart_that_cannot_be_drawn_says_why(chart, why):
    with pytest.raises(ValueError, match=why):
        svg_of(chart)


def test_a_row_that_does_not_fit_its_table_is_refused():
    with pytest.raises(ValueError, match="2 cells"):
        render(a_page(Table("T", [Column("a"), Column("b")], [["only one"]])))


def test_every_figure_of_a_chart_is_told_in_words():
    assert in_words(BARS) == "%. recall@5: bm25 53.3, auto 74."
    lines = Lines("L", {"auto": [(20, 100), (1000, 99.5)]}, "turns", "needle, %")
    assert in_words(lines) == "needle, % over turns. auto: 20 100, 1000 99.5."
    assert in_words(Dots("D", {"auto": [70.0, 2124.4]}, "%")) == "%. auto: 70, 2,124."


def test_without_matplotlib_the_page_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(Misconfigured, match=r"lamina\[bench\]"):
        svg_of(BARS)


def test_a_page_that_could_not_be_written_is_refused_before_anything_is_measured(tmp_path: Path):
    words = ["bench", "recall", "--data", str(tmp_path), "--html", str(tmp_path / "none" / "x.html")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "create it first" in " ".join(done.output.split())


def asked(conversation: str, strategy: str, category: int, *ranked: str) -> Asked:
    return Asked(conversation, strategy, Question("?", "!", category, ("D1:1",)), ranked, 10, 0.002)


def test_recall_shows_every_row_of_its_report_by_category_and_conversation():
    report = Report(
        asked=tuple(
            asked(conversation, strategy, category, found)
            for conversation in ("26", "<30>")
            for strategy, found in (("bm25", "D1:1"), ("auto", "D9:9"))
            for category in (1, 2)
        ),
        strategies={"bm25": "a baseline", "auto": "ours"},
        conversations=("26", "<30>"),
        turns=2,
        dropped_evidence=0,
        embedder="hash",
        store="memory",
        machine="here",
    )
    page = recall_page(orjson.loads(orjson.dumps(report.json())))
    tables = {
        part.title: part for section in page.sections for part in section.parts if hasattr(part, "rows")
    }
    assert set(tables) == {
        "Every strategy, all questions",
        "multi-hop",
        "temporal",
        "all-five",
        "Each conversation",
    }
    overall = tables["Every strategy, all questions"]
    assert [column.heading for column in overall.columns][:3] == ["strategy", "n", "recall@5"]
    assert [row[:3] for row in overall.rows] == [["bm25", 4, 1.0], ["auto", 4, 0.0]]
    assert len(tables["Each conversation"].rows) == 4
    html = render(page)
    assert "&lt;30&gt;" in html
    assert "<30>" not in html
    assert "fraction of the question&#39;s evidence turns" in html


def test_latency_shows_each_setting_and_the_floor_apart():
    taken = (
        Taken("/health/live", 0, 1, (0.001, 0.002), 400.0, {}),
        Taken("auto", 200, 1, (0.006, 0.009), 150.0, {"embed": (3.0, 3.5)}),
        Taken("auto", 20_000, 10, (0.02, 0.03), 180.0, {"embed": (3.0, 3.5), "search": (5.0, 5.0)}),
    )
    report = LatencyReport(taken, 100_000, "hash", 300.0, "memory", "here")
    page = latency_page(orjson.loads(orjson.dumps(report.json())))
    assert [section.heading for section in page.sections] == [
        "A namespace of 200 units, one client",
        "A namespace of 20,000 units, 10 clients",
        "Client, socket and server alone",
    ]
    assert "search ms" in render(page)


def test_construction_shows_modes_purposes_and_conversations(tmp_path: Path):
    said = [{"speaker": "Ada", "dia_id": "D1:1", "text": "I checked the bee hives behind the old barn"}]
    raw = {"speaker_a": "Ada", "speaker_b": "Bo", "qa": [], "session_1": said}
    raw["session_1_date_time"] = "9:00 am on 1 May, 2023"
    (tmp_path / "1.json").write_bytes(orjson.dumps(raw))
    words = Tokenizer("words", lambda text: len(text.split()))
    rig = Rig(Settings(), HashEmbedder(), RehearsalModel(words), "memory")
    modes = [MODES["extractive"], MODES["eager"]]
    with Progress(console=Console(file=StringIO())) as progress:
        report = asyncio.run(build(tmp_path, modes, rig, words.name, progress))
    page = construction_page(report.json())
    assert [row[0] for row in page.sections[0].parts[0].rows] == ["extractive", "eager"]
    assert [row[:3] for row in page.sections[1].parts[0].rows] == [["eager", "extract", 1]]
    assert "Calls of the language model" in render(page)
