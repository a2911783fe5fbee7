"""What a chat-completions request asks, read as the test server's only clues: the request itself."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lamina.sinks.llm_reading import REJECTED

_IN_WORDS = re.compile(r"Reply with one JSON object, (?P<name>\w+), and nothing else\. Its JSON schema:\n")
_NAME = re.compile(r"(?P<purpose>\w+)_v(?P<version>\d+)")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, taken apart."""

    purpose: str
    """Empty where neither response_format nor the system message names it."""
    version: int
    form: str
    """json_schema, json_object or text."""
    schema: Mapping[str, Any]
    system: str
    user: str
    data: Mapping[str, Any]
    """The user message's JSON, without a reply that was sent back."""
    rejected: Mapping[str, Any] | None
    """The reply that was sent back: this request is a repair."""


def asked_of(body: Mapping[str, Any]) -> Asked:
    """Take a request apart.

    Raises:
        ValueError: it has not one system and one user message, or the user's is not one JSON object.
    """
    system, user = body["messages"]
    if (system["role"], user["role"]) != ("system", "user"):
        raise ValueError("expected one system and one user message")
    data = json.loads(user["content"])
    rejected = data.pop(REJECTED, None)
    form = body.get("response_format", {"type": "text"})
    name, schema = _form(form, system["content"])
    match = _NAME.fullmatch(name)
    return Asked(
        purpose=match["purpose"] if match else "",
        version=int(match["version"]) if match else 0,
        form=form["type"],
        schema=schema,
        system=system["content"],
        user=user["content"],
        data=data,
        rejected=rejected,
    )


def _form(form: Mapping[str, Any], system: str) -> tuple[str, Mapping[str, Any]]:
    if form["type"] == "json_schema":
        return form["json_schema"]["name"], form["json_schema"]["schema"]
    match = _IN_WORDS.search(system)
    if match is None:
        return "", {}
    schema, _ = json.JSONDecoder().raw_decode(system, match.end())
    return match["name"], schema
