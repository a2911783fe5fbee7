"""The results page of `lamina bench latency`, from the figures that its JSON holds."""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.bench.latency_report import SHARE, TARGETS
from lamina.bench.page import Cell, Column, Page, Section, Table
from lamina.bench.page_charts import Bars, Chart

Row = Mapping[str, Any]

_FLOOR = 0
"""Units of the namespace where none was asked."""


def latency_page(figures: Mapping[str, Any]) -> Page:
    """Return the page of one run: a section for each size of namespace and number of clients, then the floor.

    Args:
        figures: as `--json` writes them.
    """
    rows: Sequence[Row] = figures["rows"]
    asked = [row for row in rows if row["namespace_units"] != _FLOOR]
    settings = dict.fromkeys((row["namespace_units"], row["clients"]) for row in asked)
    sections = [
        _setting(units, clients, [row for row in asked if _is(row, units, clients)])
        for units, clients in settings
    ]
    if floor := [row for row in rows if row["namespace_units"] == _FLOOR]:
        says = "A request that touches nothing."
        sections.append(Section("Client, socket and server alone", says, [_table("The floor", floor)]))
    return Page(
        title="How long a search takes through HTTP",
        context={
            "turns": f"{figures['units']:,}",
            "embedder": figures["embedder"],
            "embedder alone, batch 1": f"{figures['embedder_per_second']:,.1f} questions/s",
            "store": figures["store"],
            "machine": figures["machine"],
        },
        sections=sections,
        definitions=figures["definitions"],
    )


def _is(row: Row, units: int, clients: int) -> bool:
    return (row["namespace_units"], row["clients"]) == (units, clients)


def _setting(units: int, clients: int, rows: Sequence[Row]) -> Section:
    who = "one client" if clients == 1 else f"{clients} clients"
    heading = f"A namespace of {units:,} units, {who}"
    names = [row["strategy"] for row in rows]
    times = {"p50": [row["p50_ms"] for row in rows], "p99": [row["p99_ms"] for row in rows]}
    parts: list[Table | Chart] = [
        _table(f"{heading}: times and stages", rows),
        Bars(f"{heading}: times", names, times, "ms"),
    ]
    return Section(heading, _promised(units, clients), parts)


def _promised(units: int, clients: int) -> str:
    if clients > 1:
        return f"Promised: at least {SHARE:g} of what the embedder takes alone."
    if units not in TARGETS:
        return ""
    p50, p99 = TARGETS[units]
    return f"Promised: p50 ≤ {p50:g} ms, p99 ≤ {p99:g} ms."


def _table(title: str, rows: Sequence[Row]) -> Table:
    stages = list(dict.fromkeys(stage for row in rows for stage in row["stages"]))
    columns = [
        Column("strategy"),
        Column("n", "count"),
        *(Column(name, "number") for name in ("p50 ms", "p99 ms", "mean ms", "requests/s")),
        Column("of the embedder", "share"),
        *(Column(f"{stage} ms", "number") for stage in stages),
    ]
    return Table(title, columns, [_cells(row, stages) for row in rows])


def _cells(row: Row, stages: Sequence[str]) -> list[Cell]:
    return [
        row["strategy"],
        row["n"],
        row["p50_ms"],
        row["p99_ms"],
        row["mean_ms"],
        row["requests_per_second"],
        row["of_embedder"] if row["stages"] else None,
        *(row["stages"].get(stage) for stage in stages),
    ]
