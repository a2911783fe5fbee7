"""How good `auto` is on conversations that its weights were not fitted on, and what each feature is worth.

Leave one conversation out: weights are fitted on the others, spreads of features included, and the questions
of the one are ranked by them. What is shipped is fitted on all. This does not cover that the list of features
was chosen while looking at such figures (docs/decisions/0005).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from lamina.bench.conversation import Category
from lamina.bench.fusion_fit import L2, Fitted, Floats, Sample, fit
from lamina.bench.fusion_pools import Case, Cases
from lamina.bench.ranking import ndcg, recall
from lamina.streams.recall.auto.features import FEATURES, Match
from lamina.streams.recall.auto.fusion import fuse

DEPTH = 10
COMPONENTS: Mapping[str, tuple[str, ...]] = {
    "dates of the question": ("date_within", "date_after"),
    "kind of question × what the turn holds": (
        "when_time",
        "when_date",
        "count_time",
        "who_capitals",
        "what_quote",
    ),
    "session": ("session_best", "session_late_interaction", "session_dense_match"),
    "neighbours": ("before_2", "after_2", "answers"),
    "what kind of turn it is": ("is_question", "information"),
    "who spoke": ("speaker",),
}
"""Features that belong together, removed together."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over questions, fractions of 1; evidence outside a question's pool counts as not found."""

    n: int
    recall5: float
    ndcg5: float
    recall10: float

    @classmethod
    def of(cls, ranked: Sequence[tuple[float, float, float]]) -> "Figures":
        """Average questions' recall@5, NDCG@5 and recall@10."""
        if not ranked:
            return cls(0, 0.0, 0.0, 0.0)
        return cls(len(ranked), *(mean(column) for column in zip(*ranked, strict=True)))


@dataclass(frozen=True, slots=True)
class Validated:
    """`auto` with one kind of match, cross-validated."""

    match: Match
    all: Figures
    by_category: Mapping[Category, Figures]
    by_conversation: Mapping[str, Figures]
    without: Mapping[str, Figures]
    """By feature, and by component: the figures with all other features, fitted and validated anew."""
    weights: Mapping[str, float]
    """Fitted on all conversations, on features as they are."""
    standardised: Mapping[str, float]
    """Weight times the feature's standard deviation: how much it moves scores."""
    folds: Mapping[str, Mapping[str, float]]
    """By conversation: the weights fitted on all others."""
    shifts: Mapping[str, float]
    """Standard deviation of the standardised weight over the folds."""


def validate(cases: Cases, match: Match, *, ablate: bool, told: Callable[[str], None]) -> Validated:
    """Cross-validate `auto` over the given cases.

    Args:
        cases: of at least two conversations.
        match: which features.
        ablate: also remove each feature in turn.
        told: gets the name of what was just validated: `all`, then each feature.
    """
    names = FEATURES[match]
    every = tuple(range(len(names)))
    ranked, folds = _left_out(cases, match, every, {})
    told("all")
    without: dict[str, Figures] = {}
    removals = {**{name: (name,) for name in names}, **COMPONENTS} if ablate else {}
    for name, removed in removals.items():
        others = tuple(column for column in every if names[column] not in removed)
        near = {left: fold.weights[list(others)] for left, fold in folds.items()}
        without[name] = Figures.of(list(_left_out(cases, match, others, near)[0].values()))
        told(name)
    fitted = fit([case.sample(match, every) for case in cases.cases])
    at = dict(enumerate(cases.cases))
    spread = np.std([fold.weights * fold.spread for fold in folds.values()], axis=0)
    return Validated(
        match=match,
        all=Figures.of(list(ranked.values())),
        by_category={
            category: Figures.of([ranked[n] for n in at if at[n].category == category])
            for category in sorted({case.category for case in cases.cases}, key=str)
        },
        by_conversation={
            name: Figures.of([ranked[n] for n in at if at[n].conversation == name])
            for name in cases.conversations
        },
        without=without,
        weights=_named(names, fitted.weights.tolist()),
        standardised=_named(names, (fitted.weights * fitted.spread).tolist()),
        folds={left: _named(names, fold.weights.tolist()) for left, fold in folds.items()},
        shifts=_named(names, spread.tolist()),
    )


def ranking(case: Case, match: Match, columns: Sequence[int], fitted: Fitted) -> tuple[float, float, float]:
    """Rank a case's pool by these columns and return its recall@5, NDCG@5 and recall@10."""
    names = tuple(FEATURES[match][column] for column in columns)
    weights = dict(zip(names, fitted.weights.tolist(), strict=True))
    order = fuse(case.matrices[match][:, columns], names, weights, case.pool).order[:DEPTH]
    found = [case.pool.ids[place] for place in order]
    return recall(found, case.evidence, 5), ndcg(found, case.evidence, 5), recall(found, case.evidence, DEPTH)


def _left_out(
    cases: Cases, match: Match, columns: tuple[int, ...], near: Mapping[str, Floats]
) -> tuple[dict[int, tuple[float, float, float]], dict[str, Fitted]]:
    """Rank every case by weights fitted on the other conversations.

    Args:
        cases: all of them.
        match: which features.
        columns: of those, which.
        near: by the conversation left out, weights to begin with.

    Returns:
        The figures by the case's place, and what was fitted by the conversation left out.
    """
    samples: list[Sample] = [case.sample(match, columns) for case in cases.cases]
    ranked: dict[int, tuple[float, float, float]] = {}
    folds: dict[str, Fitted] = {}
    for name in cases.conversations:
        others = [samples[n] for n, case in enumerate(cases.cases) if case.conversation != name]
        folds[name] = fit(others, L2, near.get(name))
        for n, case in enumerate(cases.cases):
            if case.conversation == name:
                ranked[n] = ranking(case, match, columns, folds[name])
    return ranked, folds


def _named(names: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    return dict(zip(names, values, strict=True))
