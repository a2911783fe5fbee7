"""merge_episode: new turns taken into a thread's episodes (RecMem §3.3, eq. 6).

Data: `episodes` (`material.episode_entries`) and `turns` (`turn_entries`: the new ones alone, since an
episode may rest on hundreds).
"""

from collections.abc import Sequence

from lamina.streams.llm import Prompt
from lamina.streams.prompts.episodes import WHAT_AN_EPISODE_IS, Episode
from lamina.streams.prompts.material import QUOTED, episode_entries, turn_entries
from lamina.streams.prompts.reply import Reply
from lamina.streams.records import Unit
from lamina.streams.resolution import Reading

VERSION = 1
MOST_TOKENS = 1200


class NextEpisode(Episode):
    """An episode, and the known ones of which it is the next version."""

    continues: list[int]


class NextEpisodes(Reply):
    """The next versions; none, and why, where the new turns add nothing."""

    episodes: list[NextEpisode]
    why_none: str | None


WHAT_A_NEXT_VERSION_IS = (
    "Where `episodes` holds known ones, write the next version of each: all that is still of use in its "
    "text, with the new turns worked in at their dates; continues: the numbers of the known episodes it "
    "takes the place of. turns: new ones only. What belongs to none of them becomes an episode of its own, "
    "which continues nothing ([])."
)

SYSTEM = (
    QUOTED
    + "You keep the long-term memory of a conversation. New `turns` come back to known `episodes`. "
    + WHAT_A_NEXT_VERSION_IS
    + " "
    + WHAT_AN_EPISODE_IS
)


def prompt(turns: Sequence[Unit], readings: Sequence[Reading], heads: Sequence[Unit]) -> Prompt[NextEpisodes]:
    """Ask for the next version of a thread's episodes; arguments as in `consolidate.prompt`."""
    data = {"episodes": episode_entries(heads), "turns": turn_entries(turns, readings)}
    return Prompt("merge_episode", VERSION, SYSTEM, data, NextEpisodes, MOST_TOKENS)
