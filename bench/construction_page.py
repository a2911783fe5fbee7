"""The results page of `lamina bench construction`, from the figures that its JSON holds."""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.bench.page import Cell, Column, Page, Section, Table
from lamina.bench.page_charts import Bars

Row = Mapping[str, Any]

_COLUMNS = (
    Column("turns", "count"),
    Column("units", "count"),
    Column("archived", "count"),
    Column("promotions", "count"),
    Column("exchanges merged", "count"),
    Column("LLM calls", "count"),
    Column("tokens in", "count"),
    Column("tokens out", "count"),
    Column("seconds", "number"),
)


def construction_page(figures: Mapping[str, Any]) -> Page:
    """Return the page of one run: what each mode built and what that took, by call and by conversation too.

    Args:
        figures: as `--json` writes them.
    """
    modes: Sequence[Row] = figures["modes"]
    return Page(
        title="What building memory costs",
        context={
            "conversations": f"{modes[0]['conversations']:,}" if modes else "none",
            "model": figures["model"],
            "tokens counted by": figures["tokenizer"],
            "embedder": figures["embedder"],
            "store": figures["store"],
            "machine": figures["machine"],
        },
        sections=[
            Section("All conversations", "", (_totals(modes), *_charts(modes))),
            Section("Calls by purpose", "", (_purposes(modes),)),
            Section("By conversation", "", (_conversations(modes),)),
        ],
        definitions={
            "LLM calls": "requests to the model; a repair is one more",
            "units": "visible and archived ones; gated turns are not among them",
            "seconds": "wall time from the first turn to the last command; only the first mode embeds every "
            "turn, later ones find the turns' vectors in the cache",
        },
    )


def _totals(modes: Sequence[Row]) -> Table:
    return Table("Every mode", (Column("mode"), *_COLUMNS), [[mode["mode"], *_cells(mode)] for mode in modes])


def _charts(modes: Sequence[Row]) -> tuple[Bars, ...]:
    names = [mode["mode"] for mode in modes]
    tokens = {key: [mode[f"tokens_{key}"] / 1000 for mode in modes] for key in ("in", "out")}
    return (
        Bars("Calls of the language model", names, {"calls": [mode["llm_calls"] for mode in modes]}, "calls"),
        Bars("Tokens", names, tokens, "thousand tokens"),
        Bars("Seconds", names, {"seconds": [mode["seconds"] for mode in modes]}, "s"),
    )


def _purposes(modes: Sequence[Row]) -> Table:
    columns = (
        Column("mode"),
        Column("purpose"),
        Column("LLM calls", "count"),
        Column("tokens in", "count"),
        Column("tokens out", "count"),
    )
    rows = [
        [mode["mode"], purpose, spent["llm_calls"], spent["tokens_in"], spent["tokens_out"]]
        for mode in modes
        for purpose, spent in mode["by_purpose"].items()
    ]
    return Table("Calls by mode and purpose", columns, rows)


def _conversations(modes: Sequence[Row]) -> Table:
    rows = [
        [mode["mode"], name, *_cells(each)]
        for mode in modes
        for name, each in mode["by_conversation"].items()
    ]
    return Table("Every mode and conversation", (Column("mode"), Column("conversation"), *_COLUMNS), rows)


def _cells(figures: Row) -> list[Cell]:
    keys = (
        "turns",
        "units",
        "archived",
        "promotions",
        "exchanges_merged",
        "llm_calls",
        "tokens_in",
        "tokens_out",
        "seconds",
    )
    return [figures[key] for key in keys]
