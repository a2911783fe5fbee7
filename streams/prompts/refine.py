"""refine: the facts that an episode omits (RecMem §3.4, eq. 9).

Data: `episode` (its text), `turns` (`material.turn_entries`) and `known` (`fact_entries`).
"""

from collections.abc import Sequence

from lamina.streams.llm import Prompt
from lamina.streams.prompts.material import QUOTED, cut, fact_entries, turn_entries
from lamina.streams.prompts.reply import Reply
from lamina.streams.records import Unit
from lamina.streams.resolution import Reading

VERSION = 1
MOST_TOKENS = 1000
_LONGEST_EPISODE = 2000


class Fact(Reply):
    """One lasting statement about someone or something."""

    turns: list[int]
    subject: str
    relation: str
    object: str
    text: str
    holds_one: bool
    valid_from: str | None
    updates: int | None


class Facts(Reply):
    """The facts that the episode omits and that are not known yet."""

    facts: list[Fact]


A_FACT_IS = (
    "A fact is one lasting detail that a turn states{omitted}: a name, a relation between "
    "people, a preference, a possession, a place, a number, a date, a plan. Never a question, a guess or "
    "small talk, and never one that `known` already says. subject: whom or what it is about, by name. "
    "relation: one short verb phrase in snake_case (lives_in, sister, allergic_to, likes, plans_to); as in "
    "`known` where it is the same. object: the value alone. text: the fact as one sentence that can be "
    "read alone. turns: the numbers that state it. holds_one: whether the relation has one value at a time "
    "(lives_in, age) or several (likes). valid_from: the day from which it holds, as YYYY-MM-DD, null for "
    "the day it was said. updates: the number of the known fact of the same subject and relation whose "
    "value it changes, else null. At most eight facts."
)
"""Needs `omitted`: what is told elsewhere and is no fact then."""
WHAT_A_FACT_IS = A_FACT_IS.format(omitted=" and no episode tells")

SYSTEM = (
    QUOTED
    + "You keep the long-term memory of a conversation. `episode` was written from `turns`. Recover what "
    "it leaves out. " + WHAT_A_FACT_IS
)


def prompt(
    episode: str, turns: Sequence[Unit], readings: Sequence[Reading], known: Sequence[Unit]
) -> Prompt[Facts]:
    """Ask for the facts that an episode omits; the other arguments as in `consolidate.prompt`."""
    data = {
        "episode": cut(episode, _LONGEST_EPISODE),
        "known": fact_entries(known),
        "turns": turn_entries(turns, readings),
    }
    return Prompt("refine", VERSION, SYSTEM, data, Facts, MOST_TOKENS)
