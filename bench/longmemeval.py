"""LongMemEval: each question with its own history of chats, read from the file that the user downloaded.

Wu et al., "LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory" (ICLR 2025); the data
is MIT-licensed and not part of this repository. `longmemeval_oracle.json`, `longmemeval_s.json` (some 40
sessions a question) and `longmemeval_m.json` (some 500) have one form, a list of instances. The whole file is
held in memory while it is read: some 1 GB for `_s`, ten times that for `_m`.

Each instance becomes one conversation with one question. A turn is named SESSION:NUMBER, from 1, over all
messages of its session. Its speaker is its role. The times are those of the sessions, read as UTC; sessions
are put in the order of their times, which the oracle file does not keep.
"""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lamina.bench.conversation import Conversation, Question
from lamina.streams.conversations import DialogueTurn
from lamina.streams.errors import Misconfigured

ABSTENTION = "abstention"
"""The category of the questions whose id ends in `_abs`: what they ask about was never said."""
TYPES = (
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "multi-session",
    "knowledge-update",
    "temporal-reasoning",
)
"""The other categories, in the order in which they are shown."""
_TIME = "%Y/%m/%d %H:%M"
_WEEKDAY = re.compile(r"\s*\([^)]*\)\s*")


def instances_of(raw: Any, file: Path) -> list[Conversation]:
    """Return the instances of a file's JSON, each a conversation.

    Args:
        raw: what the file holds.
        file: names the file in errors.

    Raises:
        Misconfigured: it is not LongMemEval.
    """
    if not isinstance(raw, list) or not raw:
        raise Misconfigured(f"{file} is not LongMemEval: a list of instances is expected")
    found = []
    for number, item in enumerate(raw, 1):
        try:
            found.append(_instance(item))
        except (AttributeError, KeyError, TypeError, ValueError) as exc:
            raise Misconfigured(f"{file} is not LongMemEval: instance {number}: {exc!r}") from exc
    return found


def _instance(item: dict[str, Any]) -> Conversation:
    turns = tuple(_turns(item))
    if not turns:
        raise ValueError("no turn in any session")
    known = {turn.session for turn in turns}
    named = tuple(dict.fromkeys(str(session) for session in item["answer_session_ids"]))
    name = str(item["question_id"])
    question = Question(
        text=str(item["question"]),
        answer=str(item["answer"]),
        category=ABSTENTION if name.endswith("_abs") else str(item["question_type"]),
        evidence=tuple(session for session in named if session in known),
    )
    return Conversation(
        id=name,
        speakers=("user", "assistant"),
        turns=turns,
        questions=(question,),
        dropped_evidence=sum(session not in known for session in named),
        asked_at=_time(item["question_date"]),
    )


def _turns(item: dict[str, Any]) -> Iterator[DialogueTurn]:
    """Yield the messages that say something, in the order of the sessions' times."""
    sessions = zip(
        map(_time, item["haystack_dates"]),
        map(str, item["haystack_session_ids"]),
        item["haystack_sessions"],
        strict=True,
    )
    numbers: Counter[str] = Counter()
    for said_at, session, messages in sorted(sessions, key=lambda each: each[0]):
        for message in messages:
            # A session that stands in the history twice goes on counting: no name is given twice.
            numbers[session] += 1
            if message["content"].strip():
                name = f"{session}:{numbers[session]}"
                yield DialogueTurn(name, session, message["role"], message["content"], said_at)


def _time(text: str) -> datetime:
    """Read a time as in "2023/05/20 (Sat) 02:21"."""
    return datetime.strptime(_WEEKDAY.sub(" ", text).strip(), _TIME).replace(tzinfo=UTC)
