"""The report of `lamina bench fusion`, and the file of weights that it writes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import orjson
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from lamina.bench.fusion import COMPONENTS, Figures, Validated
from lamina.bench.fusion_fit import L2
from lamina.bench.fusion_pools import Cases
from lamina.bench.recall_report import CATEGORIES
from lamina.streams.recall.auto import fusion

DEFINITIONS = {
    "validation": "leave one conversation out: every weight and spread is fitted on the other conversations; "
    "the list of features and their regular expressions are not",
    "n": "questions of categories 1 to 4 with at least one evidence id that names a turn",
    "recall@5, ndcg@5, recall@10": "as `lamina bench recall` defines them, at turn level; evidence outside "
    "the pool is not found",
    "pool": "what `auto` ranks: the nearest turns by vector, the best by BM25, and their neighbours",
    "removed": "all other features, fitted and validated anew; with about 1,000 questions a difference "
    "below half a point is noise (standard error of recall@5: about 1.2 points)",
    "weight": "fitted on all conversations, as shipped; `spread` is times the feature's standard deviation, "
    "± that over the folds",
}
WEIGHTS_FILE = Path(fusion.__file__).with_name(fusion.WEIGHTS)
"""The shipped weights, in this installation."""


@dataclass(frozen=True, slots=True)
class FusionReport:
    """What was validated, of which questions."""

    cases: Cases
    validated: tuple[Validated, ...]
    machine: str

    def json(self) -> dict[str, Any]:
        """Return everything as plain values, fractions of 1."""
        return {
            "dataset": "LoCoMo",
            "level": "turn",
            "conversations": list(self.cases.conversations),
            "turns": self.cases.turns,
            "embedder": self.cases.embedder,
            "machine": self.machine,
            "definitions": DEFINITIONS,
            "l2": L2,
            "pool": self._pool(),
            "rows": [row for one in self.validated for row in _rows(one)],
            "removed": [
                {"match": one.match, "feature": name, **_figures(figures)}
                for one in self.validated
                for name, figures in one.without.items()
            ],
            "weights": {one.match: _weights(one) for one in self.validated},
        }

    def write_weights(self, file: Path = WEIGHTS_FILE) -> None:
        """Write the weights fitted on all conversations.

        Matches that were not fitted, because the embedder gives no token vectors, keep what the file holds.
        """
        held: dict[str, Any] = orjson.loads(file.read_bytes()) if file.exists() else {}
        fitted = {
            "by": "lamina bench fusion --write",
            "dataset": "LoCoMo",
            "conversations": list(self.cases.conversations),
            "questions": len(self.cases.cases),
            "embedder": self.cases.embedder,
            "l2": L2,
        }
        for one in self.validated:
            held[one.match] = {"fitted": fitted, **_weights(one)}
        file.write_bytes(orjson.dumps(held, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))

    def tables(self) -> RenderableType:
        """Return the figures, the weights and the definitions for a terminal."""
        pool = self._pool()
        title = (
            f"LoCoMo, {len(self.cases.conversations)} conversations, {self.cases.turns:,} turns, "
            f"{self.cases.embedder}, {self.machine}; pools of {pool['turns']} turns hold "
            f"{100 * pool['evidence']:.1f} % of the evidence"
        )
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
        for place, heading in enumerate(("match", "validated on", "n", "R@5", "N@5", "R@10")):
            table.add_column(heading, justify="right" if place > 1 else "left")
        for one in self.validated:
            for row in _rows(one):
                table.add_row(one.match, row["of"], str(row["n"]), *_cells(row))
            table.add_section()
        notes = [f"{name}: {says}" for name, says in DEFINITIONS.items()]
        return Group(table, *(_features(one) for one in self.validated), *notes)

    def _pool(self) -> dict[str, float]:
        cases = self.cases.cases
        held = [len(case.evidence.intersection(case.pool.ids)) / len(case.evidence) for case in cases]
        return {
            "turns": round(mean(len(case.pool) for case in cases), 1),
            "evidence": round(mean(held), 4),
        }


def _rows(one: Validated) -> Iterator[dict[str, Any]]:
    """Yield the figures of all questions, of each category and of each conversation."""
    yield {"match": one.match, "of": "all", **_figures(one.all)}
    for category, figures in one.by_category.items():
        yield {"match": one.match, "of": CATEGORIES.get(int(category), str(category)), **_figures(figures)}
    for name, figures in one.by_conversation.items():
        yield {"match": one.match, "of": f"conversation {name}", **_figures(figures)}


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        "n": figures.n,
        "recall@5": round(figures.recall5, 4),
        "ndcg@5": round(figures.ndcg5, 4),
        "recall@10": round(figures.recall10, 4),
    }


def _weights(one: Validated) -> dict[str, Mapping[str, float]]:
    return {
        "weights": {name: round(value, 4) for name, value in one.weights.items()},
        "standardised": {name: round(value, 3) for name, value in one.standardised.items()},
    }


def _features(one: Validated) -> Table:
    """Return a table of the features: what each weighs, and what is left without it."""
    title = f"features of the match by {one.match}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    removed = ("R@5 without", "N@5 without", "R@10 without") if one.without else ()
    for place, heading in enumerate(("feature", "weight", "spread", "±", *removed)):
        table.add_column(heading, justify="right" if place else "left")
    for name, weight in one.weights.items():
        figures = _cells(_figures(one.without[name])) if one.without else ()
        moved = (f"{one.standardised[name]:.2f}", f"{one.shifts[name]:.2f}")
        table.add_row(name, f"{weight:.2f}", *moved, *figures)
    table.add_section()
    for name in COMPONENTS if one.without else ():
        table.add_row(name, "", "", "", *_cells(_figures(one.without[name])))
    return table


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{100 * row[name]:.1f}" for name in ("recall@5", "ndcg@5", "recall@10"))
