"""Fit the weights of `auto`: a listwise softmax over each question's pool, and its cross-validation.

With s = X·w over the candidates of a question and p = softmax(s), the loss is

    −(1/Q) Σ_q Σ_{i ∈ evidence of q} ln p_i / |evidence of q| + λ·‖w‖²,

ListNet's top-one loss (Cao et al. 2007, eq. 4) with the evidence as the target, over features divided by
their standard deviation. Evidence outside the pool adds nothing, which leaves its question less weight. The
loss is convex: Newton's method with halved steps ends in some ten rounds, without a library for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

L2 = 3e-3
"""λ. From 1e-3 to 3e-2 recall@5 moves by 0.1 points at most (docs/decisions/0005)."""
_ROUNDS = 50
_ENOUGH = 1e-9
"""Fall of the loss below which a round is the last."""
_SHORTEST = 1e-4
"""Smallest share of a Newton step that is tried."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The candidates of one question."""

    matrix: Floats
    """(n, f) features."""
    target: Floats
    """(n,) 1/|evidence| where a candidate is evidence, else 0; sums to 1 where the pool holds all of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Weights, and what they were fitted on."""

    weights: Floats
    """(f,) on features as they are."""
    spread: Floats
    """(f,) standard deviation of each feature: weights·spread is how much a feature moves a score."""


def fit(samples: Sequence[Sample], l2: float = L2, start: Floats | None = None) -> Fitted:
    """Fit weights; a feature that never varies gets 0.

    Args:
        samples: of at least one question with a candidate.
        l2: λ, on standardised features.
        start: (f,) weights to begin with: near ones save rounds, and change nothing else.
    """
    held = [sample for sample in samples if len(sample.target)]
    stack = _Stack.of(held)
    weights = np.zeros(stack.matrix.shape[1]) if start is None else start * stack.spread
    loss = stack.loss(weights, l2)
    for _ in range(_ROUNDS):
        gradient, curvature = stack.slopes(weights, l2)
        step = np.linalg.solve(curvature, gradient)
        share = 1.0
        while (lower := stack.loss(weights - share * step, l2)) > loss and share > _SHORTEST:
            share /= 2
        if loss - lower < _ENOUGH:
            break
        weights, loss = weights - share * step, lower
    return Fitted(weights / stack.spread, np.where(stack.varies, stack.spread, 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class _Stack:
    """All candidates of all questions, one below the other, features standardised."""

    matrix: Floats
    target: Floats
    starts: NDArray[np.intp]
    group: NDArray[np.intp]
    mass: Floats
    """(q,) how much of each question's evidence its pool holds."""
    spread: Floats
    """(f,); 1 for a feature that never varies."""
    varies: NDArray[np.bool_]

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> "_Stack":
        counts = np.array([len(sample.target) for sample in samples])
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        matrix = np.concatenate([sample.matrix for sample in samples])
        target = np.concatenate([sample.target for sample in samples])
        deviation = matrix.std(axis=0)
        varies = deviation > 1e-9  # noqa: PLR2004 - of rounding
        spread = np.where(varies, deviation, 1.0)
        matrix = np.where(varies, matrix / spread, 0.0)
        group = np.repeat(np.arange(len(samples)), counts)
        return cls(matrix, target, starts, group, np.add.reduceat(target, starts), spread, varies)

    def _logs(self, weights: Floats) -> Floats:
        """Return ln p of each candidate."""
        scores = self.matrix @ weights
        scores -= np.maximum.reduceat(scores, self.starts)[self.group]
        logs: Floats = scores - np.log(np.add.reduceat(np.exp(scores), self.starts))[self.group]
        return logs

    def loss(self, weights: Floats, l2: float) -> float:
        return float(-(self.target @ self._logs(weights)) / len(self.starts) + l2 * weights @ weights)

    def slopes(self, weights: Floats, l2: float) -> tuple[Floats, NDArray[Any]]:
        """Return the gradient (f,) and the Hessian (f, f)."""
        chances = np.exp(self._logs(weights))
        weighed = chances * self.mass[self.group]
        questions = len(self.starts)
        gradient = self.matrix.T @ (weighed - self.target) / questions + 2 * l2 * weights
        means = np.add.reduceat(self.matrix * chances[:, None], self.starts, axis=0)
        inner = self.matrix.T @ (self.matrix * weighed[:, None])
        outer = means.T @ (means * self.mass[:, None])
        return gradient, (inner - outer) / questions + 2 * l2 * np.eye(len(weights))
