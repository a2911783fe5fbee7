"""The latency benchmark: what it fills a memory with, what it measures, and what it says of that."""

from datetime import UTC, datetime
from io import StringIO

import numpy as np
import orjson
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from lamina.agents.cli_bench_latency import register
from lamina.agents.http_server import bind, serving
from lamina.bench import latency
from lamina.bench.latency import Row, Taken, Unexpected, embedder_rate, measure, measure_floor
from lamina.bench.latency_fill import SESSION, Layout, fill
from lamina.bench.latency_report import Report, row_of
from lamina.bench.latency_texts import questions, turns
from lamina.query.app import build_api
from lamina.sinks.in_memory import FixedClock, HashEmbedder, InMemoryMetrics, InMemoryStore
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.no_broker import NoBroker
from lamina.sinks.tables import open_tables
from lamina.streams.identity import turn_id_from_message
from lamina.streams.namespace import namespace_of
from lamina.streams.settings import Settings
from lamina.streams.steps.ports import Ports

LAYOUT = Layout(large=60, small=20, smalls=3)
SETTINGS = Settings()


@pytest.fixture
async def ports(tmp_path):
    """A filled memory."""
    tables = await open_tables(f"sqlite+aiosqlite:///{tmp_path / 'tables.db'}")
    clock, metrics = FixedClock(datetime(2026, 1, 1, tzinfo=UTC)), InMemoryMetrics()
    ports = Ports(SETTINGS, tables, InMemoryStore(), HashEmbedder(), ExtractiveEngine(), clock, metrics)
    await fill(LAYOUT, ports, lambda _: None)
    yield ports
    await tables.close()


@pytest.fixture
async def url(ports):
    """A service over it."""
    api = build_api(
        SETTINGS,
        tables=ports.tables,
        store=ports.store,
        embedder=ports.embedder,
        publisher=NoBroker(),
        clock=ports.clock,
        metrics=ports.metrics,
        exposition=lambda: (b"", "text/plain"),
    )
    listener = bind("127.0.0.1", 0)
    async with serving(api, listener) as url:
        yield url
    listener.close()


def test_texts_are_the_same_on_every_run_and_as_long_as_locomos():
    texts = turns(2_000)
    assert texts == turns(2_000)
    words = [len(text.split()) for text in texts]
    assert 20 < np.mean(words) < 32
    asked = questions(1_000)
    assert asked == questions(1_000)
    assert len(set(asked)) == 1_000
    assert 8 < np.mean([len(text.split()) for text in asked]) < 14


def test_more_questions_than_there_are_is_an_error():
    with pytest.raises(ValueError, match="there are"):
        questions(10_000_000)


def test_a_hundred_thousand_turns_are_one_large_namespace_and_400_small_ones():
    layout = Layout.of(100_000)
    assert (layout.large, layout.small, layout.smalls) == (20_000, 200, 400)
    assert layout.units == 100_000
    assert len(layout.users(200)) == 400
    assert len(layout.users(20_000)) == 1


async def test_a_filled_memory_is_whole(ports):
    assert await ports.store.count() == LAYOUT.units
    assert not await ports.tables.dirty_namespaces(10)
    for size in (LAYOUT.large, LAYOUT.small):
        for user in LAYOUT.users(size):
            namespace = namespace_of(SETTINGS.tenant, user)
            ids = [turn_id_from_message(namespace, str(n)) for n in range(size)]
            units = await ports.tables.units(namespace, ids)
            assert len({unit.text for unit in units.values()}) == len(ids)
            assert sorted(unit.position for unit in units.values()) == list(range(1, size + 1))
            follows = [unit for unit in units.values() if unit.ordinal]
            links = await ports.tables.links_from(namespace, ids)
            assert {link.source for link in links} == {unit.id for unit in follows}
            assert max(unit.ordinal for unit in units.values()) < SESSION


@pytest.mark.parametrize("clients", [1, 3])
async def test_every_question_is_asked_once_and_its_stages_are_told(url, ports, clients):
    row = Row("tiers", LAYOUT.small, LAYOUT.users(LAYOUT.small), clients, questions(20))
    heard: list[object] = []
    taken = await measure(url, row, heard.append)
    assert len(taken.seconds) == len(heard) == 20
    assert {"embed", "search", "load"} <= set(taken.stages)
    assert all(len(each) == 20 for each in taken.stages.values())
    stages = np.sum(list(taken.stages.values()), axis=0)
    if clients == 1:
        assert (stages < np.array(taken.seconds) * 1000).all()


async def test_a_row_ends_when_its_time_is_up(url, monkeypatch):
    monkeypatch.setattr(latency, "ROW_SECONDS", -1.0)
    row = Row("tiers", LAYOUT.small, LAYOUT.users(LAYOUT.small), 2, questions(20))
    with pytest.raises(Unexpected, match="no request"):
        await measure(url, row)


async def test_the_floor_is_measured(url):
    taken = await measure_floor(url, 5)
    assert len(taken.seconds) == 5
    assert not taken.stages


async def test_a_refusal_is_told(url):
    with pytest.raises(Unexpected, match="422"):
        await measure(url, Row("nonsense", 1, ["ada"], 1, questions(3)))


async def test_the_embedder_alone():
    assert await embedder_rate(HashEmbedder(), questions(5)) > 0


def test_figures():
    stages = {"embed": (1.0, 2.0, 3.0), "load": (4.0, 4.0, 4.0)}
    taken = Taken("tiers", 200, 1, (0.010, 0.020, 0.030), 0.060, stages)
    row = row_of(taken, 100.0)
    assert [row.p50_ms, row.mean_ms] == pytest.approx([20, 20])
    assert row.requests_per_second == pytest.approx(50)
    assert row.of_embedder == pytest.approx(0.5)
    assert row.stages == {"embed": 2.0, "load": 4.0, "http": pytest.approx(14.0)}


def test_a_report_says_what_it_was_made_from():
    taken = Taken("tiers", 200, 1, (0.010, 0.020), 0.030, {"embed": (1.0, 2.0)})
    floor = Taken("/health/live", 0, 1, (0.001,), 0.001, {})
    report = Report((floor, taken), 1_000, "hash", 100.0, "memory", "a machine")
    figures = orjson.loads(orjson.dumps(report.json()))
    assert [row["strategy"] for row in figures["rows"]] == ["/health/live", "tiers"]
    assert figures["rows"][1]["stages"]["embed"] == 1.5
    assert figures["embedder_per_second"] == 100.0
    out = StringIO()
    Console(file=out, width=200).print(report.tables())
    assert "1,000 turns" in out.getvalue()
    assert "p99 ≤ 25 ms" in out.getvalue()


def _bench() -> typer.Typer:
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    return app


def test_an_unknown_strategy_is_named():
    result = CliRunner().invoke(_bench(), ["latency", "--strategies", "tiers,best"])
    assert result.exit_code == 2
    assert "best" in result.output


def test_a_folder_filled_otherwise_is_left_alone(tmp_path):
    (tmp_path / "latency.json").write_bytes(orjson.dumps({"large": 1, "small": 1, "smalls": 1}))
    result = CliRunner().invoke(_bench(), ["latency", "--keep", str(tmp_path)])
    assert result.exit_code == 1
