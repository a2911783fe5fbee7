"""Read a chat request: what is ours of it, and what is the upstream's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from fastapi import Request

from lamina.query.chat_history import Message, cleaned
from lamina.query.errors import Refused
from lamina.streams.errors import WrongKey
from lamina.streams.namespace import Namespace, namespace_of

MAX_BODY_BYTES = 32 * 1024 * 1024
"""Histories with pictures are large; one larger than this is refused."""

USER_HEADER = "X-Lamina-User"
RUN_HEADER = "X-Lamina-Run"
MEMORY_HEADER = "X-Lamina-Memory"
RUN_METADATA = "lamina_run_id"
DEFAULT_MODEL = "lamina"
"""A request for this model gets the configured one."""

_LONGEST_RUN = 512
_MEMORY = {"": (True, True), "on": (True, True), "read": (True, False), "off": (False, False)}


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose memory a chat reads and writes."""

    tenant: str
    user: str
    namespace: Namespace
    run: str | None

    @property
    def conversation(self) -> str:
        """What tells this conversation apart from others."""
        return f"{self.namespace}\n{self.run or ''}"


@dataclass(frozen=True, slots=True)
class Chat:
    """One chat request."""

    body: Mapping[str, Any]
    """All its fields as sent, but for what was addressed to Lamina; `messages` is to be taken from below."""
    messages: Sequence[Message]
    """Its history, without recalled blocks that a client sent back."""
    streamed: bool
    whose: Whose | None
    """None where the request wants no memory."""
    writes: bool
    """Whether what passes is remembered."""


async def read_chat(request: Request, tenant: str, model: str) -> Chat:
    """Read a request.

    Args:
        request: with the body of a chat completion and Lamina's headers.
        tenant: from the credential.
        model: asked for where the request names none.

    Raises:
        Refused: 400 for a body that is no chat request or names no user, 413 for one that is too large.
    """
    body = await _json(request)
    messages = body.get("messages")
    if (
        not isinstance(messages, list)
        or not messages
        or not all(isinstance(message, dict) for message in messages)
    ):
        raise Refused(400, "invalid_request", "send `messages`: a list of objects", field="messages")
    reads, writes = _memory(request)
    whose = _whose(request, body, tenant) if reads else None
    sent = {name: value for name, value in body.items() if name != "messages"}
    if sent.get("model") in {None, "", DEFAULT_MODEL} and model:
        sent["model"] = model
    _without_ours(sent)
    return Chat(sent, cleaned(messages), body.get("stream") is True, whose, writes)


async def _json(request: Request) -> dict[str, Any]:
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > MAX_BODY_BYTES:
            raise Refused(413, "content_too_large", f"at most {MAX_BODY_BYTES} bytes are allowed")
    try:
        body = orjson.loads(read)
    except orjson.JSONDecodeError as exc:
        raise Refused(400, "invalid_request", f"the body is not JSON: {exc}") from exc
    if not isinstance(body, dict):
        raise Refused(400, "invalid_request", "the body is not a JSON object")
    return body


def _memory(request: Request) -> tuple[bool, bool]:
    asked = _header(request, MEMORY_HEADER).lower()
    if asked not in _MEMORY:
        raise Refused(
            400, "invalid_request", f"{MEMORY_HEADER}: allowed are on, read and off", field=MEMORY_HEADER
        )
    return _MEMORY[asked]


def _whose(request: Request, body: Mapping[str, Any], tenant: str) -> Whose:
    user = _header(request, USER_HEADER) or body.get("user")
    if not isinstance(user, str) or not user:
        raise Refused(
            400,
            "missing_user",
            f"whose memory? Send the field `user` or the header {USER_HEADER}; without memory: "
            f"{MEMORY_HEADER}: off",
            field="user",
        )
    try:
        namespace = namespace_of(tenant, user)
    except (WrongKey, UnicodeEncodeError) as exc:
        raise Refused(400, "invalid_user", "the user has more than 768 bytes of UTF-8", field="user") from exc
    metadata = body.get("metadata")
    run = _header(request, RUN_HEADER) or (metadata.get(RUN_METADATA) if isinstance(metadata, dict) else None)
    if run is not None and (not isinstance(run, str) or not 0 < len(run) <= _LONGEST_RUN):
        sentence = f"{RUN_METADATA}: send a text of 1 to {_LONGEST_RUN} characters"
        raise Refused(400, "invalid_request", sentence, field="metadata")
    return Whose(tenant, user, namespace, run)


def _without_ours(sent: dict[str, Any]) -> None:
    """Drop the run from the metadata: OpenAI refuses metadata of what it does not store."""
    metadata = sent.get("metadata")
    if isinstance(metadata, dict) and RUN_METADATA in metadata:
        others = {name: value for name, value in metadata.items() if name != RUN_METADATA}
        if others:
            sent["metadata"] = others
        else:
            del sent["metadata"]


def _header(request: Request, name: str) -> str:
    """Return a header's text; names of users are sent as UTF-8, which HTTP hands on as Latin-1."""
    value = request.headers.get(name, "")
    try:
        return value.encode("latin-1").decode()
    except UnicodeDecodeError:
        return value
