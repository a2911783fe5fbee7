import io
from pathlib import Path

import numpy as np
import orjson
import pytest
from rich.console import Console

from lamina.bench.gate import (
    LOCOMO,
    Judgeable,
    gate_curve,
    gate_report,
    gate_tables,
    run_gate,
    sample_sessions,
)
from lamina.streams.gate import GatePolicy, lexical_similarity
from lamina.streams.settings import Settings

DATA = Path(__file__).parents[3] / "shared" / "data" / "locomo"
with_data = pytest.mark.skipif(
    not DATA.is_dir(),
    reason="LoCoMo is not here: put its JSON files into ../shared/data/locomo beside the checkout",
)
CHOSEN = GatePolicy.of(Settings())


class HashEmbedder:
    """Unit vectors from the text's length and first letter: enough for rows to exist."""

    name = "hash"
    dimension = 4

    async def embed(self, texts):
        rows = np.array([[1, len(text) % 7, ord(text[0]) % 5, 1] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def a_session(*turns):
    return [
        Judgeable("sample", text, tuple(each[0] for each in turns[:place]), label, evidence=False)
        for place, (text, label) in enumerate(turns)
    ]


def test_shares_are_of_what_is_labelled_so():
    session = a_session(
        ("Hi!", "filler"),
        ("I moved to Lisbon", "substance"),
        ("Wow, cool!", "filler"),
        ("I have a cat called Tom", None),
    )
    rows = list(
        gate_curve([session], CHOSEN, {"lexical": lexical_similarity}, alphas=(0.25,), taus=(0.35, 2.0))
    )
    (rules,) = [row for row in rows if row.method == "rules alone"]
    assert (rules.turns, rules.gated, rules.filler_gated, rules.substance_lost) == (4, 0.5, 1.0, 0.0)
    assert rules.evidence_lost is None
    (everything,) = [row for row in rows if row.method == "H alone" and row.tau == 2.0]
    assert (everything.gated, everything.filler_gated, everything.substance_lost) == (1.0, 1.0, 1.0)


def test_the_default_row_is_the_same_as_its_place_on_the_grid():
    rows = list(
        gate_curve(
            sample_sessions(),
            CHOSEN,
            {"lexical": lexical_similarity},
            alphas=(CHOSEN.alpha,),
            taus=(CHOSEN.tau,),
        )
    )
    (default,) = [row for row in rows if row.method == "gate (default)"]
    (grid,) = [row for row in rows if row.method == "rules and H"]
    assert default.gated == grid.gated
    assert default.filler_gated == grid.filler_gated


def test_the_sample_loses_no_substance_and_most_of_its_filler():
    row = gate_report(None, None, CHOSEN).find("gate (default)", "sample")
    assert row.filler_gated is not None
    assert row.filler_gated >= 0.5
    assert row.substance_lost == 0


async def test_a_report_has_lexical_and_dense_rows_prints_and_is_json():
    report = await run_gate(None, HashEmbedder(), CHOSEN)
    assert {row.similarity for row in report.rows} == {"", "lexical", "dense"}
    assert len(orjson.loads(orjson.dumps(report.json()))["rows"]) == len(report.rows)
    with pytest.raises(LookupError):
        report.find("H alone", "sample")
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(gate_tables(report))
    assert "filler gated" in console.export_text()


@with_data
def test_the_default_gates_half_of_the_filler_and_half_a_percent_of_the_evidence():
    report = gate_report(DATA, None, CHOSEN)
    row = report.find("gate (default)", LOCOMO)
    assert (row.turns, row.filler, row.evidence) == (4124, 159, 941)
    assert row.filler_gated is not None
    assert row.filler_gated >= 0.5
    assert row.substance_lost == 0
    assert row.evidence_lost is not None
    assert row.evidence_lost <= 0.005
    assert sum(report.salient.values()) <= 0.04 * report.salience_turns
