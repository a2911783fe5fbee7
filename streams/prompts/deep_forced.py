"""deep, forced: the answer of a transcript when the budget allows no further program (RLM-Memory §4.1).

Data: `question`, `asked`, `steps` as for a program, and `forced`: what is used up.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.streams.llm import Prompt
from lamina.streams.prompts.material import QUOTED
from lamina.streams.prompts.reply import Reply

VERSION = 1
MOST_TOKENS = 500


class Forced(Reply):
    """The answer and the turns that say it; both empty where the transcript does not."""

    answer: str
    evidence: list[int]


SYSTEM = (
    QUOTED + "You were reading a conversation history by programs, and there is no time for another one. "
    "`steps` are the programs and what they printed. Answer the question now from what was printed alone.\n"
    "answer: the name, date, number or phrase, without explanation. evidence: the numbers of the turns that "
    "say it, as printed. Where turns disagree, the newest holds. If what was printed does not hold the "
    "answer, leave both empty. Never guess."
)


def prompt(question: str, asked: str, steps: Sequence[Mapping[str, Any]], forced: str) -> Prompt[Forced]:
    """Ask for the answer; the arguments are those of a program's prompt, and what is used up."""
    data = {"question": question, "asked": asked, "steps": list(steps), "forced": forced}
    return Prompt("deep", VERSION, SYSTEM, data, Forced, MOST_TOKENS)
