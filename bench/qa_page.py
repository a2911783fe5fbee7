"""The results page of `lamina bench qa`, from the figures that its JSON holds."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lamina.bench.page import Column, Page, Section, Table
from lamina.bench.page_charts import Bars
from lamina.bench.qa_report import ALL, EVERYTHING, named
from lamina.bench.qa_rows import MEASURES

Row = Mapping[str, Any]


def qa_page(figures: Mapping[str, Any]) -> Page:
    """Return the page of one run: scores of all questions, by kind of question, and time.

    Args:
        figures: as `--json` writes them.
    """
    rows: Sequence[Row] = figures["rows"]
    overall = [row for row in rows if row["category"] == ALL] or list(rows)
    sections = [
        Section(
            "Questions that have an answer",
            f"Answered by {figures['reader']}: {figures['reader_says']}.",
            (_table("Every strategy", overall, figures), _scores(overall)),
        ),
        Section("By kind of question", "", tuple(_by_category(figures, rows))),
        Section("Time and size", "", (_times(overall), _tokens(overall))),
    ]
    return Page(
        title=f"{figures['dataset']}: how well questions are answered from what each strategy recalls",
        context={**figures["made_from"]},
        sections=sections,
        definitions={**figures["strategies"], **figures["definitions"]},
    )


def _by_category(figures: Mapping[str, Any], rows: Sequence[Row]) -> Iterator[Table | Bars]:
    categories = [each for each in dict.fromkeys(row["category"] for row in rows) if each != ALL]
    kinds = [each for each in categories if each != EVERYTHING]
    values = {(row["strategy"], row["category"]): row for row in rows}
    for measure in ("judge", "f1") if figures["judge"] else ("contains", "f1"):
        series = {
            name: [_percent(values.get((name, kind)), measure) for kind in kinds]
            for name in figures["strategies"]
        }
        if any(value is not None for line in series.values() for value in line):
            yield Bars(
                f"{measure} by kind of question", [named(kind) for kind in kinds], series, f"{measure}, %"
            )
    for category in categories:
        yield _table(named(category), [row for row in rows if row["category"] == category], figures)


def _table(title: str, rows: Sequence[Row], figures: Mapping[str, Any]) -> Table:
    shown = [name for name in MEASURES if figures["judge"] or name != "judge"]
    spread = ["f1", *(["judge"] if figures["judge"] else [])] if figures["runs"] > 1 else []
    columns = (
        Column("strategy"),
        Column("n", "count"),
        *(Column(name.replace("_", " "), "share") for name in shown),
        *(Column(f"{name} sd", "share") for name in spread),
        Column("tokens", "count"),
        Column("p50 ms", "number"),
        Column("p99 ms", "number"),
    )
    cells = [
        [
            *(row[key] for key in ("strategy", "n", *shown)),
            *(row["sd"][name] for name in spread),
            *(row[key] for key in ("tokens", "p50_ms", "p99_ms")),
        ]
        for row in rows
    ]
    return Table(title, columns, cells)


def _scores(rows: Sequence[Row]) -> Bars:
    names = [row["strategy"] for row in rows]
    measures = [name for name in MEASURES if any(row[name] is not None for row in rows)]
    return Bars(
        "Scores",
        names,
        {name: [_percent(row, name) for row in rows] for name in measures},
        "% of the questions",
    )


def _times(rows: Sequence[Row]) -> Bars:
    names = [row["strategy"] for row in rows]
    # What took no measurable time still has a place on a logarithmic axis.
    taken = {key: [max(row[f"{key}_ms"], 0.01) for row in rows] for key in ("p50", "p99")}
    return Bars("Milliseconds from question to answer", names, taken, "ms", log=True)


def _tokens(rows: Sequence[Row]) -> Bars:
    names = [row["strategy"] for row in rows]
    return Bars("Tokens of the block", names, {"tokens": [row["tokens"] for row in rows]}, "tokens")


def _percent(row: Row | None, key: str) -> float | None:
    return None if row is None or row[key] is None else 100 * row[key]
