"""A chat-completions reply as it comes over the wire: its text, why it may be unfit, and what it cost."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, ValidationError

_LONGEST_MODEL = 200
_LONGEST_REFUSAL = 300


class NotACompletion(ValueError):
    """The body of a reply is not a chat completion; the message is its beginning, or the error it holds."""

    def __init__(self, message: str, *, says_error: bool = False) -> None:
        super().__init__(message)
        self.says_error = says_error
        """Whether it reports a fault, as gateways do whose own reply went well."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model wrote and what the server says of it."""

    text: str
    model: str
    """Empty where the server names none."""
    fault: str | None
    """Why the text may not be whole: cut off, filtered, refused."""
    usage: tuple[int, int] | None
    """Tokens in and out; None where the server does not say."""


class _Message(BaseModel):
    content: Any = None
    refusal: Any = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: Any = None


class _Usage(BaseModel):
    prompt_tokens: int = Field(gt=0)
    completion_tokens: int = Field(ge=0)


class _Body(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    model: Any = None
    usage: Any = None


def answer_of(body: Any) -> Answer:
    """Read the decoded body of a reply.

    Raises:
        NotACompletion: it is something else.
    """
    try:
        reply = _Body.model_validate(body)
    except ValidationError as exc:
        error = body.get("error") if isinstance(body, dict) else None
        raise NotACompletion(str(error or body)[:_LONGEST_REFUSAL], says_error=error is not None) from exc
    choice = reply.choices[0]
    content = choice.message.content
    return Answer(
        text=_storable(content) if isinstance(content, str) else "",
        model=_storable(reply.model)[:_LONGEST_MODEL] if isinstance(reply.model, str) else "",
        fault=_fault(choice),
        usage=_usage(reply.usage),
    )


def _fault(choice: _Choice) -> str | None:
    refusal = choice.message.refusal
    if isinstance(refusal, str) and refusal:
        return f"the model refused: {_storable(refusal)[:_LONGEST_REFUSAL]}"
    if choice.finish_reason == "length":
        return "cut off at the most tokens that a reply may have"
    if choice.finish_reason == "content_filter":
        return "cut off by a content filter"
    return None


def _usage(reported: Any) -> tuple[int, int] | None:
    try:
        usage = _Usage.model_validate(reported)
    except ValidationError:
        return None
    return usage.prompt_tokens, usage.completion_tokens


def _storable(text: str) -> str:
    """Return text that can be encoded: JSON may hold half a surrogate pair, UTF-8 may not."""
    return text.encode("utf-8", "replace").decode("utf-8")
