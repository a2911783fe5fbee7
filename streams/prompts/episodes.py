"""episodes: the episodes of a recurring cluster (RecMem §3.3, eq. 7). Data: `turns` (`turn_entries`)."""

from collections.abc import Sequence

from lamina.streams.llm import Prompt
from lamina.streams.prompts.material import QUOTED, turn_entries
from lamina.streams.prompts.reply import Reply
from lamina.streams.records import Unit
from lamina.streams.resolution import Reading

VERSION = 1
MOST_TOKENS = 1200


class Episode(Reply):
    """A dated narrative of one topic and the turns it rests on."""

    turns: list[int]
    text: str
    topic: str
    keywords: list[str]
    entities: list[str]


class Episodes(Reply):
    """One episode for each sub-topic; none, and why, where nothing is worth one."""

    episodes: list[Episode]
    why_none: str | None


WHAT_AN_EPISODE_IS = (
    "An episode tells what happened around one topic, in order of time, in the third person, so that "
    "someone who has not read the turns understands it: who, what, where, and when as dates (a turn was "
    "said `at`; `means` gives the date of a phrase). Keep names, numbers, places and decisions exact. At "
    "most 110 words. Give unrelated sub-topics an episode each; leave out small talk. turns: the numbers "
    "it rests on. topic: at most six words. keywords: three to five. entities: the people, places, works "
    "and organisations named. Where nothing is worth remembering, give no episode and say in why_none why; "
    "else why_none is null."
)

SYSTEM = (
    QUOTED
    + "You keep the long-term memory of a conversation. `turns` keep coming back to something. Write "
    + ("their episodes. " + WHAT_AN_EPISODE_IS)
)


def prompt(turns: Sequence[Unit], readings: Sequence[Reading]) -> Prompt[Episodes]:
    """Ask for the episodes of a new cluster; arguments as in `consolidate.prompt`."""
    return Prompt(
        "episodes", VERSION, SYSTEM, {"turns": turn_entries(turns, readings)}, Episodes, MOST_TOKENS
    )
