"""Read a conversation file: JSONL of turns, an OpenAI-style messages file, or a LoCoMo conversation.

Reads what it can: a line or message that is wrong is reported with its place and reason, and the rest is
read. Turns without a `message_id` get one from session, time, role, text and occurrence, so reading the same
file twice gives the same turns.
"""

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
from pydantic import ValidationError

from lamina.streams.codec import describe
from lamina.streams.errors import InvalidTurn
from lamina.streams.identity import message_id_in_file
from lamina.streams.placement import check
from lamina.streams.records import Turn

SHAPES = (
    "JSON lines with a `content` each, a JSON object with `messages` (or a JSON list of messages), "
    "or a LoCoMo conversation (`speaker_a`, `session_1`, …)"
)

LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
"""As in "1:56 pm on 8 May, 2023"; LoCoMo names no zone, read as UTC."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What could not be read: where (`line 3`, `message 7`, `file`) and why."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns of a file in its order, and what could not be read."""

    turns: tuple[Turn, ...]
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class DialogueTurn:
    """One turn of a data set; in LoCoMo's `text` stands the caption of a shared photo, too."""

    id: str
    session: str
    speaker: str
    text: str
    said_at: datetime


def read_conversation(data: bytes) -> Conversation:
    """Read a file's bytes as whichever of the known shapes they are."""
    data = data.removeprefix(BOM_UTF8)
    return _collect(_read(data)) if data.strip() else _faulty("the file is empty")


def _read(data: bytes) -> Iterator[Turn | Fault]:
    try:
        whole = orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        return _lines(data, f"not JSON as a whole ({exc}) nor line by line")
    if isinstance(whole, dict):
        if "session_1" in whole and "speaker_a" in whole:
            return _locomo(whole)
        if isinstance(whole.get("messages"), list):
            shared = {key: whole[key] for key in ("run_id", "agent_id", "timestamp") if key in whole}
            return _messages(whole["messages"], shared)
        if "content" in whole:
            return iter([_turn(whole, "line 1")])
    elif isinstance(whole, list) and (not whole or any(isinstance(each, dict) for each in whole)):
        return _messages(whole, {})
    return iter([_unknown("JSON of another shape")])


def _unknown(found: str) -> Fault:
    return Fault("file", f"unknown shape: {found}; expected {SHAPES}")


def _faulty(reason: str) -> Conversation:
    return Conversation((), (Fault("file", reason),))


def locomo_turns(raw: Mapping[str, Any]) -> Iterator[DialogueTurn]:
    """Yield the dialogue turns of a LoCoMo file in order; sessions without turns are passed over."""
    numbers = sorted(int(match[1]) for key in raw if (match := re.fullmatch(r"session_(\d+)", key)))
    for number in numbers:
        session = f"session_{number}"
        said_at = datetime.strptime(raw[f"{session}_date_time"], LOCOMO_TIME).replace(tzinfo=UTC)
        for turn in raw[session]:
            caption = turn.get("blip_caption")
            text = f"{turn['text']} [photo: {caption}]" if caption else turn["text"]
            yield DialogueTurn(turn["dia_id"], session, turn["speaker"], text, said_at)


def _locomo(raw: Mapping[str, Any]) -> Iterator[Turn | Fault]:
    try:
        for turn in locomo_turns(raw):
            yield Turn(
                content=turn.text,
                name=turn.speaker,
                timestamp=turn.said_at,
                run_id=turn.session,
                message_id=f"{raw['speaker_a']}+{raw['speaker_b']}:{turn.id}",
            )
    except (KeyError, ValueError, TypeError, AttributeError) as exc:
        yield Fault("file", f"not a LoCoMo conversation after all: {type(exc).__name__} {exc}")


def _lines(data: bytes, otherwise: str) -> Iterator[Turn | Fault]:
    """Read JSON lines; a file in which no line is an object is of an unknown shape, said once."""
    found = [(n, _parsed(line)) for n, line in enumerate(data.splitlines(), start=1) if line.strip()]
    if not any(isinstance(raw, dict) for _, raw in found):
        yield _unknown(otherwise)
        return
    for number, raw in found:
        yield _turn(raw, f"line {number}")


def _parsed(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        return exc


def _messages(messages: list[Any], shared: Mapping[str, Any]) -> Iterator[Turn | Fault]:
    for number, raw in enumerate(messages, start=1):
        message = {**shared, **raw, **_joined(raw.get("content"))} if isinstance(raw, dict) else raw
        yield _turn(message, f"message {number}")


def _joined(content: Any) -> dict[str, str]:
    """Join the text parts of a message whose content is a list of parts."""
    if not isinstance(content, list):
        return {}
    parts = (each.get("text", "") for each in content if isinstance(each, dict))
    return {"content": "\n".join(part for part in parts if part)}


def _turn(raw: Any, where: str) -> Turn | Fault:
    if isinstance(raw, orjson.JSONDecodeError):
        return Fault(where, f"not JSON: {raw}")
    if not isinstance(raw, dict):
        return Fault(where, f"a JSON {type(raw).__name__} where an object with `content` is expected")
    try:
        turn = Turn.model_validate({**raw, "id": None})
        check(turn)
    except ValidationError as exc:
        return Fault(where, describe(exc))
    except InvalidTurn as exc:
        return Fault(where, str(exc))
    return turn


def _collect(found: Iterator[Turn | Fault]) -> Conversation:
    turns: list[Turn] = []
    faults: list[Fault] = []
    said: Counter[tuple[object, ...]] = Counter()
    for each in found:
        if isinstance(each, Fault):
            faults.append(each)
            continue
        if each.message_id is not None:
            turns.append(each)
            continue
        session, speaker = each.run_id or "", each.name or each.role
        key = (session, each.timestamp, speaker, each.content)
        message_id = message_id_in_file(session, each.timestamp, speaker, each.content, said[key])
        said[key] += 1
        turns.append(each.model_copy(update={"message_id": message_id}))
    if not turns and not faults:
        return _faulty(f"no turns in it; expected {SHAPES}")
    return Conversation(tuple(turns), tuple(faults))
