"""`lamina bench qa` and `lamina bench niah`, as they are typed."""

from pathlib import Path

import orjson
import pytest
import typer
from typer.testing import CliRunner

from lamina.agents.cli_bench_qa import register
from tests.openai_server import OpenAIServer


@pytest.fixture
def bench(weights_cache: Path, monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    """The two commands, over the user's own weights and no model."""
    monkeypatch.setenv("LAMINA_CACHE_DIR", str(weights_cache))
    monkeypatch.delenv("LAMINA_LLM_MODEL", raising=False)
    app = typer.Typer()
    register(app)
    return app


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One thing said, one question about it."""
    raw = {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1_date_time": "9:00 am on 1 May, 2023",
        "session_1": [{"speaker": "Ada", "dia_id": "D1:1", "text": "My bee hives stand behind the old barn"}],
        "qa": [
            {"question": "Where are Ada's bee hives?", "answer": "behind the old barn", "evidence": ["D1:1"],
             "category": 4},
        ],
    }  # fmt: skip
    folder = tmp_path / "locomo"
    folder.mkdir()
    (folder / "1.json").write_bytes(orjson.dumps(raw))
    return folder


def test_qa_prints_and_writes_what_it_measured(bench: typer.Typer, data: Path, tmp_path: Path):
    files = {name: tmp_path / name for name in ("figures.json", "page.html", "answers.jsonl")}
    asked = ["qa", "--data", str(data), "--strategies", "bm25,tiers", "--json", str(files["figures.json"])]
    asked += ["--html", str(files["page.html"]), "--answers", str(files["answers.jsonl"])]
    done = CliRunner().invoke(bench, asked)
    assert done.exit_code == 0, done.output
    figures = orjson.loads(files["figures.json"].read_bytes())
    assert [(row["strategy"], row["category"], row["contains"]) for row in figures["rows"]] == [
        (name, category, 1.0) for name in ("bm25", "tiers") for category in ("all", "4")
    ]
    answers = [orjson.loads(line) for line in files["answers.jsonl"].read_bytes().splitlines()]
    assert [each["gold"] for each in answers] == ["behind the old barn"] * 2
    assert "quoted sentence" in done.output
    assert "quoted sentence" in files["page.html"].read_text()


def test_qa_is_answered_and_judged_by_the_configured_model(
    bench: typer.Typer,
    data: Path,
    tmp_path: Path,
    openai_server: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
):
    settings = openai_server.settings()
    monkeypatch.setenv("LAMINA_LLM_MODEL", settings.llm_model)
    monkeypatch.setenv("LAMINA_LLM_BASE_URL", settings.llm_base_url)
    monkeypatch.setenv("LAMINA_LLM_API_KEY", settings.llm_api_key)
    replies = {
        "answer": {"evidence": [1], "in_memory": True, "answer": "the barn"},
        "judge": {"reason": "the same place", "correct": True},
    }
    openai_server.answer = lambda purpose, _: replies[purpose]
    file = tmp_path / "figures.json"
    asked = ["qa", "--data", str(data), "--strategies", "dense", "--runs", "2", "--json", str(file)]
    done = CliRunner().invoke(bench, asked)
    assert done.exit_code == 0, done.output
    figures = orjson.loads(file.read_bytes())
    assert (figures["reader"], figures["judge"]) == (settings.llm_model, settings.llm_model)
    cost = figures["cost"][settings.llm_model]
    assert {purpose: each["calls"] for purpose, each in cost.items()} == {"answer": 2, "judge": 2}
    assert "cost of test-model" in "".join(done.output.split("\n"))
    row = figures["rows"][0]
    assert (row["judge"], row["sd"]["judge"], row["contains"]) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["qa", "--data", "{data}", "--strategies", "magic"], "choose from"),
        (["qa", "--data", "{data}", "--judge", "gpt"], "LAMINA_LLM_MODEL"),
        (["qa", "--data", "{data}", "--strategies", "deep"], "LAMINA_LLM_MODEL"),
        (["qa", "--data", "{data}", "--answers", "{data}/none/answers.jsonl"], "create it first"),
        (["niah", "--turns", "many"], "whole numbers"),
        (["niah", "--turns", "1"], "at least 2"),
    ],
)
def test_what_cannot_be_measured_is_said(bench: typer.Typer, data: Path, asked: list[str], said: str):
    done = CliRunner(env={"COLUMNS": "200"}).invoke(bench, [word.format(data=data) for word in asked])
    assert done.exit_code != 0
    assert said in done.output


def test_niah_prints_and_writes_what_it_measured(bench: typer.Typer, tmp_path: Path):
    figures, page = tmp_path / "figures.json", tmp_path / "page.html"
    asked = ["niah", "--turns", "20", "--runs", "2", "--strategies", "bm25,full"]
    done = CliRunner().invoke(bench, [*asked, "--json", str(figures), "--html", str(page)])
    assert done.exit_code == 0, done.output
    rows = orjson.loads(figures.read_bytes())["rows"]
    assert [(row["strategy"], row["in_block"]) for row in rows] == [("full", 1.0), ("bm25", 1.0)]
    assert "<svg" in page.read_text()
