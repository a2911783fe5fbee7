"""The rows of `lamina bench qa`: what was answered, and the means over questions and runs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lamina.bench.conversation import Question
from lamina.bench.scores import Scores

MEASURES = ("em", "contains", "f1", "bleu1", "rouge_l", "abstained", "in_block", "judge")
"""What is averaged over questions, and over runs with its spread."""

FEWEST_FOR_SPREAD = 2
"""Runs that have a standard deviation."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, asked with one strategy in one run."""

    conversation: str
    strategy: str
    run: int
    question: Question
    said: str
    abstained: bool
    in_block: bool | None
    """Whether the gold answer's words stand in the block in one run; None where the question has none."""
    scores: Scores
    right: bool | None
    """The judge's verdict; None where there is none."""
    unjudged: bool
    """Whether a judge was asked and its reply could not be read."""
    tokens: int
    seconds: float

    def json(self) -> dict[str, Any]:
        """Return the answer beside the gold answer, as plain values."""
        return {
            "conversation": self.conversation,
            "strategy": self.strategy,
            "run": self.run,
            "category": self.question.category,
            "question": self.question.text,
            "gold": self.question.answer,
            "answer": self.said,
            "abstained": self.abstained,
            "in_block": self.in_block,
            **asdict(self.scores),
            "judge": self.right,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """The means of one strategy over one set of questions."""

    strategy: str
    category: str
    n: int
    """Questions, of one run."""
    means: Mapping[str, float | None]
    """Each of `MEASURES`, 0 to 1; None where there is nothing to average."""
    sd: Mapping[str, float | None]
    """Of each over the runs; None with fewer than two."""
    unjudged: int
    """Verdicts that could not be read, over all runs."""
    tokens: float
    p50_ms: float
    p99_ms: float

    def json(self) -> dict[str, Any]:
        """Return the row as plain values, shares rounded to 4 digits."""
        return {
            "strategy": self.strategy,
            "category": self.category,
            "n": self.n,
            **{name: _rounded(value) for name, value in self.means.items()},
            "sd": {name: _rounded(value) for name, value in self.sd.items()},
            "unjudged": self.unjudged,
            "tokens": round(self.tokens, 1),
            "p50_ms": round(self.p50_ms, 2),
            "p99_ms": round(self.p99_ms, 2),
        }


def row_of(strategy: str, category: str, asked: Sequence[Asked], runs: int) -> Row:
    """Return the means over some questions, each asked in every run."""
    by_run = [_means([each for each in asked if each.run == run]) for run in range(runs)]
    times = np.array([each.seconds for each in asked]) * 1000
    return Row(
        strategy=strategy,
        category=category,
        n=len(asked) // runs,
        means={name: _mean([run[name] for run in by_run]) for name in MEASURES},
        sd={name: _spread([run[name] for run in by_run]) for name in MEASURES},
        unjudged=sum(each.unjudged for each in asked),
        tokens=float(np.mean([each.tokens for each in asked])),
        p50_ms=float(np.percentile(times, 50)),
        p99_ms=float(np.percentile(times, 99)),
    )


def _means(asked: Sequence[Asked]) -> dict[str, float | None]:
    values: dict[str, list[float | None]] = {
        "em": [each.scores.exact for each in asked],
        "contains": [each.scores.contains for each in asked],
        "f1": [each.scores.f1 for each in asked],
        "bleu1": [each.scores.bleu1 for each in asked],
        "rouge_l": [each.scores.rouge_l for each in asked],
        "abstained": [float(each.abstained) for each in asked],
        "in_block": [float(each.in_block) for each in asked if each.in_block is not None],
        "judge": [float(each.right) for each in asked if each.right is not None],
    }
    return {name: _mean(each) for name, each in values.items()}


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return float(np.mean(there)) if there else None


def _spread(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return float(np.std(there, ddof=1)) if len(there) >= FEWEST_FOR_SPREAD else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
