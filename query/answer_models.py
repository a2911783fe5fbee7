"""Requests and responses of the routes that write from memory: context and answer."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field, StrictInt, model_validator

from lamina.query.deep_models import DeepCost
from lamina.query.models import (
    MAX_CONTEXT_TOKENS,
    MAX_MESSAGES,
    MAX_QUERY_CHARACTERS,
    Answering,
    AsOf,
    Chosen,
    Name,
    Parameters,
    Question,
    Request,
    Said,
    UserId,
)
from lamina.streams.recall.options import Options
from lamina.streams.records import Role, Unit


class ChatMessage(Request):
    """A message of the conversation that context is wanted for."""

    role: Role
    content: str
    name: Name | None = None


class ContextRequest(Request):
    """A request for one block of memories to put into a prompt."""

    query: Question | None = None
    messages: list[ChatMessage] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_MESSAGES,
        description="instead of a query: the last message of the user is taken, cut at 32,768 characters",
    )
    user_id: UserId
    max_tokens: StrictInt = Field(
        default=1000, ge=1, le=MAX_CONTEXT_TOKENS, description="most tokens, estimated as UTF-8 bytes ÷ 4"
    )
    strategy: Chosen = "auto"
    options: Parameters = Field(default_factory=Options)
    as_of: AsOf = None
    superseded: Literal["mark", "leave_out"] = Field(
        default="mark",
        description="what holds no longer: marked with its end and what holds now, or, of facts and other "
        "derived memories, replaced by what holds now",
    )
    dates: Literal["resolved", "as_said"] = Field(
        default="resolved", description="`resolved`: a relative date is followed by what it means"
    )

    @model_validator(mode="after")
    def _one_question(self) -> "ContextRequest":
        if (self.query is None) == (self.messages is None):
            raise ValueError("send either query or messages")
        if not self.question.strip():
            raise ValueError("messages hold no text to search with")
        return self

    @property
    def question(self) -> str:
        """What to search with."""
        if self.query is not None:
            return self.query
        messages = self.messages or []
        said = [message.content for message in messages if message.role == "user"]
        return (said or [messages[-1].content])[-1][:MAX_QUERY_CHARACTERS]


class Citation(BaseModel):
    """A memory that the block cites."""

    id: UUID
    kind: str
    speaker: str
    said_at: datetime


def citation(unit: Unit) -> Citation:
    """Return a memory as a response cites it."""
    return Citation(id=unit.id, kind=unit.kind, speaker=unit.speaker, said_at=unit.said_at)


class ContextResponse(BaseModel):
    """One prompt-ready block."""

    context: str = Field(description="one memory a line, each cited as `[date · speaker · id]`")
    citations: list[Citation] = Field(description="the memories of the block, in its order")
    tokens: int = Field(description="its size, estimated as UTF-8 bytes ÷ 4")


Engine = Literal["extractive", "model"]


class Ask(Request):
    """A question to be answered from memory."""

    query: Question
    user_id: UserId
    strategy: Answering = "auto"
    options: Parameters = Field(default_factory=Options)
    as_of: AsOf = None
    top_k: StrictInt | None = Field(default=None, ge=1, description="most memories to answer from")
    max_tokens: StrictInt = Field(
        default=3000,
        ge=1,
        le=MAX_CONTEXT_TOKENS,
        description="most tokens of memories that the model reads, estimated as UTF-8 bytes ÷ 4",
    )
    engine: Engine | None = Field(
        default=None,
        description="who answers: rules, or the chat model; without it the model where the service has one",
    )
    fallback: bool = Field(
        default=False,
        description="answer by rules where the model does not answer; the response says so. Without it "
        "that is an error",
    )
    stream: bool = Field(
        default=False, description="with `deep`: its steps as server-sent events, and the answer last"
    )


class AnswerResponse(BaseModel):
    """An answer and what it rests on."""

    answer: str = Field(description="`Not in memory.` where it is not grounded")
    grounded: bool = Field(description="false: memory does not hold an answer, and the text says so")
    engine: str = Field(description="what wrote the answer: `extractive`, or the model's name")
    evidence: list[Said] = Field(description="the turns that the cited memories are or rest on")
    cited: list[Citation] = Field(
        default_factory=list, description="the memories that the answer cites: turns, facts, episodes, …"
    )
    deep: DeepCost | None = Field(default=None, description="with `deep`: what the reading took")
    fallback: str | None = Field(
        default=None, description="why rules answered in the model's place", examples=["model_unavailable"]
    )
