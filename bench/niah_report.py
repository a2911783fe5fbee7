"""The report of `lamina bench niah`: whether needles reached the reader, by length and way."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any, Literal, get_args

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

Wording = Literal["same", "other"]
"""Whether a needle is asked for in its own words or in others."""
WORDINGS: tuple[Wording, ...] = get_args(Wording)

DEFINITIONS = {
    "history": "so many turns of small talk between two, made by rules from our own words, the same for the "
    "same seed; some 72 characters a turn, as in RLM-Memory's table 1",
    "needle": "a fact said once, in one turn; the kinds of facts take turns, and the runs of a length spread "
    "their needles evenly over the depth of the history",
    "distractors": "by turns facts of the needle's kind about somebody else, and other facts about the same "
    "one, each said once elsewhere in the history: ours, and harder than the paper, which names none",
    "needle in block": "share of the runs whose block holds the needle's value, as a run of whole words",
    "rank": "mean place of the needle among what was recalled, best first, over the runs that have it; the "
    "history itself is not ranked",
    "answered": "share of the runs whose answer holds it (EM contains-gold)",
    "other words": "the same, asked in words that the needle does not share, but for whom it is about",
    "tokens": "mean size of the block (of `deep`, of all its prompts and replies); a token is four UTF-8 "
    "bytes. The strategies fill the budget at most; `full` and `truncated` have none, and are counted "
    "without citations",
    "p50_ms": "median over runs and wordings, from the question's text to the answer, in this process, "
    "without HTTP",
}


@dataclass(frozen=True, slots=True)
class Looked:
    """One needle, looked for in one way."""

    turns: int
    run: int
    depth: float
    way: str
    wording: Wording
    question: str
    needle: str
    said: str
    in_block: bool | None
    """None where there is no block."""
    rank: int | None
    """Place of the needle among the results, from 1; None where they do not have it."""
    answered: bool
    abstained: bool
    tokens: int
    characters: int
    """Of the whole history."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """The means of one way over the runs of one length."""

    turns: int
    strategy: str
    n: int
    in_block: float | None
    rank: float | None
    answered: float
    in_block_other: float | None
    """Asked in other words; so the next two."""
    rank_other: float | None
    answered_other: float
    tokens: float
    history_characters: float
    p50_ms: float

    def json(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return {
            key: round(value, 4) if isinstance(value, float) else value for key, value in asdict(self).items()
        }


@dataclass(frozen=True, slots=True)
class Report:
    """Every needle, and what it was looked for with."""

    looked: tuple[Looked, ...]
    ways: Mapping[str, str]
    """What each is, by name, in the order shown."""
    lengths: tuple[int, ...]
    runs: int
    seed: int
    distractors: int
    budget: int
    reader: str
    reader_says: str
    embedder: str
    store: str
    machine: str

    @property
    def made_from(self) -> dict[str, str]:
        """What a reader of the figures must know, by name."""
        return {
            "histories": f"{self.runs} of each length, seed {self.seed}, {self.distractors} distractors each",
            "reader": f"{self.reader} ({self.reader_says})",
            "block": f"at most {self.budget:,} tokens",
            "embedder": self.embedder,
            "memory": f"extractive engine, store: {self.store}",
            "machine": self.machine,
        }

    def rows(self) -> list[Row]:
        """Return a row for each length and way."""
        return [
            row_of([each for each in self.looked if (each.turns, each.way) == (length, way)])
            for length in self.lengths
            for way in self.ways
        ]

    def json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "dataset": "needle in a haystack",
            "lengths": list(self.lengths),
            "runs": self.runs,
            "seed": self.seed,
            "distractors": self.distractors,
            "budget_tokens": self.budget,
            "reader": self.reader,
            "reader_says": self.reader_says,
            "embedder": self.embedder,
            "engine": "extractive",
            "store": self.store,
            "machine": self.machine,
            "made_from": self.made_from,
            "definitions": DEFINITIONS,
            "strategies": dict(self.ways),
            "rows": [row.json() for row in self.rows()],
            "needles": [
                {**asdict(each), "depth": round(each.depth, 4), "seconds": round(each.seconds, 6)}
                for each in self.looked
            ],
        }

    def tables(self) -> RenderableType:
        """Return the rows and the definitions for a terminal."""
        title = "; ".join(f"{name}: {what}" for name, what in self.made_from.items())
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
        headings = (
            *("turns", "characters", "strategy", "n", "needle in block", "rank", "answered"),
            *("in other words: in block", "rank", "answered", "tokens", "p50 ms"),
        )
        for heading in headings:
            table.add_column(heading, justify="left" if heading == "strategy" else "right")
        last = list(self.ways)[-1]
        for row in self.rows():
            table.add_row(
                f"{row.turns:,}",
                f"{row.history_characters:,.0f}",
                row.strategy,
                str(row.n),
                *_figures(row),
                f"{row.tokens:,.0f}",
                f"{row.p50_ms:.1f}",
                end_section=row.strategy == last,
            )
        notes = [f"{name}: {says}" for name, says in (*self.ways.items(), *DEFINITIONS.items())]
        return Group(table, *notes)


def row_of(looked: Sequence[Looked]) -> Row:
    """Return the means over the runs of one length and way, at least one."""
    same = [each for each in looked if each.wording == "same"]
    other = [each for each in looked if each.wording == "other"]
    return Row(
        turns=looked[0].turns,
        strategy=looked[0].way,
        n=len(same),
        in_block=_mean(each.in_block for each in same),
        rank=_mean(each.rank for each in same),
        answered=fmean(each.answered for each in same),
        in_block_other=_mean(each.in_block for each in other),
        rank_other=_mean(each.rank for each in other),
        answered_other=fmean(each.answered for each in other),
        tokens=fmean(each.tokens for each in looked),
        history_characters=fmean(each.characters for each in looked),
        p50_ms=median(each.seconds * 1000 for each in looked),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return fmean(known) if known else None


def _figures(row: Row) -> Iterator[str]:
    for share, rank, answered in (
        (row.in_block, row.rank, row.answered),
        (row.in_block_other, row.rank_other, row.answered_other),
    ):
        yield "–" if share is None else f"{share:.0%}"
        yield "–" if rank is None else f"{rank:.1f}"
        yield f"{answered:.0%}"
