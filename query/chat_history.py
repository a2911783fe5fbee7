"""What a chat request says that memory may keep, and how each message is known again. Pure.

Clients send the whole history with every call; some cut its beginning off, edit or regenerate its end, or
reword what the model said (they drop its thinking). Two kinds of names make a message known all the same:

- its *id* is a digest of the conversation, of everything said before it and of its own words. The same
  request sent again gives the same ids; the same sentence said twice gives two.
- its *marks* are digests of what stands just before it: a user's message by its words and the user's message
  before it (`near`), or by its words only (`alone`, for where the history was cut just there); a reply by the
  marks of the message that it answers and its number among the replies to that. They outlive a history that
  is cut and a reply that comes back reworded.

Ours; RLM-Memory §4.1 keeps its turns in the process and needs neither.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

from lamina.streams.topics import MAX_CONTENT_BYTES

OPEN = "<lamina-memory>"
CLOSE = "</lamina-memory>"
"""They enclose what was recalled; what stands between them is never remembered, whoever sends it."""

SYSTEM_ROLES = frozenset({"system", "developer"})

_THINK, _THOUGHT = "<think>", "</think>"
_ID = "chat:"
_LONGEST_NAME = 256

Message = Mapping[str, Any]
"""A message of OpenAI's chat completions, as the client sent it."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message with words of a user or of the model."""

    role: Literal["user", "assistant"]
    text: str
    name: str | None
    index: int
    """Its place among all messages of the request."""
    id: str
    marks: "Marks"


@dataclass(frozen=True, slots=True)
class Marks:
    """By what a message is known again in a history that is cut or reworded."""

    near: str
    alone: str
    cut: bool
    """Whether nothing stands before it that `near` could rest on: then `alone` is looked for."""

    @property
    def sought(self) -> str:
        """The one to look for."""
        return self.alone if self.cut else self.near

    def reply(self, number: int) -> "Marks":
        """Return the marks of the `number`-th reply to this message, from 0."""
        near, alone = (_digest("reply", mark, str(number)) for mark in (self.near, self.alone))
        return Marks(near, alone, self.cut)


def spoken_in(conversation: str, messages: Sequence[Message]) -> list[Spoken]:
    """Return what users and the model said, in order; instructions and tools say nothing to remember.

    Nor does the model before any user: that is a greeting, or a reply whose question was cut off.

    Args:
        conversation: tells conversations apart: the namespace and the caller's name for this one.
        messages: the history of one request.
    """
    spoken: list[Spoken] = []
    last_id = _digest("conversation", conversation)
    marks: Marks | None = None
    asked, replies = "", 0
    seen: Counter[tuple[str, str]] = Counter()
    for index, message in enumerate(messages):
        role, text = message.get("role"), words_of(message)
        if role == "user" and text:
            words = " ".join(text.split())
            near = _digest("near", conversation, asked, words, str(seen[asked, words]))
            own = marks = Marks(near, _digest("alone", conversation, words), marks is None)
            seen[asked, words] += 1
            asked, replies = words, 0
            one = _spoken("user", text, message, index, last_id, own)
        elif role == "assistant" and text and marks is not None:
            one = _spoken("assistant", text, message, index, last_id, marks.reply(replies))
            replies += 1
        else:
            last_id = _digest(last_id, text) if role == "assistant" and text else last_id
            continue
        spoken.append(one)
        last_id = one.id
    return spoken


def fresh_in(spoken: Sequence[Spoken], messages: Sequence[Message]) -> Spoken | None:
    """Return the message that this request is about: the last one, where a user says it."""
    if spoken and spoken[-1].role == "user" and spoken[-1].index == len(messages) - 1:
        return spoken[-1]
    return None


def reply_to(spoken: Sequence[Spoken], text: str, after: str | None = None) -> Spoken | None:
    """Return the model's reply to a request, known as it will be when the client sends it back.

    Args:
        spoken: what the request said.
        text: the reply's words.
        after: the id under which the last message was remembered, where that is not its own.

    Returns:
        None where the reply has no words, or answers nobody's.
    """
    message = {"content": text}
    words = words_of(message)
    users = [number for number, one in enumerate(spoken) if one.role == "user"]
    if not words or not users:
        return None
    marks = spoken[users[-1]].marks.reply(len(spoken) - 1 - users[-1])
    return _spoken("assistant", words, message, len(spoken), after or spoken[-1].id, marks)


def fitting(some: Iterable[Spoken]) -> list[Spoken]:
    """Return the messages that a turn can hold: of at most 256 KB."""
    return [one for one in some if len(one.text.encode()) <= MAX_CONTENT_BYTES]


def again(message_id: str, period: str) -> str:
    """Return the id of a message whose very request came before, in an earlier period of time."""
    return _ID + _digest("again", message_id, period)


def words_of(message: Message) -> str:
    """Return a message's words without what was recalled into it, and without the model's thinking."""
    text = without_recalled(text_of(message)).strip()
    if text.startswith(_THINK) and _THOUGHT in text:
        text = text.partition(_THOUGHT)[2].strip()
    return text


def text_of(message: Message) -> str:
    """Return a message's text: its content, or the text parts of it, a line each."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, dict))
    return "\n".join(part for part in parts if isinstance(part, str))


def without_recalled(text: str) -> str:
    """Return a text without its blocks of recalled memory; a tag without its partner is left as it is."""
    kept: list[str] = []
    place = 0
    while (start := text.find(OPEN, place)) >= 0 and (end := text.find(CLOSE, start)) >= 0:
        kept.append(text[place:start])
        place = end + len(CLOSE)
    return "".join((*kept, text[place:].lstrip("\n") if kept else text))


def cleaned(messages: Iterable[Message]) -> list[Message]:
    """Return the messages without recalled blocks that a client sent back; the others stay as they are."""
    return [_cleaned(message) if OPEN in text_of(message) else message for message in messages]


def _cleaned(message: Message) -> Message:
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": without_recalled(content)}
    parts = [
        {**part, "text": without_recalled(part["text"])}
        if isinstance(part, dict) and isinstance(part.get("text"), str)
        else part
        for part in content
    ]
    return {**message, "content": [part for part in parts if part != {"type": "text", "text": ""}]}


def _spoken(
    role: Literal["user", "assistant"], text: str, message: Message, index: int, last_id: str, marks: Marks
) -> Spoken:
    name = message.get("name")
    name = name[:_LONGEST_NAME] if isinstance(name, str) and name else None
    return Spoken(role, text, name, index, _ID + _digest(last_id, role, name or "", text), marks)


def _digest(*parts: str) -> str:
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()
