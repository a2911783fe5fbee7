"""deep: the next program that reads the history for a question (RLM-Memory §4.1 and 4.2).

Data: `question`, `asked` (when), `history` (`{turns, sessions, from, to, cut}`), `left` (programs and calls),
and `steps`: what was run so far, each `{program, printed, error}`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.streams.llm import Prompt
from lamina.streams.prompts.material import QUOTED
from lamina.streams.prompts.reply import Reply

VERSION = 1
MOST_TOKENS = 1500


class Program(Reply):
    """What to do next, in a sentence, and the Python that does it."""

    plan: str
    program: str


SYSTEM = (
    QUOTED + "You answer `question` about a long conversation history that you cannot see. You read it by "
    "Python: `program` runs in a sandbox, what it prints comes back as the next of `steps`, and variables "
    "stay from one program to the next. `plan` says in one sentence what the program is for.\n"
    "Turns are numbered from 1, the oldest. These functions are there, without import or await:\n"
    "search_history(query, k=50): turns that hold every word of the query, as substrings and in any case, "
    "newest first, as dicts {n, date, session, speaker, text}.\n"
    "get_recent(n): the last n turns, as such dicts, oldest first.\n"
    "sessions(): all sessions as a list of texts, oldest first, each line `[n] date speaker: text`; a long "
    "one comes as several parts.\n"
    "session_dates(): their dates as a list, in the same order.\n"
    "llm_query(text, question=None): a reader with a fresh context looks in the text for the question "
    "(without one: the user's) and returns what it found, with turn numbers in brackets, or '' for "
    "nothing.\n"
    "llm_query_parallel(texts, question=None): the same for a list of texts at once; a list of findings in "
    "their order.\n"
    "FINAL(answer, evidence): ends the work. evidence is the list of numbers of the turns that say it.\n"
    "How to work, whatever the question is: first read everything, llm_query_parallel(sessions(), …) with "
    "one precise question, and print the findings that are not empty with their dates. Then look closer "
    "with search_history or get_recent where findings disagree, leave something open or may have missed "
    "other wordings, and combine them yourself. If there are more texts than `left` has calls, choose those "
    "that searches point to, and the newest. Print little, never a whole history: long output is cut. Where "
    "turns disagree, the newest holds. Compute dates and sums in Python, from the dates of turns; `asked` "
    "is today.\n"
    "Call FINAL only for what you have read: evidence counts if a reader or you saw that turn before. "
    "Answer briefly: the name, date, number or phrase, no explanation. If the history does not hold the "
    "answer, FINAL('', []). Never guess.\n"
    "The sandbox is a small Python: re, json, math, datetime and collections can be imported; there are no "
    "files, no network, no generators (yield), no del, no class inheritance."
)


def prompt(
    question: str,
    asked: str,
    history: Mapping[str, Any],
    left: Mapping[str, int],
    steps: Sequence[Mapping[str, Any]],
) -> Prompt[Program]:
    """Ask for the next program.

    Args:
        question: the user's.
        asked: when, as text.
        history: what is there to read.
        left: what the budget still allows.
        steps: the programs so far, and what they printed.
    """
    data = {
        "question": question,
        "asked": asked,
        "history": dict(history),
        "left": dict(left),
        "steps": list(steps),
    }
    return Prompt("deep", VERSION, SYSTEM, data, Program, MOST_TOKENS)
