"""The drift gate: which neighbourhoods carry a measured sign that something is to be edited (ours).

All-Mem diagnoses every buffered unit by a model (§3.3). With `diagnose = drift` only those with one of three
signals are: a near-duplicate (a merge, an update), another value of the same subject and relation (an
update), and an episode whose turns speak of different things (a split).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal
from uuid import UUID

import numpy as np

from lamina.streams.codec import Vector
from lamina.streams.engine import Neighbourhood
from lamina.streams.topology.values import layer_of, opposed, other_value
from lamina.streams.vector_table import DECIMALS


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """From when on a measure is a signal; the values are ours, for all-MiniLM-L6-v2.

    With it, paraphrases of one statement have a cosine of 0.81 to 0.96 ("I live in Tokyo." and "My residence
    is in Tokyo.": 0.81), and statements of different things about one person 0.6 to 0.8.
    """

    duplicate: float = 0.8
    """Cosine of two units of one layer from which they may be one."""
    value: float = 0.7
    """Cosine from which two facts with the same subject and relation may exclude each other, where the
    relation is not known to hold one object at a time; where it is, they always signal."""
    scattered: float = 0.25
    """Mean cosine of each pair of an episode's turns below which it may be of several topics. Four
    consecutive LoCoMo turns are below in some 4 %, four random ones in about half. Pairs, not the distance
    to the centroid, which depends on the number of turns even where they have nothing in common."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One sign of drift in a neighbourhood."""

    name: Literal["near_duplicate", "other_value", "scattered"]
    units: tuple[UUID, ...]
    """The target, and the anchor where there is one."""
    figure: float
    """The cosine that was measured."""

    @property
    def reason(self) -> str:
        """Return the signal and its figure for the journal."""
        return f"{self.name.replace('_', ' ')} {self.figure:.2f}"


_DEFAULT = Sensitivity()


def signals(
    neighbourhood: Neighbourhood, vectors: Mapping[UUID, Vector], sensitivity: Sensitivity = _DEFAULT
) -> tuple[Signal, ...]:
    """Return the signals of a neighbourhood, anchors in their order; empty: it need not be diagnosed.

    Args:
        neighbourhood: the target, its evidence and its visible anchors.
        vectors: `dense` vectors of units and of evidence turns, unit length; what is missing gives no signal.
        sensitivity: the thresholds.
    """
    target = neighbourhood.target.unit
    found: list[Signal] = []
    for anchor in neighbourhood.anchors:
        unit = anchor.unit
        cosine = _cosine(target.id, unit.id, vectors)
        if unit.id == target.id or layer_of(unit.kind) != layer_of(target.kind) or cosine is None:
            continue
        pair = (target.id, unit.id)
        if opposed(target, unit) or (other_value(target, unit) and cosine >= sensitivity.value):
            found.append(Signal("other_value", pair, cosine))
        elif cosine >= sensitivity.duplicate:
            found.append(Signal("near_duplicate", pair, cosine))
    turns = [turn.id for turn in neighbourhood.target.evidence]
    cosines = [
        cosine
        for one, other in combinations(dict.fromkeys(turns), 2)
        if (cosine := _cosine(one, other, vectors)) is not None
    ]
    if target.kind == "episode" and cosines:
        mean = round(float(np.mean(cosines)), DECIMALS)
        if mean < sensitivity.scattered:
            found.append(Signal("scattered", (target.id,), mean))
    return tuple(found)


def _cosine(one: UUID, other: UUID, vectors: Mapping[UUID, Vector]) -> float | None:
    if one not in vectors or other not in vectors:
        return None
    return round(float(vectors[one] @ vectors[other]), DECIMALS)
