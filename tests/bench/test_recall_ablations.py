"""`lamina bench recall --ablations`: every row, which memory it asks, and how it is shown."""

from io import StringIO
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from rich.progress import Progress
from typer.testing import CliRunner

from lamina.agents.cli import app
from lamina.bench.page import render
from lamina.bench.recall import Bench, measure_recall
from lamina.bench.recall_ablations import ABLATIONS, BASES, ROWS, with_ablations
from lamina.bench.recall_memory import remembered
from lamina.bench.recall_page import recall_page
from lamina.bench.recall_report import Report
from lamina.bench.recall_strategies import STRATEGIES
from lamina.sinks.in_memory import HashEmbedder
from lamina.streams.settings import Settings


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bees on three days, so that they recur, and a violin on one."""
    raw: dict[str, object] = {"speaker_a": "Ada", "speaker_b": "Bo"}
    for day in (1, 2, 3):
        raw[f"session_{day}_date_time"] = f"9:00 am on {day} May, 2023"
        raw[f"session_{day}"] = [
            {"speaker": "Ada", "dia_id": f"D{day}:1", "text": f"I checked the bee hives, all {day} of them"},
            {"speaker": "Bo", "dia_id": f"D{day}:2", "text": "How much honey did the bee hives give?"},
        ]
    raw["session_4_date_time"] = "9:00 am on 4 May, 2023"
    raw["session_4"] = [
        {"speaker": "Bo", "dia_id": "D4:1", "text": "My violin broke on the train to Lisbon"},
        {"speaker": "Ada", "dia_id": "D4:2", "text": "Wow!"},
    ]
    raw["qa"] = [
        {"question": "Whose violin broke?", "answer": "Bo's", "evidence": ["D4:1"], "category": 4},
        {"question": "Who has hives?", "answer": "Ada", "evidence": ["D1:1", "D2:1"], "category": 1},
    ]
    folder = tmp_path_factory.mktemp("locomo")
    (folder / "1.json").write_bytes(orjson.dumps(raw))
    return folder


async def report_on(data: Path, *names: str) -> Report:
    bench = Bench(Settings(theta_sim=0.5, theta_count=3), HashEmbedder(), edge=False)
    report = await measure_recall(data, names, bench, Progress(disable=True))
    assert isinstance(report, Report)
    return report


PUBLISHED = {
    "tiers": "no-subconscious no-episodic no-semantic direct-extraction",
    "topology": "no-visibility no-split no-merge no-update no-recovery no-priority no-expansion",
    "adaptive": "no-segmentation no-consolidation no-abstracts no-depth",
    "chain": "query-only context-only weighted no-truncation top-k k-1 k-5 k-10 k-50 beta-0.3 beta-0.7",
    "auto": "no-late-interaction no-words no-neighbours no-derived",
}
"""RecMem §4.3, All-Mem app. E, SimpleMem table 4, CoM tables 3 and 4, figures 3 and 4; `auto` is ours."""


@pytest.mark.parametrize("strategy", PUBLISHED)
def test_the_ablations_that_the_papers_publish_are_rows(strategy: str):
    assert {f"{strategy}-{each}" for each in PUBLISHED[strategy].split()} <= set(ABLATIONS[strategy])


def test_every_row_has_its_own_name_and_follows_its_strategy():
    assert len(ROWS) == len(STRATEGIES) + len(BASES)
    rows = list(ROWS)
    for name, of in BASES.items():
        assert name.startswith(f"{of}-")
        assert rows.index(of) < rows.index(name)
    assert with_ablations(list(STRATEGIES)) == rows
    assert with_ablations(["tiers", "tiers-no-episodic"]).count("tiers-no-episodic") == 1


async def test_every_ablation_answers_and_stands_in_the_json_beside_its_strategy(data: Path):
    report = await report_on(data, *ROWS)
    plain = orjson.loads(orjson.dumps(report.json()))
    assert [row["strategy"] for row in plain["rows"] if row["category"] == "all"] == list(ROWS)
    assert plain["ablations"]["topology-no-expansion"] == "topology"
    assert set(plain["strategies"]) == set(ROWS)
    found = {row["strategy"]: row["recall@5"] for row in plain["rows"] if row["category"] == "4"}
    assert {name for name, share in found.items() if not share} <= {
        "tiers-no-subconscious"  # of what was said once, only the turn is remembered
    }

    page = recall_page(plain)
    sections = {section.heading: section for section in page.sections}
    tables = {part.title: part for part in sections["Ablations"].parts if hasattr(part, "rows")}
    shown = {row[0] for row in tables["chain: ablations, all questions"].rows}
    assert shown == {"chain", *ABLATIONS["chain"]}
    (overall, *_) = sections["All questions"].parts
    assert [row[0] for row in overall.rows] == list(STRATEGIES)
    assert "chain-beta-0.3" in render(page)

    out = StringIO()
    Console(file=out, width=160).print(report.tables())
    printed = [line for line in out.getvalue().splitlines() if line.strip().startswith("tiers-no-episodic  ")]
    assert len(printed) == 1, "of an ablation the terminal shows the row over all questions"


async def test_a_memory_is_built_anew_only_where_building_differs(data: Path, monkeypatch):
    built: list[tuple[int, bool, bool]] = []

    def counted(conversation, embedder, settings, **others):
        built.append((settings.theta_count, settings.gate_enabled, settings.resolution))
        return remembered(conversation, embedder, settings, **others)

    monkeypatch.setattr("lamina.bench.recall.remembered", counted)
    names = ["bm25", "tiers", "tiers-no-episodic", "adaptive-no-depth", "chain-top-k"]
    await report_on(data, *names)
    assert built == [(3, True, True)]
    built.clear()
    await report_on(data, "tiers", "tiers-direct-extraction", "adaptive-no-segmentation")
    assert built == [(3, True, True), (1, True, True), (3, False, False)]


async def test_an_ablation_alone_is_a_row_like_others(data: Path):
    report = await report_on(data, "chain-top-k")
    assert report.json()["ablations"] == {}
    assert render(recall_page(report.json()))


def test_an_unknown_row_is_refused_with_the_known_ones(data: Path):
    done = CliRunner().invoke(app, ["bench", "recall", "--data", str(data), "--strategies", "tiers-no-such"])
    assert done.exit_code == 2
    assert "tiers-no-episodic" in " ".join(done.output.split())
