"""The gate decides whether a turn is worth remembering (SimpleMem §2.1, eq. 1 and 2).

H = α·|E_new| / |W| + (1 − α)·(1 − cos(E(W), E(H_prev)));   gated where H < τ.

The paper judges whole windows of ten turns, and so after the fact; Lamina judges a turn as it comes, from
the turns before it in its session alone, so a verdict does not depend on when a turn arrived. What the
paper leaves open is ours: W is the new turn, |W| its number of content words (at least 1), H_prev the
previous `window` − 1 turns of its session, E_new the entities of the turn that stand in none of them, and
cos = 0 where there are none, so a session's first turn is new by definition.

Cheap and deterministic: it runs on every turn, before any paid call.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self

import numpy as np

from lamina.streams.codec import Vector
from lamina.streams.entities import entities
from lamina.streams.phatic import answers, echoes, is_phatic
from lamina.streams.salience import salience_of
from lamina.streams.settings import Settings
from lamina.streams.words import content, hashed_vector, stems

__all__ = [
    "GatePolicy",
    "Reason",
    "Similarity",
    "Verdict",
    "dense_similarity",
    "is_phatic",
    "judge",
    "judge_windows",
    "lexical_similarity",
    "score",
]

Reason = Literal["salient", "informative", "answer", "phatic", "echo", "redundant"]
"""Kept: a salience rule fired; nothing speaks against it; it may answer the question before it.
Gated: it carries nothing; it adds nothing to the turns before; H < τ."""

Similarity = Callable[[Sequence[str], Sequence[str]], float]
"""cos(E(now), E(before)) of two non-empty runs of turns, in [−1, 1]."""


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """α, τ and W of SimpleMem eq. 1 and 2."""

    alpha: float
    tau: float
    window: int = 10

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Take the policy from the settings."""
        return cls(settings.gate_alpha, settings.gate_tau, settings.gate_window)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate decided, why, and the information score H, in [0, 1]."""

    keep: bool
    reason: Reason
    score: float


def lexical_similarity(now: Sequence[str], before: Sequence[str]) -> float:
    """Return the cosine of the hashed stems of two runs of turns, in [0, 1].

    A run of no content word says nothing new: its cosine with anything is 1 (ours).
    """
    said = [word for text in now for word in stems(text)]
    if not said:
        return 1.0
    return float(hashed_vector(said) @ hashed_vector(word for text in before for word in stems(text)))


def dense_similarity(vectors: Mapping[str, Vector]) -> Similarity:
    """Return a similarity over given vectors: E of a run is the unit-length mean of its turns' vectors.

    Args:
        vectors: each turn's text to its vector, shape (dimension,), unit length. A turn that is missing is a
            KeyError: the caller embeds before it judges.
    """

    def similarity(now: Sequence[str], before: Sequence[str]) -> float:
        return float(_mean([vectors[text] for text in now]) @ _mean([vectors[text] for text in before]))

    return similarity


def _mean(vectors: Sequence[Vector]) -> Vector:
    total = np.sum(vectors, axis=0, dtype=np.float32)
    length = float(np.linalg.norm(total))
    return np.asarray(total / length if length else total, dtype=np.float32)


def score(
    turn: str, previous: Sequence[str], alpha: float, similarity: Similarity = lexical_similarity
) -> float:
    """Return H of one turn (SimpleMem eq. 1), in [0, 1].

    Args:
        turn: the new turn's text.
        previous: the turns before it in its session, oldest first; H_prev.
        alpha: α, the weight of new entities.
        similarity: cos(E(W), E(H_prev)).
    """
    return _information((turn,), previous, max(1, len(content(turn))), alpha, similarity)


def _information(
    now: Sequence[str], before: Sequence[str], size: int, alpha: float, similarity: Similarity
) -> float:
    known = frozenset[str]().union(*map(_entities, before))
    new = frozenset[str]().union(*map(_entities, now)) - known
    cosine = similarity(now, before) if before else 0.0
    novelty = min(1.0, max(0.0, 1.0 - cosine))
    return alpha * min(1.0, len(new) / size) + (1 - alpha) * novelty


@lru_cache(maxsize=256)
def _entities(text: str) -> frozenset[str]:
    return entities(text)


def judge(
    turn: str, previous: Sequence[str], policy: GatePolicy, similarity: Similarity = lexical_similarity
) -> Verdict:
    """Decide whether a turn is worth remembering.

    A salient turn is kept whatever its score. Then the rules of `lamina.streams.phatic` gate what carries
    nothing, alone or beside the turns before it; then H < τ gates what is redundant. What may be the answer
    to a question right before it ("Yes, I did") is never gated.

    Args:
        turn: the new turn's text.
        previous: turns before it in its session, oldest first; the last `policy.window` − 1 count.
        policy: α, τ and W.
        similarity: cos(E(W), E(H_prev)); the default compares hashed words.
    """
    before = previous[max(0, len(previous) - policy.window + 1) :]
    information = score(turn, before, policy.alpha, similarity)
    if salience_of(turn) is not None:
        return Verdict(keep=True, reason="salient", score=information)
    reason: Reason
    if echoes(turn, before):  # every phatic turn also echoes
        reason = "phatic" if is_phatic(turn) else "echo"
    elif information < policy.tau:
        reason = "redundant"
    else:
        return Verdict(keep=True, reason="informative", score=information)
    if answers(turn, before):
        return Verdict(keep=True, reason="answer", score=information)
    return Verdict(keep=False, reason=reason, score=information)


def judge_windows(
    turns: Sequence[str], policy: GatePolicy, similarity: Similarity = lexical_similarity
) -> list[Verdict]:
    """Judge a whole session the published way: windows of W turns, stride W/2, no rules (SimpleMem app. B).

    Every turn of a window with H < τ is redundant; a turn is kept where any window that holds it is kept,
    and its score is the highest of theirs. Ours: H_prev are the W turns before the window, |W| is the
    window's number of turns, and the last window is the last W turns, whole.

    Args:
        turns: the turns of one session, in order.
        policy: α, τ and W.
        similarity: cos(E(W), E(H_prev)).

    Returns:
        One verdict a turn, in order.
    """
    if not turns:
        return []
    best = [0.0] * len(turns)
    last = max(0, len(turns) - policy.window)
    for start in {*range(0, last, max(1, policy.window // 2)), last}:
        now = turns[start : start + policy.window]
        before = turns[max(0, start - policy.window) : start]
        information = _information(now, before, len(now), policy.alpha, similarity)
        for place in range(start, start + len(now)):
            best[place] = max(best[place], information)
    return [
        Verdict(
            keep=value >= policy.tau,
            reason="informative" if value >= policy.tau else "redundant",
            score=value,
        )
        for value in best
    ]
