"""sub_query: what one text of the history says to a question (`llm_query` of RLM-Memory §4.1).

Data: `question`, and `text`: most often one session, a line for each turn.
"""

from lamina.streams.llm import Prompt
from lamina.streams.prompts.material import QUOTED
from lamina.streams.prompts.reply import Reply

VERSION = 1
MOST_TOKENS = 400


class Finding(Reply):
    """What was found, and in which turns; both empty for nothing."""

    finding: str
    turns: list[int]


SYSTEM = (
    QUOTED + "`text` is a part of a conversation history, a line for each turn: [n] date speaker: words. "
    "You read one part of many for `question`, and others combine what each part says. finding: what this "
    "text says towards the question, in as few words as hold it: names, dates, numbers and single items as "
    "they stand there, dated where they change over time; no sums and no conclusions beyond the text. "
    "turns: the numbers of the turns that say it. If the text says nothing towards the question, leave both "
    "empty; that is most often so."
)


def prompt(question: str, text: str) -> Prompt[Finding]:
    """Ask what a text says to a question."""
    return Prompt("sub_query", VERSION, SYSTEM, {"question": question, "text": text}, Finding, MOST_TOKENS)
