"""The results page of `lamina bench recall`, from the figures that its JSON holds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lamina.bench.page import Column, Format, Page, Section, Table
from lamina.bench.page_charts import Bars, Dots
from lamina.bench.recall_report import ALL, CATEGORIES

Row = Mapping[str, Any]

MOST_NAMED = 10
"""Conversations that are listed by name."""

_COUNTS = ("n", "tokens")
_NAMES = ("strategy", "category", "conversation")


def recall_page(figures: Mapping[str, Any]) -> Page:
    """Return the page of one run: tables by category, and charts of quality, time and spread.

    Args:
        figures: as `--json` writes them, of LoCoMo or LongMemEval.
    """
    bases: Mapping[str, str] = figures.get("ablations", {})
    everything: Sequence[Row] = figures["rows"]
    rows = [row for row in everything if row["strategy"] not in bases]
    overall = [row for row in rows if row["category"] == ALL]
    sections = [
        Section(
            "All questions",
            "",
            (
                _table("Every strategy, all questions", overall, hidden=("category", "conversation")),
                _bars("What is found among the first five", overall, _headline(figures)),
            ),
        ),
        Section("By kind of question", "", tuple(_by_category(figures, rows))),
        Section("Time and size", "", (_times(overall), _tokens(overall))),
    ]
    if bases:
        sections.append(_ablations(everything, bases, _headline(figures)))
    if len(figures.get("conversations", ())) > 1 and figures.get("by_conversation"):
        sections.append(_spread(figures))
    return Page(
        title=f"{figures['dataset']}: which {figures['level']}s each strategy finds",
        context=_context(figures),
        sections=sections,
        definitions={**figures["strategies"], **figures["definitions"]},
    )


def _headline(figures: Mapping[str, Any]) -> tuple[str, ...]:
    if figures["level"] == "session":
        return ("recall_any@5", "recall_all@5", "ndcg@5")
    return ("recall@5", "ndcg@5")


def _context(figures: Mapping[str, Any]) -> dict[str, str]:
    conversations = figures.get("conversations", ())
    named = ", ".join(conversations) if len(conversations) <= MOST_NAMED else f"{len(conversations):,}"
    known = {
        "data": f"{figures['dataset']}, {figures['level']} level",
        "conversations": named,
        "turns": f"{figures['turns']:,}",
        "evidence ids that name nothing": str(figures["dropped_evidence"]),
        "embedder": figures["embedder"],
        "engine": figures["engine"],
        "store": figures["store"],
        "machine": figures["machine"],
    }
    return {name: str(value) for name, value in known.items()}


def _by_category(figures: Mapping[str, Any], rows: Sequence[Row]) -> Iterable[Table | Bars]:
    """Yield a table of each category, and how the strategies do in each that is not a sum of others."""
    categories = [each for each in dict.fromkeys(row["category"] for row in rows) if each != ALL]
    kinds = [each for each in categories if each != "all-five"]
    names = list(dict.fromkeys(row["strategy"] for row in rows))
    values = {(row["strategy"], row["category"]): row for row in rows}
    for measure in _headline(figures) if kinds else ():
        yield Bars(
            f"{measure} by kind of question",
            [_category(kind) for kind in kinds],
            {name: [_percent(values.get((name, kind)), measure) for kind in kinds] for name in names},
            f"{measure}, %",
        )
    for category in categories:
        chosen = [row for row in rows if row["category"] == category]
        yield _table(f"{_category(category)}", chosen, hidden=("category", "conversation"))


def _ablations(rows: Sequence[Row], bases: Mapping[str, str], measures: Sequence[str]) -> Section:
    """Show each strategy beside what is left of it with one component changed."""
    parts: list[Table | Bars] = []
    for base in dict.fromkeys(bases.values()):
        own = {base, *(name for name, of in bases.items() if of == base)}
        chosen = [row for row in rows if row["strategy"] in own and row["category"] == ALL]
        parts += [
            _bars(f"{base} with one component changed", chosen, measures),
            _table(f"{base}: ablations, all questions", chosen, hidden=("category", "conversation")),
        ]
    says = "One component changed at a time; what each row is stands among the definitions."
    return Section("Ablations", says, tuple(parts))


def _times(rows: Sequence[Row]) -> Bars:
    names = [row["strategy"] for row in rows]
    # What took no measurable time still has a place on a logarithmic axis.
    taken = {key: [max(row[f"{key}_ms"], 0.01) for row in rows] for key in ("p50", "p99")}
    return Bars("Milliseconds from question to results", names, taken, "ms", log=True)


def _tokens(rows: Sequence[Row]) -> Bars:
    return Bars(
        "Tokens of all results together",
        [row["strategy"] for row in rows],
        {"tokens": [row["tokens"] for row in rows]},
        "tokens",
    )


def _spread(figures: Mapping[str, Any]) -> Section:
    ablations = figures.get("ablations", {})
    rows = [row for row in figures["by_conversation"] if row["strategy"] not in ablations]
    names = list(dict.fromkeys(row["strategy"] for row in rows))
    charts = tuple(
        Dots(
            f"{measure} of each conversation, and their mean",
            {name: [100 * row[measure] for row in rows if row["strategy"] == name] for name in names},
            f"{measure}, %",
        )
        for measure in _headline(figures)
    )
    table = _table("Each conversation", rows, hidden=("category",))
    return Section("By conversation", "How much the figures depend on who talks.", (*charts, table))


def _bars(title: str, rows: Sequence[Row], measures: Sequence[str]) -> Bars:
    groups = [row["strategy"] for row in rows]
    return Bars(title, groups, {key: [_percent(row, key) for row in rows] for key in measures}, "%")


def _table(title: str, rows: Sequence[Row], *, hidden: Sequence[str]) -> Table:
    # The strategy comes first: it names the row.
    plain = (key for key, value in rows[0].items() if key not in hidden and not isinstance(value, dict))
    keys = sorted(plain, key=lambda key: key != "strategy")
    columns = [Column(key.replace("_", " "), _format(key)) for key in keys]
    return Table(title, columns, [[row[key] for key in keys] for row in rows])


def _format(key: str) -> Format:
    if key in _NAMES:
        return "text"
    if key in _COUNTS:
        return "count"
    return "share" if "@" in key else "number"


def _percent(row: Row | None, key: str) -> float | None:
    return None if row is None else 100 * row[key]


def _category(name: str) -> str:
    return CATEGORIES.get(int(name), name) if name.isdigit() else name
