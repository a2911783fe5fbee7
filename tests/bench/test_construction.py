"""The construction benchmark counts what was built and what was asked, in every mode."""

import asyncio
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest
from rich.console import Console
from rich.progress import Progress

from lamina.bench.construction import Rig, build
from lamina.bench.construction_figures import EditMade, Figures, total
from lamina.bench.construction_report import Report
from lamina.bench.drift_kept import drift_kept
from lamina.bench.modes import MODES
from lamina.bench.rehearsal import RehearsalModel
from lamina.bench.tokens import Tokenizer
from lamina.sinks.in_memory import HashEmbedder
from lamina.streams.settings import Settings

WORDS = Tokenizer("words", lambda text: len(text.split()))
DAYS = 14
BEES = "I checked the bee hives behind the old barn"
HONEY = "How many frames of honey did the bee hives give?"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A conversation whose one topic comes back every day."""
    raw: dict[str, object] = {"speaker_a": "Ada", "speaker_b": "Bo", "qa": []}
    for day in range(1, DAYS + 1):
        raw[f"session_{day}_date_time"] = f"9:00 am on {day} May, 2023"
        raw[f"session_{day}"] = [
            {"speaker": "Ada", "dia_id": f"D{day}:1", "text": f"{BEES}, hive {day}"},
            {"speaker": "Bo", "dia_id": f"D{day}:2", "text": f"{HONEY} Was it {day} kilos?"},
        ]
    folder = tmp_path_factory.mktemp("locomo")
    (folder / "1.json").write_bytes(orjson.dumps(raw))
    return folder


async def report_on(data: Path, *modes: str) -> Report:
    settings = Settings(theta_sim=0.5)
    rig = Rig(settings, HashEmbedder(), RehearsalModel(WORDS), "memory")
    with Progress(console=Console(file=StringIO())) as progress:
        return await build(data, [MODES[mode] for mode in modes], rig, WORDS.name, progress)


@pytest.fixture(scope="module")
def report(data: Path) -> Report:
    """One run of every mode."""
    return asyncio.run(report_on(data, *MODES))


def test_every_mode_counts_its_calls_and_leaves_nothing_open_or_unreachable(report: Report) -> None:
    totals = report.totals
    assert list(totals) == list(MODES)
    for figures in totals.values():
        assert (figures.conversations, figures.turns) == (1, 2 * DAYS)
        assert (figures.unfinished, figures.unreachable) == (0, 0)
        assert set(figures.calls) == set(figures.tokens_in) == set(figures.tokens_out)
        assert figures.coverage[-1] == 1.0
    assert totals["extractive"].calls.total() == 0
    assert totals["extractive"].visible["episode"] == 1

    commands = totals["default"].commands
    assert commands["promote"] == 1
    assert totals["default"].calls["consolidate"] == commands["promote"] + commands["merge"]
    faithful = totals["recmem-faithful"]
    assert faithful.commands["merge"] == DAYS - 5
    assert faithful.calls["episodes"] == 1
    assert faithful.calls["merge_episode"] == faithful.commands["merge"]
    assert (faithful.gated, faithful.commands["topology"]) == (0, 0)
    direct = totals["recmem-direct"]
    assert (direct.commands, direct.calls["merge_episode"]) == (faithful.commands, DAYS - 5)
    assert direct.calls["extract"] == direct.commands["promote"] + direct.commands["merge"]
    assert direct.calls["refine"] == 0

    assert totals["all-mem-faithful"].calls["describe"] >= 2 * DAYS
    assert totals["all-mem-faithful"].calls["diagnose"] == totals["all-mem-faithful"].diagnoses["diagnosed"]
    assert totals["all-mem-faithful"].commands["promote"] == 0
    assert totals["eager"].calls == {"extract": 2 * DAYS}
    assert totals["eager"].commands.total() == 0


def test_the_drift_gate_asks_less_than_diagnosing_everything(report: Report) -> None:
    assert set(report.drift) == {"default", "all-mem-drift"}
    for drift in report.drift.values():
        assert drift.diagnoses_drift <= drift.diagnoses_all
        assert drift.kept + len(drift.missed) == drift.edits_all


async def test_a_run_counts_the_same_again_and_says_what_counted(data: Path, report: Report) -> None:
    def default_of(report: Report) -> dict[str, Any]:
        (mode,) = [each for each in report.json()["modes"] if each["mode"] == "default"]
        for each in (mode, *mode["by_conversation"].values()):
            del each["seconds"], each["seconds_slowest_conversation"]
        return mode

    mode = default_of(report)
    assert default_of(await report_on(data, "default")) == mode
    assert (report.json()["tokenizer"], report.json()["model"]) == ("words", "rehearsal")
    assert {"mode", "conversations", "units", "llm_calls", "tokens_in", "tokens_out"} <= set(mode)
    assert mode["llm_calls"] == sum(each["llm_calls"] for each in mode["by_purpose"].values())


def test_the_printed_report_names_modes_purposes_and_tokenizer(report: Report) -> None:
    printed = StringIO()
    Console(file=printed, width=200).print(report.tables())
    for wanted in ("default-all", "consolidate", "Tokens counted by words", "Drift gate", "rehearsal"):
        assert wanted in printed.getvalue()


def test_missed_edits_are_those_that_the_gated_run_does_not_make() -> None:
    def an_edit(operator: str, *turns: int) -> EditMade:
        return EditMade(operator, frozenset(UUID(int=turn) for turn in turns), "why")

    def a_run(diagnosed: int, *made: EditMade) -> Figures:
        figures = Figures(made=list(made))
        figures.diagnoses["diagnosed"] = diagnosed
        return figures

    everything = a_run(100, an_edit("merge", 1, 2), an_edit("merge", 1, 2), an_edit("update", 3, 4))
    gated = a_run(15, an_edit("merge", 1, 2), an_edit("split", 9), an_edit("abstract", 1, 2, 3))
    kept = drift_kept(everything, gated)
    assert (kept.saved_share, kept.edits_all, kept.kept, kept.added) == (0.85, 3, 1, 1)
    assert [edit.operator for edit in kept.missed] == ["merge", "update"]
    assert kept.json({UUID(int=3): "1/D1:3"})["missed"][1]["turns"][-1] == "1/D1:3"
    assert drift_kept(a_run(0), a_run(0)).kept_share is None


def test_figures_add_up_over_conversations() -> None:
    one, other = Figures(conversations=1, turns=3, archived=4, seconds=1.0, slowest=1.0), Figures()
    one.reached, other.reached = [1, 2, 4, 4], [0, 0, 0, 0]
    one.calls.update(consolidate=2)
    added = total([one, other, one])
    assert (added.conversations, added.turns, added.seconds, added.slowest) == (2, 6, 2.0, 1.0)
    assert added.calls == {"consolidate": 4}
    assert added.coverage == (0.25, 0.5, 1.0, 1.0)
    assert one.turns == 3
