"""LoCoMo, read from where it lies: a folder with one conversation a file, or the public single file.

Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents" (ACL 2024). The files are
licensed CC BY-NC 4.0: they are read where they lie and never copied here. A turn's text is what was said
plus, where a photo was shared, " [photo: CAPTION]" with the data set's BLIP caption: the photo itself is not
part of the release, and questions ask about it. Times are those of the sessions, read as UTC.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from lamina.bench.conversation import Conversation, Question
from lamina.streams.conversations import locomo_turns
from lamina.streams.errors import Misconfigured

ANSWERABLE = (1, 2, 3, 4)
"""Question categories with an answer: multi-hop, temporal, open-domain, single-hop; 5 has none."""

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


def load_locomo(data: Path) -> list[Conversation]:
    """Read a folder's `*.json`, ordered by name, or one file.

    A file holds one conversation, named by its file name, or, as the public `locomo10.json`, a list of
    samples; these are named by their `sample_id` without its "conv-", so that a conversation has the same
    name in both forms.

    Raises:
        Misconfigured: there is no LoCoMo file, or a file is not one.
    """
    files = [data] if data.is_file() else sorted(data.glob("*.json"))
    if not files:
        raise Misconfigured(
            f"{data} holds no LoCoMo file: pass a folder with one JSON file a conversation, or locomo10.json"
        )
    return [each for file in files for each in _read(file)]


def conversations_of(raw: object, file: Path) -> list[Conversation]:
    """Return the conversations of a file's JSON, in either form.

    Args:
        raw: what the file holds.
        file: names the conversation where the JSON does not, and the file in errors.

    Raises:
        Misconfigured: it is not LoCoMo.
    """
    try:
        return [_conversation(name, said, asked) for name, said, asked in _samples(raw, file)]
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise Misconfigured(f"{file} is not a LoCoMo conversation: {exc!r}") from exc


def _read(file: Path) -> list[Conversation]:
    try:
        raw = orjson.loads(file.read_bytes())
    except orjson.JSONDecodeError as exc:
        raise Misconfigured(f"{file} is not a LoCoMo conversation: {exc!r}") from exc
    return conversations_of(raw, file)


def _samples(raw: Any, file: Path) -> Iterator[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    """Yield the name of each conversation, what was said in it, and what is asked of it."""
    if isinstance(raw, dict):
        yield file.stem, raw, raw["qa"]
        return
    if not raw:
        raise ValueError("an empty list")
    for number, sample in enumerate(raw, 1):
        name = str(sample.get("sample_id", number)).removeprefix("conv-")
        yield name, sample["conversation"], sample["qa"]


def _conversation(name: str, said: dict[str, Any], asked: list[dict[str, Any]]) -> Conversation:
    turns = tuple(locomo_turns(said))
    if not turns:
        raise ValueError(f"conversation {name} has no turns")
    known = {turn.id for turn in turns}
    cleaned = [_question(item, known) for item in asked]
    return Conversation(
        id=name,
        speakers=(said["speaker_a"], said["speaker_b"]),
        turns=turns,
        questions=tuple(question for question, _ in cleaned),
        dropped_evidence=sum(dropped for _, dropped in cleaned),
    )


def _question(item: dict[str, Any], known: set[str]) -> tuple[Question, int]:
    named = [
        f"D{int(session)}:{int(turn)}"
        for entry in item.get("evidence") or ()
        for session, turn in _EVIDENCE.findall(str(entry))
    ]
    evidence = tuple(dict.fromkeys(turn for turn in named if turn in known))
    question = Question(
        text=str(item["question"]),
        answer=str(item.get("answer", item.get("adversarial_answer", ""))),
        category=int(item["category"]),
        evidence=evidence,
    )
    return question, sum(turn not in known for turn in named)
