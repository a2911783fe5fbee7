"""abstract: what related units have in common (SimpleMem §2.2). Data: `units` (`material.node_entry`)."""

from collections.abc import Sequence

from lamina.streams.engine import Node
from lamina.streams.llm import Prompt
from lamina.streams.prompts.material import QUOTED, node_entry
from lamina.streams.prompts.reply import Reply

VERSION = 1
MOST_TOKENS = 300


class Abstracted(Reply):
    """The common statement; `related` is false, and the rest empty, where there is none."""

    related: bool
    statement: str
    keywords: list[str]


SYSTEM = (
    QUOTED
    + "`units` are close in meaning and time. related: whether they show one pattern, habit, interest or "
    "state of one person, group or thing. If not, it is false, statement is empty and keywords is []. Else "
    "statement: that pattern as one general sentence with the names and the span of time, at most 45 "
    "words, with nothing that the units do not say; keywords: three to five from the units."
)


def prompt(sources: Sequence[Node]) -> Prompt[Abstracted]:
    """Ask for the common statement of units, numbered in their order."""
    units = [node_entry(node, number, most_evidence=0) for number, node in enumerate(sources, start=1)]
    return Prompt("abstract", VERSION, SYSTEM, {"units": units}, Abstracted, MOST_TOKENS)
