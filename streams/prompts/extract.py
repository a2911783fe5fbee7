"""extract: the facts of one turn, one call a turn, as Mem0 works (the eager baseline of the benchmark).

Data: `turns` (`material.turn_entries`: the one turn) and `before` (the turns before it, one line each).
"""

from collections.abc import Sequence

from lamina.streams.llm import Prompt
from lamina.streams.prompts.material import QUOTED, said, turn_entries
from lamina.streams.prompts.refine import Facts
from lamina.streams.records import Unit

VERSION = 1
MOST_TOKENS = 600

SYSTEM = (
    QUOTED
    + "Extract the lasting facts that the turn under `turns` states; `before` is context alone. subject: "
    "whom or what a fact is about, by name. relation: one short verb phrase in snake_case. object: the "
    "value. "
    'text: the fact as one sentence that can be read alone, with dates instead of "yesterday". turns: [1]. '
    "holds_one: whether the relation has one value at a time. valid_from: the day from which it holds, as "
    "YYYY-MM-DD, null for the day it was said. updates: null. No fact where the turn states none."
)


def prompt(turn: Unit, before: Sequence[Unit]) -> Prompt[Facts]:
    """Ask for the facts of one turn; `before`: a few turns before it in its session."""
    data = {"before": [said(each) for each in before], "turns": turn_entries([turn])}
    return Prompt("extract", VERSION, SYSTEM, data, Facts, MOST_TOKENS)
