"""The report of `lamina bench qa`: how answers score, by strategy and category, with its definitions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from lamina.bench.asking import Cost
from lamina.bench.conversation import Category
from lamina.bench.judge import unanswerable
from lamina.bench.qa_rows import MEASURES, Asked, Row, row_of

ALL = "all"
EVERYTHING = "with-unanswerable"
NAMES: Mapping[Category, str] = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
"""What LoCoMo's numbers of categories stand for."""

DEFINITIONS = {
    "answer": "what the reader wrote from the block of packed memories alone; the reader is named above. "
    "`deep`, if it is there, reads the history itself, with the same model",
    "all": "the questions that have an answer (LoCoMo: categories 1 to 4), with or without evidence ids",
    "with-unanswerable": "all questions; those without an answer (LoCoMo: category 5, whose gold answer in "
    "the data is the wrong one that the question is after) score 1 in every figure where the reader "
    "abstained, else 0",
    "words": "SQuAD's: lower case, punctuation taken out (ASCII's, and what Unicode calls so), the articles "
    "a, an, the left out, white space folded",
    "em": "the answer's words are the gold answer's (EM exact, SQuAD)",
    "contains": "the gold answer's words stand in the answer in one run, whole words (RLM-Memory's EM)",
    "f1": "harmonic mean of the shares of common words, counted with repetition (SQuAD)",
    "bleu1": "clipped precision of words times the brevity penalty, no smoothing (nltk)",
    "rouge_l": "F-measure of the longest common subsequence of words (rouge-score, no stemming)",
    "abstained": "share of answers that say memory does not hold it; they score 0 where there is an answer",
    "in_block": "share of the questions with an answer whose gold answer stands in the packed block, as "
    "for `contains`: what a reader that only quotes could reach at best; a gold answer in other words is "
    "not seen",
    "judge": "share of answers that the judge calls correct, by the rule for the question's kind; an "
    "abstention is judged without a call; replies that could not be read are left out and counted",
    "tokens": "mean size of the block (of `deep`, of all its prompts and replies); a token is four UTF-8 "
    "bytes. `full` and `truncated` have no budget and are counted without citations",
    "p50_ms, p99_ms": "from the question's text to the answer: recall with its embedding, packing, reading; "
    "in this process, without HTTP",
    "± sd": "standard deviation (n - 1) of the runs' means; without a model every run gives the same answers",
}


@dataclass(frozen=True, slots=True)
class Report:
    """Every answer of every strategy, and what they were made from."""

    asked: tuple[Asked, ...]
    dataset: str
    strategies: Mapping[str, str]
    """What each is, by name, in the order shown."""
    conversations: tuple[str, ...]
    turns: int
    budget: int
    runs: int
    reader: str
    reader_says: str
    at_once: int
    judge: str | None
    embedder: str
    store: str
    machine: str
    cost: Mapping[str, Cost]
    """Of each model, by name."""

    @property
    def made_from(self) -> dict[str, str]:
        """What a reader of the figures must know, by name."""
        return {
            "data": f"{self.dataset}, {len(self.conversations)} conversations, {self.turns:,} turns",
            "reader": f"{self.reader} ({self.reader_says})",
            "judge": self.judge or "none: no language model is configured",
            "block": f"at most {self.budget:,} tokens",
            "runs": str(self.runs),
            "questions at once": str(self.at_once),
            "embedder": self.embedder,
            "memory": f"extractive engine, store: {self.store}",
            "machine": self.machine,
            **{f"cost of {name}": in_words(cost) for name, cost in self.cost.items()},
        }

    def rows(self) -> list[Row]:
        """Return a row for each strategy and category: `all`, each category, and `with-unanswerable`."""
        return [row for name in self.strategies for row in self._rows_of(name)]

    def _rows_of(self, strategy: str) -> Iterator[Row]:
        asked = [each for each in self.asked if each.strategy == strategy]
        found = sorted(
            {each.question.category for each in asked}, key=lambda each: (isinstance(each, str), each)
        )
        chosen = {ALL: [each for each in asked if not unanswerable(each.question)]}
        for category in found:
            chosen[str(category)] = [each for each in asked if each.question.category == category]
        if len(chosen[ALL]) < len(asked):
            chosen[EVERYTHING] = asked
        return (row_of(strategy, name, some, self.runs) for name, some in chosen.items() if some)

    def json(self) -> dict[str, Any]:
        """Return everything but the answers themselves as plain values."""
        return {
            "dataset": self.dataset,
            "conversations": list(self.conversations),
            "turns": self.turns,
            "reader": self.reader,
            "reader_says": self.reader_says,
            "judge": self.judge,
            "budget_tokens": self.budget,
            "runs": self.runs,
            "questions_at_once": self.at_once,
            "embedder": self.embedder,
            "engine": "extractive",
            "store": self.store,
            "machine": self.machine,
            "made_from": self.made_from,
            "cost": {name: dict(cost) for name, cost in self.cost.items()},
            "definitions": DEFINITIONS,
            "strategies": dict(self.strategies),
            "rows": [row.json() for row in self.rows()],
        }

    def tables(self) -> RenderableType:
        """Return the rows and the definitions for a terminal."""
        title = "; ".join(f"{name}: {what}" for name, what in self.made_from.items())
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
        measures = [name for name in MEASURES if self.judge or name != "judge"]
        for place, heading in enumerate(
            ("strategy", "category", "n", *measures, "tokens", "p50 ms", "p99 ms")
        ):
            table.add_column(heading, justify="right" if place > 1 else "left")
        rows = self.rows()
        for row, after in zip(rows, [*rows[1:], None], strict=True):
            table.add_row(
                row.strategy,
                named(row.category),
                str(row.n),
                *(_share(row, name) for name in measures),
                f"{row.tokens:.0f}",
                f"{row.p50_ms:.1f}",
                f"{row.p99_ms:.1f}",
                end_section=after is None or after.strategy != row.strategy,
            )
        notes = [f"{name}: {says}" for name, says in (*self.strategies.items(), *DEFINITIONS.items())]
        return Group(table, *notes)


def in_words(cost: Cost) -> str:
    """Return what a model was asked and what it cost, in a line."""
    lines = (
        f"{purpose}: {each['calls']:,} calls, {each['tokens_in']:,} tokens in, {each['tokens_out']:,} out"
        for purpose, each in cost.items()
    )
    return "; ".join(lines) or "nothing was asked"


def named(category: str) -> str:
    """Return a category as a reader knows it."""
    return NAMES[int(category)] if category.isdigit() and int(category) in NAMES else category


def _share(row: Row, measure: str) -> str:
    mean, sd = row.means[measure], row.sd[measure]
    if mean is None:
        return "–"
    return f"{mean:.1%}" if sd is None else f"{mean:.1%} ± {100 * sd:.1f}"
