"""The report of `lamina bench recall`: what was found, by strategy and category, with its definitions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from lamina.bench.conversation import Question
from lamina.bench.locomo import ANSWERABLE
from lamina.bench.ranking import distinct, hit, ndcg, recall

DEPTH = 10
"""Distinct turns that are looked at."""
ALL = "all"
ALL_FIVE = "all-five"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

DEFINITIONS = {
    "level": "turn: the unit of evidence is LoCoMo's dialogue turn; a photo's caption is part of its turn",
    "n": "questions of categories 1 to 4 (1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop) with at "
    "least one evidence id that names a turn; `all` is the mean over these questions",
    "all-five": "the questions of all five categories; one without evidence counts 0 in every figure (how "
    "All-Mem counts)",
    "ranking": "distinct turns in the order of the results; a result that is not a turn (episode, fact) "
    "stands for its evidence turns at its rank, in time order, each once; a found turn stands for itself, "
    "not for the other turn of its exchange",
    "recall@k": "fraction of the question's evidence turns among the first k distinct turns",
    "ndcg@5": "DCG of the first 5 distinct turns, gain 1, discount 1/log2(rank + 1), over that of a ranking "
    "with all evidence first",
    "hit@5": "share of questions with any evidence turn among the first 5 distinct turns",
    "session_recall@5": "fraction of the sessions that hold evidence among the sessions of the first 5 "
    "distinct turns",
    "tokens": "mean size of all results packed as POST /v1/context packs them, without a limit; a token is "
    "four UTF-8 bytes; the baselines return 10 turns",
    "p50_ms, p99_ms": "from the text of the question to the results, its embedding included, one question "
    "at a time, in this process, without HTTP and without packing",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, asked with one strategy."""

    conversation: str
    strategy: str
    question: Question
    ranked: tuple[str, ...]
    """The first distinct turns, best first, at most `DEPTH`."""
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """The means of one strategy over one set of questions; all but counts and times are fractions."""

    strategy: str
    category: str
    n: int
    recall5: float
    ndcg5: float
    recall10: float
    hit5: float
    session5: float
    tokens: float
    p50_ms: float
    p99_ms: float

    def json(self) -> dict[str, Any]:
        """Return the row under the names of the published form."""
        names = {
            "recall5": "recall@5",
            "ndcg5": "ndcg@5",
            "recall10": "recall@10",
            "hit5": "hit@5",
            "session5": "session_recall@5",
        }
        return {
            names.get(key, key): round(value, 4) if isinstance(value, float) else value
            for key, value in asdict(self).items()
        }


@dataclass(frozen=True, slots=True)
class Report:
    """Every question with every strategy, and what they were asked of."""

    asked: tuple[Asked, ...]
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

    def rows(self) -> list[Row]:
        """Return a row for each strategy and category: `all`, `1` to `4`, and `all-five`."""
        return [row for name in self.strategies for row in self._rows_of(name)]

    def _rows_of(self, strategy: str) -> Iterator[Row]:
        asked = [each for each in self.asked if each.strategy == strategy]
        answerable = [
            each for each in asked if each.question.evidence and each.question.category in ANSWERABLE
        ]
        chosen = {
            ALL: answerable,
            **{
                str(category): [each for each in answerable if each.question.category == category]
                for category in ANSWERABLE
            },
            ALL_FIVE: asked,
        }
        return (row_of(strategy, name, questions) for name, questions in chosen.items() if questions)

    def by_conversation(self) -> list[dict[str, Any]]:
        """Return the `all` row of each strategy and conversation, as plain values."""
        return [
            {"conversation": name, **row.json()}
            for name in self.conversations
            for row in self._only(name).rows()
            if row.category == ALL
        ]

    def _only(self, conversation: str) -> "Report":
        kept = tuple(each for each in self.asked if each.conversation == conversation)
        return replace(self, asked=kept, conversations=(conversation,))

    def json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "dataset": "LoCoMo",
            "level": "turn",
            "conversations": list(self.conversations),
            "turns": self.turns,
            "dropped_evidence": self.dropped_evidence,
            "captions": True,
            "embedder": self.embedder,
            "engine": "extractive",
            "store": self.store,
            "machine": self.machine,
            "definitions": DEFINITIONS,
            "strategies": dict(self.strategies),
            "ablations": dict(self.bases),
            "rows": [row.json() for row in self.rows()],
            "by_conversation": self.by_conversation(),
        }

    def tables(self) -> RenderableType:
        """Return the rows and the definitions for a terminal."""
        title = (
            f"LoCoMo, {len(self.conversations)} conversations, {self.turns:,} turns, {self.embedder}, "
            f"extractive engine, store: {self.store}, {self.machine}"
        )
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
        columns = ("R@5", "N@5", "R@10", "hit@5", "session R@5", "tokens", "p50 ms", "p99 ms")
        for place, heading in enumerate(("strategy", "category", "n", *columns)):
            table.add_column(heading, justify="right" if place > 1 else "left")
        for row in self.rows():
            if row.strategy not in self.bases:
                table.add_row(*_cells(row), end_section=row.category == ALL_FIVE)
            elif row.category == ALL:
                table.add_row(*_cells(row))
        notes = [f"{name}: {says}" for name, says in self.strategies.items()]
        notes += [f"{name}: {says}" for name, says in DEFINITIONS.items()]
        return Group(table, *notes, f"{self.dropped_evidence} evidence ids name no turn and are left out")


def row_of(strategy: str, category: str, asked: Sequence[Asked]) -> Row:
    """Return the means over some questions, at least one."""
    times = np.array([each.seconds for each in asked]) * 1000
    return Row(
        strategy=strategy,
        category=category,
        n=len(asked),
        recall5=_mean(recall(each.ranked, each.question.evidence, 5) for each in asked),
        ndcg5=_mean(ndcg(each.ranked, each.question.evidence, 5) for each in asked),
        recall10=_mean(recall(each.ranked, each.question.evidence, DEPTH) for each in asked),
        hit5=_mean(hit(each.ranked, each.question.evidence, 5) for each in asked),
        session5=_mean(
            recall(_sessions(each.ranked[:5]), _sessions(each.question.evidence), DEPTH) for each in asked
        ),
        tokens=_mean(each.tokens for each in asked),
        p50_ms=float(np.percentile(times, 50)),
        p99_ms=float(np.percentile(times, 99)),
    )


def _mean(values: Iterator[float]) -> float:
    return float(np.mean(list(values)))


def _sessions(turns: Sequence[str]) -> tuple[str, ...]:
    """Return the sessions of LoCoMo's turn names, "D3:12", each once."""
    return distinct(turn.partition(":")[0] for turn in turns)


def _cells(row: Row) -> list[str]:
    category = CATEGORIES.get(int(row.category), row.category) if row.category.isdigit() else row.category
    shares = (row.recall5, row.ndcg5, row.recall10, row.hit5, row.session5)
    return [
        row.strategy,
        category,
        str(row.n),
        *(f"{share:.1%}" for share in shares),
        f"{row.tokens:.0f}",
        f"{row.p50_ms:.1f}",
        f"{row.p99_ms:.1f}",
    ]
