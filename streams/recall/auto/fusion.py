"""The fusion of `auto`: score = Σ weight·feature, and a reader can check every term.

The weights stand in `weights.json` beside this module, fitted by `lamina bench fusion`: a listwise softmax
(Cao et al. 2007, top one): −mean log p of the evidence over the pool, L2 on standardised features.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import orjson

from lamina.streams.codec import moment_of_seconds
from lamina.streams.errors import Misconfigured
from lamina.streams.recall.auto.features import FEATURES, Floats, Indices, Match, features, match_of
from lamina.streams.recall.auto.pool import Ids, Pool
from lamina.streams.recall.auto.question import read

WEIGHTS = "weights.json"


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """The candidates of a question with their scores, and what each score is the sum of."""

    order: Indices
    """Places in the pool, best first, without those of context; of equal scores the later said first, then
    the lower id."""
    scores: Floats
    """(n,) Σ weight·feature, by place in the pool. Comparable within one question only."""
    terms: Floats
    """(n, f) weight·feature."""
    names: tuple[str, ...]
    """(f,) of the features."""

    def why(self, place: int) -> dict[str, float]:
        """Return the term of each feature of one candidate; they sum to its score."""
        return dict(zip(self.names, self.terms[place].tolist(), strict=True))


def rank(question: str, at: datetime, pool: Pool, weights: Mapping[str, float] | None = None) -> Ranked:
    """Score and order the candidates of a question.

    Args:
        question: what is asked.
        at: when, or the time whose knowledge is asked for. Dates in the question count from it, or from the
            newest turn where that is older: "in May" of a finished conversation is its last May.
        pool: the candidates.
        weights: by feature, on features as they are; None takes the shipped ones for what the pool holds.
    """
    match = match_of(pool)
    since = moment_of_seconds(min(at.timestamp(), pool.latest))
    matrix = features(read(question, since, pool.speakers), pool)
    return fuse(matrix, FEATURES[match], shipped()[match] if weights is None else weights, pool)


def fuse(matrix: Floats, names: tuple[str, ...], weights: Mapping[str, float], pool: Pool) -> Ranked:
    """Weigh a matrix of features, (n, f), and order its rows.

    Raises:
        KeyError: a feature has no weight.
    """
    terms = matrix * np.array([weights[name] for name in names])
    scores = terms.sum(axis=1)
    # By score, then time, then id as two numbers: comparing UUIDs would take longer than all the rest.
    ids = Ids.of(pool.ids).keys.view(">u8").reshape(-1, 2)
    order = np.lexsort((ids[:, 1], ids[:, 0], -pool.said_at, -scores))
    if pool.context is not None:
        order = order[~pool.context[order]]
    return Ranked(order, scores, terms, names)


@cache
def shipped() -> Mapping[Match, Mapping[str, float]]:
    """Return the weights of `weights.json`, by what is matched and feature.

    Raises:
        Misconfigured: the file is not one that `lamina bench fusion --write` wrote.
    """
    try:
        raw: dict[str, Any] = orjson.loads(files(__package__).joinpath(WEIGHTS).read_bytes())
        found = {
            match: {name: float(raw[match]["weights"][name]) for name in names}
            for match, names in FEATURES.items()
        }
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, ValueError) as exc:
        raise Misconfigured(f"{WEIGHTS} does not load ({exc!r}): install Lamina again") from exc
    return found
