"""What a chat-completions server accepts of a request, found out by what it refuses.

Servers that call themselves OpenAI-compatible differ in three things: whether a reply's form can be
demanded (JSON schema, any JSON, not at all), what the limit of a reply is called, and whether a temperature
may be set.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlsplit

import orjson
from openai import APIStatusError, pydantic_function_tool
from pydantic import BaseModel

from lamina.sinks.llm_reading import Rejected, again, shown
from lamina.streams.llm import Prompt

OPENAI_URL = "https://api.openai.com/v1"
"""OpenAI's own endpoint; named, so that no environment variable of the client's redirects memory."""

_REFUSALS = frozenset({400, 404, 422, 501})
"""What servers answer to a part of a request that they do not know."""

_FORM_WORDS = ("response_format", "json_schema", "json_object", "structured output", "schema", "grammar")
_TOO_LONG_OR_UNFIT = (
    "context length",
    "context_length",
    "context window",
    "content filter",
    "content_filter",
    "content management policy",
    "content_policy",
    "too long",
)
_PAYLOAD_TOO_LARGE = 413


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to write a request; every refusal gives the next simpler one."""

    form: Literal["json_schema", "json_object", "text"] = "json_schema"
    """How the reply's form is demanded; but for the first, the system message says the schema in words."""
    limits: tuple[str, ...] = ("max_tokens", "max_completion_tokens")
    """Names of the reply's limit that were not refused yet; the first is sent."""
    temperature: bool = True
    thinking_tokens: int = 0
    """Added to every reply's limit: what a model may think before it replies."""

    @classmethod
    def towards(cls, url: str, thinking_tokens: int) -> "Dialect":
        """Return the dialect to begin with: OpenAI's models refuse `max_tokens`, others know it best."""
        if urlsplit(url).hostname == urlsplit(OPENAI_URL).hostname:
            limits = ("max_completion_tokens", "max_tokens")
            return cls(limits=limits, thinking_tokens=thinking_tokens)
        return cls(thinking_tokens=thinking_tokens)

    def request(self, prompt: Prompt[Any], rejected: Rejected | None) -> dict[str, Any]:
        """Return the body of a request, without the model: messages, form, limit and temperature."""
        name, schema = f"{prompt.purpose}_v{prompt.version}", strict_schema(prompt.reply)
        system, user = (message["content"] for message in prompt.messages)
        if self.form != "json_schema":
            system += (
                f"\n\nReply with one JSON object, {name}, and nothing else. Its JSON schema:\n{shown(schema)}"
            )
        if rejected:
            said = (
                "" if self.form != "json_schema" else shown(schema)
            )  # its server may not have read the schema
            system, user = system + again(said), shown({**prompt.data, **rejected.quoted})
        body: dict[str, Any] = {
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]
        }
        if self.form == "json_schema":
            demanded = {"name": name, "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": demanded}
        elif self.form == "json_object":
            body["response_format"] = {"type": "json_object"}
        if self.limits:
            body[self.limits[0]] = prompt.max_tokens + self.thinking_tokens
        if self.temperature:
            body["temperature"] = 0
        return body

    def after(self, refusal: APIStatusError, *, proved: bool) -> "Dialect | None":
        """Return the dialect to try after a refusal; None where no other way to write the request would help.

        Args:
            refusal: what the server answered.
            proved: whether it has answered a request of this dialect before. If so, only what the refusal
                names is given up; if not, one that names nothing is taken to mean the reply's form.
        """
        if refusal.status_code not in _REFUSALS or is_of_the_prompt(refusal) or _is_of_the_model(refusal):
            return None
        named = _named(refusal)
        if self.temperature and "temperature" in named:
            return replace(self, temperature=False)
        if self.limits and self.limits[0] in named:
            return replace(self, limits=self.limits[1:])
        if self.form != "text" and (any(word in named for word in _FORM_WORDS) or not proved):
            return replace(self, form="json_object" if self.form == "json_schema" else "text")
        return None


def strict_schema(form: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a reply as strict structured output wants it (closed, all required)."""
    function = pydantic_function_tool(form)["function"]
    return dict(function["parameters"])


def is_of_the_prompt(refusal: APIStatusError) -> bool:
    """Tell whether this prompt was refused (too long, filtered), so that another one may pass."""
    if refusal.status_code == _PAYLOAD_TOO_LARGE:
        return True
    words = f"{refusal.code} {refusal.message}".lower()
    return any(word in words for word in _TOO_LONG_OR_UNFIT)


def _is_of_the_model(refusal: APIStatusError) -> bool:
    return refusal.code == "model_not_found" or "model not found" in refusal.message.lower()


def _named(refusal: APIStatusError) -> str:
    """Return the words of a refusal that may name a parameter, without what it repeats of the request."""
    if refusal.param:
        return refusal.param
    body = refusal.body
    if isinstance(body, Mapping) and isinstance(body.get("detail"), list):  # FastAPI's validation errors
        places = [item.get("loc") for item in body["detail"] if isinstance(item, Mapping)]
        return orjson.dumps(places, default=str).decode().lower()
    return f"{refusal.message} {body if isinstance(body, str) else ''}".lower()
