"""`lamina bench fusion` from the command line to its JSON."""

import orjson
import typer
from typer.testing import CliRunner

from lamina.agents import cli_bench_fusion
from lamina.sinks.in_memory import HashEmbedder


def a_conversation(thing, place):
    return {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1_date_time": "9:00 am on 1 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": f"I found the {thing} behind the old {place}"},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "My sister moved to Lisbon for her new job"},
        ],
        "qa": [{"question": f"Where was the {thing}?", "answer": place, "evidence": ["D1:1"], "category": 4}],
    }


async def hashed(*_):
    return HashEmbedder()


def test_the_command_prints_what_it_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(cli_bench_fusion, "open_embedder", hashed)
    data, figures = tmp_path / "data", tmp_path / "fusion.json"
    data.mkdir()
    for number, (thing, place) in enumerate((("violin", "attic"), ("bicycle", "barn"))):
        (data / f"{number}.json").write_bytes(orjson.dumps(a_conversation(thing, place)))
    app = typer.Typer()
    cli_bench_fusion.register(app)
    ran = CliRunner().invoke(app, ["--data", str(data), "--no-ablation", "--json", str(figures)])
    assert ran.exit_code == 0, ran.output
    written = orjson.loads(figures.read_bytes())
    assert {row["match"] for row in written["rows"]} == {"tokens", "dense"}
    first = written["rows"][0]
    assert (first["of"], first["n"], first["recall@5"]) == ("all", 2, 1.0)
    assert written["removed"] == []
