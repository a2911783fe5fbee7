"""The recurrence table counts what the pipeline would count."""

from pathlib import Path

import orjson

from lamina.bench.recurrence import as_json, recurrence_table
from lamina.sinks.in_memory import HashEmbedder
from lamina.streams.settings import Settings

BEES = "I checked the bee hives behind the old barn"
HONEY = "How many frames of honey did the bee hives give?"


def a_conversation(folder: Path, days: int) -> None:
    raw: dict[str, object] = {"speaker_a": "Ada", "speaker_b": "Bo", "qa": []}
    for day in range(1, days + 1):
        raw[f"session_{day}_date_time"] = f"9:00 am on {day} May, 2023"
        raw[f"session_{day}"] = [
            {"speaker": "Ada", "dia_id": f"D{day}:1", "text": f"{BEES}, hive {day}"},
            {"speaker": "Bo", "dia_id": f"D{day}:2", "text": f"{HONEY} Was it {day} kilos?"},
        ]
    (folder / "1.json").write_bytes(orjson.dumps(raw))


async def test_what_recurs_is_promoted_once_and_then_merged_more_rarely_at_higher_thresholds(
    tmp_path: Path,
) -> None:
    a_conversation(tmp_path, days=12)
    rows = await recurrence_table(tmp_path, HashEmbedder(), Settings())
    by = {(row.theta_sim, row.theta_count, row.salience): row for row in rows}
    plain = by[0.5, 5, False]
    assert (plain.exchanges, plain.promoted, plain.merged) == (12, 1, 7)
    assert plain.covered == 1.0
    assert plain.commands >= 2
    for (theta_sim, theta_count, salience), row in by.items():
        stricter = by.get((round(theta_sim + 0.05, 2), theta_count, salience))
        assert stricter is None or stricter.covered <= row.covered
    assert as_json(rows, "hash")["rows"][0]["conversations"] == 1
