"""Read a model's reply while it passes: server-sent events go on line by line, and are put together aside."""

from collections.abc import Mapping
from typing import Any

import orjson

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
        elif not self._unread:
            self._read(data)
        return self.done

    def _read(self, data: bytes) -> None:
        try:
            event = orjson.loads(data)
        except orjson.JSONDecodeError:
            self._unread = True
            return
        choices = event.get("choices") if isinstance(event, dict) else None
        if not isinstance(choices, list):
            self._unread = self._unread or not isinstance(event, dict) or "error" in event
            return
        for choice in choices:
            if not isinstance(choice, dict) or choice.get("index", 0) != 0:
                self._unread = True
                return
            self._finished = self._finished or choice.get("finish_reason") is not None
            self._add(choice.get("delta"))

    def _add(self, delta: object) -> None:
        words = delta.get("content") if isinstance(delta, dict) else None
        if not isinstance(words, str):
            return
        self._size += len(words.encode(errors="surrogatepass"))
        if self._size > MAX_CONTENT_BYTES:
            self._unread = True
            self._words.clear()
        else:
            self._words.append(words)


def whole_reply(body: bytes) -> str | None:
    """Return the words of a reply that came at once; None for one that memory does not take."""
    try:
        reply = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], Mapping):
        return None
    message: Any = choices[0].get("message")
    words = message.get("content") if isinstance(message, Mapping) else None
    fits = isinstance(words, str) and words.strip() and len(words.encode()) <= MAX_CONTENT_BYTES
    return str(words) if fits else None
