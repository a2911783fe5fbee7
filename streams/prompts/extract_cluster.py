"""extract_cluster: the facts of a cluster with no episode as reference (RecMem §4.3, Direct Extraction).

As `refine` without its guidance about episodes, the rest intact, as the paper has it.
Data: `turns` (`material.turn_entries`) and `known` (`fact_entries`).
"""

from collections.abc import Sequence

from lamina.streams.llm import Prompt
from lamina.streams.prompts.material import QUOTED, fact_entries, turn_entries
from lamina.streams.prompts.refine import A_FACT_IS, MOST_TOKENS, Facts
from lamina.streams.records import Unit
from lamina.streams.resolution import Reading

VERSION = 2
"""1 is `extract`, of one turn."""

SYSTEM = (
    QUOTED
    + "You keep the long-term memory of a conversation. Extract the facts that `turns` state. "
    + A_FACT_IS.format(omitted="")
)


def prompt(turns: Sequence[Unit], readings: Sequence[Reading], known: Sequence[Unit]) -> Prompt[Facts]:
    """Ask for the facts that turns state; arguments as in `consolidate.prompt`."""
    data = {"known": fact_entries(known), "turns": turn_entries(turns, readings)}
    return Prompt("extract", VERSION, SYSTEM, data, Facts, MOST_TOKENS)
