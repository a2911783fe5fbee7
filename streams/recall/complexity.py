"""How complex a question is, C_q ∈ [0, 1] (SimpleMem §2.3), by rules.

The paper asks a language model (app. A.2: LOW for a direct fact, HIGH for aggregation over several events,
comparison in time, or synthesis of patterns), which the hot path may not. Ours reads the same signs from the
words of the question, English; the weights are set by hand and not fitted.

    C_q = min(1, 0.05·(content words beyond four, at most six) + 0.15·(further clauses, at most two)
                 + 0.4·[aggregates] + 0.4·[compares in time] + 0.4·[asks for a pattern or a reason])
"""

import re
from dataclasses import dataclass

from lamina.streams.words import content

LOW = 0.3
"""Below this a question is a direct look-up."""

_WORD, _FREE_WORDS, _MOST_WORDS = 0.05, 4, 6
_CLAUSE, _MOST_CLAUSES = 0.15, 2
_SIGN = 0.4
_CLAUSES = re.compile(r"[,;]|\b(?:and|or|but|while|whereas|that|who|whom|whose)\b", re.IGNORECASE)
_OPENING = re.compile(r"\A\W*(?:and|or|but|who|whom|whose|that)\b", re.IGNORECASE)
_SIGNS = {
    "aggregates": re.compile(
        r"\b(?:how (?:many|often)|number of|all(?: of)?|every|each|both|list|total|overall|in common"
        r"|(?:what|which) (?:are|were|kinds?|types?|other|(?!does\b|news\b)\w{3,}(?<!s)s))\b",
        re.IGNORECASE,
    ),
    "compares": re.compile(
        r"\b(?:before|after|since|until|between|during|earlier|later|longer|more|most|less|least"
        r"|compared?|differen(?:t|ce)|chang(?:e|es|ed)|how long"
        r"|in (?:what|which) order|over (?:the )?(?:time|years|months))\b",
        re.IGNORECASE,
    ),
    "abstracts": re.compile(
        r"\b(?:why|how (?:do|does|did|would|could|should|is|was|are|were|has|have)|would|might|likely"
        r"|probably|usual(?:ly)?|typical(?:ly)?|tend|habits?|personality|relationship|attitude"
        r"|recommend|suggest|infer|describe|summari[sz]e|considered)\b",
        re.IGNORECASE,
    ),
}


@dataclass(frozen=True, slots=True)
class Complexity:
    """C_q and the signs that made it."""

    value: float
    signs: tuple[str, ...]

    @property
    def low(self) -> bool:
        """Whether one unit should do."""
        return self.value < LOW


def complexity(question: str) -> Complexity:
    """Estimate how complex a question is; other languages than English are judged by length and commas."""
    long = min(max(len(content(question)) - _FREE_WORDS, 0), _MOST_WORDS)
    opening = _OPENING.match(question)
    further = len(_CLAUSES.findall(question, opening.end() if opening else 0))
    signs = tuple(name for name, pattern in _SIGNS.items() if pattern.search(question))
    value = _WORD * long + _CLAUSE * min(further, _MOST_CLAUSES) + _SIGN * len(signs)
    return Complexity(min(1.0, round(value, 4)), signs)


def depth(complexity: float, base: int, delta: float, least: int, most: int) -> int:
    """Return k_dyn = ⌊k_base·(1 + δ·C_q)⌋ (SimpleMem eq. 8), held within [least, most]."""
    return min(most, max(least, int(base * (1 + delta * complexity) + _ROUNDING)))


_ROUNDING = 1e-9
"""What floating point may take from a whole number before it is floored."""
