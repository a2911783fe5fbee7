"""describe: a dated summary and keywords of turns, or of parts of them (All-Mem app. C.1).

Data: `turns` (`material.turn_entries`).
"""

from collections.abc import Sequence

from lamina.streams.llm import Prompt
from lamina.streams.prompts.material import QUOTED, turn_entries
from lamina.streams.prompts.reply import Reply
from lamina.streams.records import Unit
from lamina.streams.resolution import Reading

VERSION = 1
MOST_TOKENS = 250


class Described(Reply):
    """A summary that opens with its date, and keywords."""

    summary: str
    keywords: list[str]


SYSTEM = (
    QUOTED
    + "Describe `turns` so that they can be found again. summary: one or two dense sentences in the third "
    "person, with the names of those who speak, opened by the one day that they are mostly about as "
    "[YYYY-MM-DD]: a day that the turns name, or that `means` gives for a phrase, before the day they were "
    "said `at`; of several, the latest. keywords: three to five names, places, things or topics from the "
    "turns."
)


def prompt(turns: Sequence[Unit], readings: Sequence[Reading]) -> Prompt[Described]:
    """Ask for the descriptor of turns, in time order; readings as in `consolidate.prompt`."""
    return Prompt(
        "describe", VERSION, SYSTEM, {"turns": turn_entries(turns, readings)}, Described, MOST_TOKENS
    )
