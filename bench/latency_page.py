"""The results page of `lamina bench latency`."""

from collections.abc import Sequence

from lamina.bench.latency_report import DEFINITIONS, SHARE, TARGETS, Report, Row, stages_of
from lamina.bench.page import Cell, Column, Page, Section, Table
from lamina.bench.page_charts import Bars


def latency_page(report: Report) -> Page:
    """Return the page of a report: what was promised, each row, and the stages of one client's rows."""
    rows = report.rows()
    stages = stages_of(rows)
    numbers = ("p50 ms", "p99 ms", "mean ms", "requests/s")
    columns = [
        Column("strategy"),
        Column("units", "count"),
        Column("clients", "count"),
        Column("n", "count"),
        *(Column(name, "number") for name in (*numbers, *stages)),
        Column("of the embedder", "share"),
    ]
    table = Table("Searches through HTTP", columns, [_cells(row, stages) for row in rows])
    promised = "; ".join(
        f"in a namespace of {units:,} units p50 ≤ {p50:g} ms and p99 ≤ {p99:g} ms with one client"
        for units, (p50, p99) in TARGETS.items()
    )
    says = f"Promised: {promised}; ten clients at least {SHARE:g} of what the embedder takes alone."
    return Page(
        title="Latency of recall",
        context={
            "turns": f"{report.units:,}",
            "embedder": report.embedder,
            "embedder alone, batch 1": f"{report.embedder_per_second:.0f} questions/s",
            "store": report.store,
            "machine": report.machine,
        },
        sections=[Section("Times", says, [table, *_charts(rows)])],
        definitions=DEFINITIONS,
    )


def _charts(rows: Sequence[Row]) -> list[Bars]:
    alone = [row for row in rows if row.clients == 1 and row.stages]
    if not alone:
        return []
    labels = [f"{row.strategy}, {row.namespace_units:,}" for row in alone]
    series = {"p50": [row.p50_ms for row in alone], "p99": [row.p99_ms for row in alone]}
    return [Bars("One client, by strategy and units of the namespace", "ms", labels, series)]


def _cells(row: Row, stages: Sequence[str]) -> list[Cell]:
    return [
        row.strategy,
        row.namespace_units or None,
        row.clients,
        row.n,
        row.p50_ms,
        row.p99_ms,
        row.mean_ms,
        row.requests_per_second,
        *(row.stages.get(name) for name in stages),
        row.of_embedder if row.stages else None,
    ]
