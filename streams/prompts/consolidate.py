"""consolidate: episodes, then the facts that they omit, in one call (RecMem §3.3–3.4, fused: ours).

Data: `turns` (`material.turn_entries`), `episodes` (`episode_entries`; empty for a new cluster) and `known`
(`fact_entries`).
"""

from collections.abc import Sequence

from lamina.streams.llm import Prompt
from lamina.streams.prompts.episodes import WHAT_AN_EPISODE_IS
from lamina.streams.prompts.material import QUOTED, episode_entries, fact_entries, turn_entries
from lamina.streams.prompts.merge_episode import WHAT_A_NEXT_VERSION_IS, NextEpisode
from lamina.streams.prompts.refine import WHAT_A_FACT_IS, Fact
from lamina.streams.prompts.reply import Reply
from lamina.streams.records import Unit
from lamina.streams.resolution import Reading

VERSION = 1
MOST_TOKENS = 1600


class Answer(Reply):
    """What an `open` reference of a turn stands for."""

    turn: int
    phrase: str
    means: str


class Consolidated(Reply):
    """Episodes, the facts that they omit, and the references that the turns left open."""

    episodes: list[NextEpisode]
    why_none: str | None
    facts: list[Fact]
    resolved: list[Answer]


SYSTEM = (
    QUOTED
    + "You keep the long-term memory of a conversation. `turns` keep coming back to something. Do three "
    "things, in this order.\n\n"
    "1. episodes. "
    + WHAT_AN_EPISODE_IS
    + " "
    + WHAT_A_NEXT_VERSION_IS
    + "\n\n2. facts. "
    + WHAT_A_FACT_IS
    + "\n\n3. resolved. For each reference under `open` of a turn, in its order, that `before` or the turns "
    "make plain: the turn, the phrase as listed, and the name or thing it means, in at most six words. Leave "
    "out what is not plain."
)


def prompt(
    turns: Sequence[Unit], readings: Sequence[Reading], heads: Sequence[Unit], known: Sequence[Unit]
) -> Prompt[Consolidated]:
    """Ask for the episodes and facts of new turns.

    Args:
        turns: the new turns, in time order.
        readings: of those turns, in the same order.
        heads: the thread's episodes that the reply continues; empty for a new cluster.
        known: facts nearest to the cluster (RecMem eq. 8).
    """
    data = {
        "episodes": episode_entries(heads),
        "known": fact_entries(known),
        "turns": turn_entries(turns, readings),
    }
    return Prompt("consolidate", VERSION, SYSTEM, data, Consolidated, MOST_TOKENS)
