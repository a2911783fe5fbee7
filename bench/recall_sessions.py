"""The report of `lamina bench recall` over LongMemEval: which sessions were found, by strategy and type."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from lamina.bench.longmemeval import TYPES
from lamina.bench.ranking import hit, ndcg, recall, recall_all
from lamina.bench.recall_report import ALL, Asked

DEFINITIONS = {
    "level": "session: the unit of evidence is LongMemEval's chat session (`answer_session_ids`); each "
    "question has its own history, which is its own memory; both speakers' messages are remembered",
    "n": "questions with evidence in their history, without the abstention questions (ids ending in "
    "`_abs`); `all` is the mean over these questions",
    "ranking": "distinct sessions in the order of the results; a found turn stands for its session, another "
    "unit (episode, fact) for those of its evidence turns, in time order",
    "recall_any@k": "share of questions with any evidence session among the first k distinct sessions",
    "recall_all@k": "share of questions with all evidence sessions among the first k distinct sessions",
    "recall@5": "fraction of the question's evidence sessions among the first 5 distinct sessions",
    "ndcg@k": "DCG of the first k distinct sessions, gain 1, discount 1/log2(rank + 1), over that of a "
    "ranking with all evidence first; LongMemEval's own script discounts by 1/log2(rank) from the second "
    "place on, so that the second place counts in full, and gives other figures for the same ranking",
    "k": "results that come from fewer than k sessions are counted with those; the baselines return 10 turns",
    "tokens": "mean size of all results packed as POST /v1/context packs them, without a limit; a token is "
    "four UTF-8 bytes",
    "p50_ms, p99_ms": "from the text of the question to the results, its embedding included, one question "
    "at a time, in this process, without HTTP and without packing",
}

Measure = Callable[[Sequence[str], Sequence[str]], float]
"""How good a ranking is, given the evidence."""

_MEASURES: Mapping[str, Measure] = {
    "recall_any@5": lambda ranked, evidence: hit(ranked, evidence, 5),
    "recall_all@5": lambda ranked, evidence: recall_all(ranked, evidence, 5),
    "recall@5": lambda ranked, evidence: recall(ranked, evidence, 5),
    "ndcg@5": lambda ranked, evidence: ndcg(ranked, evidence, 5),
    "recall_any@10": lambda ranked, evidence: hit(ranked, evidence, 10),
    "recall_all@10": lambda ranked, evidence: recall_all(ranked, evidence, 10),
    "ndcg@10": lambda ranked, evidence: ndcg(ranked, evidence, 10),
}


@dataclass(frozen=True, slots=True)
class SessionReport:
    """Every question with every strategy, and what they were asked of."""

    asked: tuple[Asked, ...]
    """`ranked` and `evidence` are sessions."""
    strategies: Mapping[str, str]
    """What each is, by name, in the order shown."""
    conversations: tuple[str, ...]
    turns: int
    dropped_evidence: int
    embedder: str
    store: str
    machine: str
    bases: Mapping[str, str] = field(default_factory=dict)
    """The strategy of each ablation, where both are among them."""

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each strategy and type of question, `all` first: fractions, counts and times."""
        return [row for name in self.strategies for row in self._rows_of(name)]

    def _rows_of(self, strategy: str) -> Iterator[dict[str, Any]]:
        asked = [each for each in self.asked if each.strategy == strategy and each.question.evidence]
        for category in (ALL, *TYPES):
            chosen = [each for each in asked if category in {ALL, each.question.category}]
            if chosen:
                yield {"strategy": strategy, "category": category, **_means(chosen)}

    def json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "dataset": "LongMemEval",
            "level": "session",
            "conversations": list(self.conversations),
            "turns": self.turns,
            "dropped_evidence": self.dropped_evidence,
            "embedder": self.embedder,
            "engine": "extractive",
            "store": self.store,
            "machine": self.machine,
            "definitions": DEFINITIONS,
            "strategies": dict(self.strategies),
            "ablations": dict(self.bases),
            "rows": self.rows(),
        }

    def tables(self) -> RenderableType:
        """Return the rows and the definitions for a terminal."""
        title = (
            f"LongMemEval, {len(self.conversations)} histories, {self.turns:,} turns, {self.embedder}, "
            f"extractive engine, store: {self.store}, {self.machine}"
        )
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
        shares = (
            name.replace("recall_", "").replace("recall", "R").replace("ndcg", "N") for name in _MEASURES
        )
        for place, heading in enumerate(("strategy", "type", "n", *shares, "tokens", "p50 ms", "p99 ms")):
            table.add_column(heading, justify="right" if place > 1 else "left")
        rows = [row for row in self.rows() if row["category"] == ALL or row["strategy"] not in self.bases]
        for row, following in zip(rows, [*rows[1:], None], strict=True):
            last = following is None or following["strategy"] != row["strategy"]
            table.add_row(*_cells(row), end_section=last)
        notes = [f"{name}: {says}" for name, says in {**self.strategies, **DEFINITIONS}.items()]
        return Group(table, *notes, f"{self.dropped_evidence} evidence ids name no session and are left out")


def _means(asked: Sequence[Asked]) -> dict[str, Any]:
    """Return the means over some questions, at least one."""
    times = np.array([each.seconds for each in asked]) * 1000
    found = {
        name: float(np.mean([measure(each.ranked, each.question.evidence) for each in asked]))
        for name, measure in _MEASURES.items()
    }
    spent = {
        "tokens": float(np.mean([each.tokens for each in asked])),
        "p50_ms": float(np.percentile(times, 50)),
        "p99_ms": float(np.percentile(times, 99)),
    }
    return {"n": len(asked)} | {name: round(value, 4) for name, value in (found | spent).items()}


def _cells(row: Mapping[str, Any]) -> list[str]:
    shares = (f"{row[name]:.1%}" for name in _MEASURES)
    times = (f"{row[name]:.1f}" for name in ("p50_ms", "p99_ms"))
    return [row["strategy"], row["category"], str(row["n"]), *shares, f"{row['tokens']:.0f}", *times]
