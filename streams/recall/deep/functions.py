"""The functions that a program may call, and the judgement of what it passes to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lamina.streams.recall.deep.history import History
from lamina.streams.recall.deep.sandbox import Call, Fault

LOOKS = ("sessions", "session_dates", "search_history", "get_recent")
"""They look into the history (RLM-Memory §4.2), and cost nothing."""
DELEGATES = ("llm_query", "llm_query_parallel")
"""They ask the model (RLM-Memory §4.3)."""
FINAL = "FINAL"
NAMES = (*LOOKS, *DELEGATES, FINAL)

HITS = 50
"""Hits of a search where the program names no number."""
_MOST = 1000
"""Turns of one look."""
_LONGEST_QUERY = 500
_LONGEST_QUESTION = 2000
_LONGEST_ANSWER = 4000
_MOST_TEXTS = 1000
MOST_EVIDENCE = 20
"""Turns that an answer may rest on."""


class Misuse(Exception):
    """A call that cannot be answered: the program gets `fault` with these words, and may go on."""

    def __init__(self, fault: Fault, words: str) -> None:
        super().__init__(words)
        self.fault = fault
        self.words = words


@dataclass(frozen=True, slots=True)
class Look:
    """The answer to a look into the history."""

    value: Any
    """JSON types."""
    found: int
    query: str = ""


@dataclass(frozen=True, slots=True)
class Texts:
    """What a program gives to readers."""

    texts: tuple[str, ...]
    question: str
    alone: bool
    """Whether it was one text, whose finding is returned by itself."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a program calls final: an answer, empty for none, and the numbers of the turns that say it."""

    answer: str
    evidence: tuple[int, ...]


NOTHING = Claim("", ())
"""That memory does not hold an answer."""


def look(call: Call, history: History, most_characters: int) -> Look:
    """Answer one of `LOOKS`.

    Args:
        call: as the program made it.
        history: the only one there is.
        most_characters: of a session, or it comes in parts.

    Raises:
        Misuse: the arguments are not what the function takes.
    """
    if call.name == "search_history":
        query, most = _arguments(call, "query", "k", optional={"k": HITS})
        numbers = history.search(_text(call, "query", query, _LONGEST_QUERY), _count(call, "k", most))
        return Look([history.entry(number) for number in numbers], len(numbers), query)
    if call.name == "get_recent":
        (count,) = _arguments(call, "n")
        numbers = history.recent(_count(call, "n", count))
        return Look([history.entry(number) for number in numbers], len(numbers))
    _arguments(call)
    parts = history.parts(most_characters)
    return Look(
        [part.text if call.name == "sessions" else part.day for part in parts],
        len(parts),
    )


def texts_of(call: Call, question: str, most_characters: int) -> Texts:
    """Read the arguments of one of `DELEGATES`.

    Args:
        call: as the program made it.
        question: the user's, where the program names none.
        most_characters: of one text.

    Raises:
        Misuse: the arguments are not what the function takes, or a text is too long.
    """
    alone = call.name == "llm_query"
    given, asked = _arguments(call, "text" if alone else "texts", "question", optional={"question": None})
    texts = [given] if alone else given
    if not isinstance(texts, list | tuple):
        raise Misuse("TypeError", f"{call.name}: texts must be a list of str, not {_kind(texts)}")
    if len(texts) > _MOST_TEXTS:
        raise Misuse("ValueError", f"{call.name}: {len(texts)} texts, at most {_MOST_TEXTS} at once")
    for text in texts:
        _text(call, "a text", text, most_characters)
    if asked is not None:
        question = _text(call, "question", asked, _LONGEST_QUESTION)
    return Texts(tuple(texts), question, alone)


def claim_of(call: Call) -> Claim:
    """Read the arguments of `FINAL`. A number counts as text, and one number as a list of one.

    Raises:
        Misuse: the arguments are not what the function takes.
    """
    answer, evidence = _arguments(call, "answer", "evidence", optional={"evidence": ()})
    if answer is None:
        answer = ""
    if isinstance(answer, int | float):
        try:
            answer = str(answer)
        except ValueError as exc:  # an int beyond the interpreter's limit of digits
            raise Misuse("ValueError", "FINAL: the number is too long") from exc
    text = _text(call, "answer", answer, _LONGEST_ANSWER).strip()
    if isinstance(evidence, int | str):
        evidence = [evidence]
    if not isinstance(evidence, list | tuple | set | frozenset):
        raise Misuse("TypeError", f"FINAL: evidence must be a list of turn numbers, not {_kind(evidence)}")
    if len(evidence) > MOST_EVIDENCE:
        raise Misuse("ValueError", f"FINAL: {len(evidence)} turns as evidence, at most {MOST_EVIDENCE}")
    return Claim(text, tuple(dict.fromkeys(map(_number, evidence))))


def _number(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:  # noqa: PLR2004
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Misuse("TypeError", f"FINAL: evidence must be numbers of turns (n), not {_kind(value)}")
    return value


def _arguments(call: Call, *names: str, optional: Mapping[str, Any] | None = None) -> list[Any]:
    """Bind a call's arguments to the parameters of the function, in their order."""
    given = dict(zip(names, call.args, strict=False))
    unknown = [name for name in call.kwargs if name not in names or name in given]
    values = {**(optional or {}), **given, **call.kwargs}
    missing = [name for name in names if name not in values]
    if len(call.args) > len(names) or unknown or missing:
        raise Misuse("TypeError", f"{call.name} takes ({', '.join(names)})")
    return [values[name] for name in names]


def _text(call: Call, name: str, value: Any, most: int) -> str:
    if not isinstance(value, str):
        raise Misuse("TypeError", f"{call.name}: {name} must be a str, not {_kind(value)}")
    if len(value) > most:
        raise Misuse(
            "ValueError", f"{call.name}: {name} has {len(value)} characters, at most {most}: split it"
        )
    return value


def _count(call: Call, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Misuse("TypeError", f"{call.name}: {name} must be an int, not {_kind(value)}")
    if not 1 <= value <= _MOST:
        raise Misuse("ValueError", f"{call.name}: {name} must be 1 to {_MOST}")
    return value


def _kind(value: Any) -> str:
    return type(value).__name__


def numbered(finding: str, turns: Sequence[int]) -> str:
    """Return a finding with its turns in brackets behind it, as programs get it."""
    return (
        " ".join([finding.strip(), *(f"[{number}]" for number in dict.fromkeys(turns))])
        if finding.strip()
        else ""
    )
