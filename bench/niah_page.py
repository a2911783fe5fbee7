"""The results page of `lamina bench niah`, from the figures that its JSON holds."""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.bench.page import Column, Page, Section, Table
from lamina.bench.page_charts import Lines

Row = Mapping[str, Any]

_COLUMNS = {
    "strategy": Column("strategy"),
    "history_characters": Column("characters", "count"),
    "n": Column("n", "count"),
    "in_block": Column("needle in block", "share"),
    "rank": Column("rank", "number"),
    "answered": Column("answered", "share"),
    "in_block_other": Column("other words: in block", "share"),
    "rank_other": Column("other words: rank", "number"),
    "answered_other": Column("other words: answered", "share"),
    "tokens": Column("tokens", "count"),
    "p50_ms": Column("p50 ms", "number"),
}


def niah_page(figures: Mapping[str, Any]) -> Page:
    """Return the page of one run: what reached the reader over the length of the history.

    Args:
        figures: as `--json` writes them.
    """
    rows: Sequence[Row] = figures["rows"]
    tables = [
        Table(
            f"{length:,} turns",
            tuple(_COLUMNS.values()),
            [[row[key] for key in _COLUMNS] for row in rows if row["turns"] == length],
        )
        for length in figures["lengths"]
    ]
    charts = [
        _over_length("Needle in the block", rows, "in_block", "%", 100),
        _over_length("Needle in the block, asked in other words", rows, "in_block_other", "%", 100),
        _over_length("Rank of the needle, asked in other words", rows, "rank_other", "rank"),
        _over_length("Tokens of the block", rows, "tokens", "tokens", log=True),
    ]
    return Page(
        title="Needle in a haystack: what reaches the reader of a fact that was said once",
        context={**figures["made_from"]},
        sections=[
            Section("Over the length of the history", "", [chart for chart in charts if chart.series]),
            Section("Figures", "", tables),
        ],
        definitions={**figures["strategies"], **figures["definitions"]},
    )


def _over_length(
    title: str, rows: Sequence[Row], key: str, unit: str, factor: int = 1, *, log: bool = False
) -> Lines:
    """Draw a figure over the lengths; ways that do not have it are left out."""
    series: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row[key] is not None:
            # An empty block still has a place on a logarithmic axis.
            value = max(row[key], 1.0) if log else factor * row[key]
            series.setdefault(row["strategy"], []).append((row["turns"], value))
    return Lines(title, series, "turns of the history", unit, log_x=True, log_y=log)
