"""Read a model's reply while it passes: server-sent events go on line by line, and are put together aside."""

from collections.abc import Mapping
from typing import Any

import orjson

from lamina.query.chat_budget import usage_of
from lamina.streams.topics import MAX_CONTENT_BYTES

DONE = b"data: [DONE]\n\n"

MAX_LINE_BYTES = 8 * 1024 * 1024
"""A line longer than this passes unread, and its reply is not remembered."""

_DATA = b"data:"


class ReplyReader:
    """The words of one streamed reply.

    `text` is None until the reply is whole, and for one that memory does not take: of several choices (only
    the client knows which it keeps), without words, longer than a turn may be, or not of the known form.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._words: list[str] = []
        self._size = 0
        self._unread = False
        self._finished = False
        self.done = False
        """Whether the stream's end marker came."""
        self.usage: int | None = None
        """What the endpoint says that the chat cost, in tokens."""
        self.characters = 0
        """Of the words that came, of all choices."""

    @property
    def text(self) -> str | None:
        """The reply's words, once it is whole."""
        text = "".join(self._words)
        return text if (self.done or self._finished) and not self._unread and text.strip() else None

    def feed(self, chunk: bytes) -> bytes:
        """Take bytes as they came and return those that may go on: whole lines before the end marker."""
        if self.done:
            return b""
        *lines, rest = (self._rest + chunk).split(b"\n")
        passed: list[bytes] = []
        self._rest = rest
        for line in lines:
            if self._reads_end(line):
                self._rest = b""
                return b"".join(passed)
            passed.append(line + b"\n")
        if len(rest) > MAX_LINE_BYTES:
            self._unread, self._rest = True, b""
            passed.append(rest)
        return b"".join(passed)

    def flush(self) -> bytes:
        """Return what is left when the stream ends without its marker."""
        rest, self._rest = self._rest, b""
        return b"" if self._reads_end(rest) else rest

    def _reads_end(self, line: bytes) -> bool:
        if not line.startswith(_DATA):
            return False
        data = line[len(_DATA) :].strip()
        if data == b"[DONE]":
            self.done = True
        else:
            self._read(data)
        return self.done

    def _read(self, data: bytes) -> None:
        try:
            event = orjson.loads(data)
        except orjson.JSONDecodeError:
            self._unread = True
            return
        self.usage = usage_of(event) or self.usage
        choices = event.get("choices") if isinstance(event, dict) else None
        if not isinstance(choices, list):
            self._unread = self._unread or not isinstance(event, dict) or "error" in event
            return
        for choice in choices:
            if not isinstance(choice, dict):
                self._unread = True
                return
            delta = choice.get("delta")
            words = delta.get("content") if isinstance(delta, dict) else None
            words = words if isinstance(words, str) else ""
            self.characters += len(words)
            self._unread = self._unread or choice.get("index", 0) != 0
            if not self._unread:
                self._finished = self._finished or choice.get("finish_reason") is not None
                self._add(words)

    def _add(self, words: str) -> None:
        self._size += len(words.encode(errors="surrogatepass"))
        if self._size > MAX_CONTENT_BYTES:
            self._unread = True
            self._words.clear()
        else:
            self._words.append(words)


def whole_reply(body: bytes) -> tuple[str | None, int | None, int]:
    """Read a reply that came at once.

    Returns:
        Its words, None for one that memory does not take; what the endpoint says that it cost, in tokens;
        the characters of its words, of all choices.
    """
    try:
        reply = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None, None, 0
    choices = reply.get("choices") if isinstance(reply, dict) else None
    said = [_words_of(choice) for choice in choices] if isinstance(choices, list) else []
    text = said[0] if len(said) == 1 else ""
    fits = text.strip() and len(text.encode()) <= MAX_CONTENT_BYTES
    return text if fits else None, usage_of(reply), sum(map(len, said))


def _words_of(choice: object) -> str:
    message: Any = choice.get("message") if isinstance(choice, Mapping) else None
    words = message.get("content") if isinstance(message, Mapping) else None
    return words if isinstance(words, str) else ""
