"""plan_split: the segments of a unit's evidence (All-Mem app. C.3).

Data: `reason`, `unit` (its text) and `turns` (`material.turn_entries` of its evidence). Whole turns are named
by number and only parts of turns are copied, so that a long evidence need not be written out again (ours).
"""

from lamina.streams.engine import Node
from lamina.streams.llm import Prompt
from lamina.streams.prompts.material import QUOTED, cut, sample, turn_entries
from lamina.streams.prompts.reply import Reply

VERSION = 1
MOST_TOKENS = 900
_LONGEST_UNIT = 2000
_LONGEST_REASON = 300


class Quote(Reply):
    """A part of a turn, copied letter by letter."""

    turn: int
    text: str


class Segment(Reply):
    """What belongs together: whole turns, and parts of turns."""

    turns: list[int]
    quotes: list[Quote]


class SplitPlan(Reply):
    """The smallest number of segments; one where the unit is coherent."""

    segments: list[Segment]


SYSTEM = (
    QUOTED
    + "`unit` may hold unrelated things; `reason` says why it was flagged. Part its evidence, `turns`, "
    "into the smallest number of segments that can each be understood alone. A segment has turns: the "
    "numbers of turns that belong to it whole, and quotes: parts of a turn copied exactly, letter by "
    "letter, never reworded; a part ends where a sentence or clause ends. Nothing stands in two segments. "
    "Where the evidence is one story, give one segment with all turns."
)


def prompt(target: Node, reason: str) -> Prompt[SplitPlan]:
    """Ask for the segments of a unit; its evidence is numbered in its order, `material.sample`d."""
    data = {
        "reason": cut(reason, _LONGEST_REASON),
        "unit": cut(target.unit.text, _LONGEST_UNIT),
        "turns": turn_entries(sample(target.evidence)),
    }
    return Prompt("plan_split", VERSION, SYSTEM, data, SplitPlan, MOST_TOKENS)
