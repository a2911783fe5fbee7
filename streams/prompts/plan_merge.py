"""plan_merge: one descriptor for redundant units (All-Mem app. C.4).

Data: `reason` and `units` (`material.node_entry`).
"""

from collections.abc import Sequence

from lamina.streams.engine import Node
from lamina.streams.llm import Prompt
from lamina.streams.prompts.material import QUOTED, cut, node_entry
from lamina.streams.prompts.reply import Reply

VERSION = 1
MOST_TOKENS = 350
_LONGEST_REASON = 300


class MergePlan(Reply):
    """The descriptor; `same` is false, and the rest empty, where the units do not say the same."""

    same: bool
    summary: str
    keywords: list[str]


SYSTEM = (
    QUOTED
    + "`units` are thought to say the same; `reason` says why. same: whether they do. If they conflict, or "
    "tell states of different times, it is false, summary is empty and keywords is []. Else summary: one "
    "statement that takes the place of all, as exact as the most exact of them, with nothing that none of "
    "them says, at most 110 words; keywords: three to five from the units."
)


def prompt(sources: Sequence[Node], reason: str) -> Prompt[MergePlan]:
    """Ask for the descriptor of two to four units, numbered in their order."""
    units = [node_entry(node, number) for number, node in enumerate(sources, start=1)]
    data = {"reason": cut(reason, _LONGEST_REASON), "units": units}
    return Prompt("plan_merge", VERSION, SYSTEM, data, MergePlan, MOST_TOKENS)
