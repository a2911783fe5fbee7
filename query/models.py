"""Requests and responses of the HTTP service.

Requests are strict: an unknown field is an error that names it, so a typo never passes for a setting, and
a tenant can never come from a body. Responses may gain fields.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StringConstraints,
    model_validator,
)

from lamina.streams.errors import WrongKey
from lamina.streams.namespace import namespace_of
from lamina.streams.recall.options import Options, Strategy
from lamina.streams.records import LinkType, Role, Status, TimeSource

MAX_MESSAGES = 1000
MAX_QUERY_CHARACTERS = 32_768
MAX_CONTEXT_TOKENS = 100_000

MAX_METADATA_BYTES = 64 * 1024
"""It travels with every turn of the request, beside up to 256 KB of content in a 1 MB record."""


class Request(BaseModel):
    """Base of every request body: unknown fields are refused, and so is text that is not Unicode."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _can_be_kept(cls, body: object) -> object:
        if not isinstance(body, dict):
            return body
        try:
            orjson.dumps(body, default=str)
        except TypeError as exc:
            raise ValueError(f"holds text or a number that cannot be kept: {exc}") from exc
        return body


def _within_the_calendar(moment: datetime) -> datetime:
    if moment.tzinfo is not None:
        try:
            moment.astimezone(UTC)
        except OverflowError as exc:
            raise ValueError("is outside the years 1 to 9999 in UTC") from exc
    return moment


def _a_user(user_id: str) -> str:
    try:
        namespace_of("tenant", user_id)
    except WrongKey as exc:
        raise ValueError("must not be empty, nor longer than 768 bytes of UTF-8") from exc
    return user_id


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty: send some text")
    return text


Moment = Annotated[
    datetime,
    AfterValidator(_within_the_calendar),
    Field(description="ISO 8601, or Unix seconds; without a zone it is read as UTC"),
]
UserId = Annotated[
    str,
    AfterValidator(_a_user),
    Field(description="whose memory: any text of the caller's own", examples=["ada"]),
]
Question = Annotated[
    str,
    StringConstraints(max_length=MAX_QUERY_CHARACTERS),
    AfterValidator(_not_blank),
    Field(description="in natural language", examples=["Where does Ada keep her spare key?"]),
]
Content = Annotated[str, AfterValidator(_not_blank)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=512)]
SearchableKind = Literal["turn", "episode", "fact", "abstract"]
AsOf = Annotated[
    Moment | None,
    Field(description="answer as of this time: nothing said later is used, nor facts from later"),
]


def _bounded(options: Options) -> Options:
    if not options.topology.visibility:
        raise ValueError("topology.visibility: only a benchmark may do without: it reads the whole memory")
    return options


def _not_to_answer(name: object) -> object:
    if name == "deep":
        raise ValueError("`deep` answers a question and gives no list of memories: ask POST /v1/answer")
    return name


Chosen = Annotated[
    Strategy,
    BeforeValidator(_not_to_answer),
    Field(
        description="`auto`: late interaction, words and context, fused (the default, ours); "
        "`tiers`: exchanges, episodes, facts (RecMem §3.5); `adaptive`: as deep as the question "
        "is complex (SimpleMem §2.3); `topology`: along links to what is archived (All-Mem §3.4); `chain`: "
        "turns that lead to each other (Chain-of-Memory §3.2)"
    ),
]
Answering = Annotated[
    Strategy | Literal["deep"],
    Field(description="as for a search; or `deep`: the model reads the history by programs (RLM-Memory §4)"),
]
Parameters = Annotated[
    Options, AfterValidator(_bounded), Field(description="of the chosen strategy, beside its defaults")
]


class Message(Request):
    """One message of a conversation."""

    role: Role = Field(description="who speaks", examples=["user"])
    content: Content = Field(
        description="what was said: not blank, at most 256 KB as UTF-8",
        examples=["My spare key is with Grace next door."],
    )
    name: Name | None = Field(default=None, description="the speaker's name, where roles are not enough")
    timestamp: Moment | None = Field(
        default=None, description="when it was said; a future time is kept, flagged"
    )
    message_id: Label | None = Field(
        default=None, description="your id: the first content sent under it for this user is the one kept"
    )


class AddMemories(Request):
    """Messages to remember."""

    messages: list[Message] = Field(min_length=1, max_length=MAX_MESSAGES)
    user_id: UserId
    agent_id: Label | None = Field(default=None, description="which agent took part")
    run_id: Label | None = Field(
        default=None, description="which session; without one a pause of 30 minutes begins a new session"
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="kept with every turn, at most 64 KB")
    timestamp: Moment | None = Field(default=None, description="for messages without their own")
    idempotency_key: Label | None = Field(
        default=None, description="makes a retry safe; also taken from the header `Idempotency-Key`"
    )

    @model_validator(mode="after")
    def _small_metadata(self) -> "AddMemories":
        size = len(orjson.dumps(self.metadata))
        if size > MAX_METADATA_BYTES:
            raise ValueError(f"metadata has {size} bytes; at most {MAX_METADATA_BYTES} are allowed")
        return self


class Accepted(BaseModel):
    """The answer once every message is safe with the broker."""

    event_id: UUID = Field(description="ask `GET /v1/events/{event_id}` what became of it")
    status: Literal["accepted"] = "accepted"
    turn_ids: list[UUID] = Field(description="one id per message, in order; equal ids are one memory")


EventStatus = Literal["accepted", "gated", "remembered", "consolidated", "failed"]


class TurnState(BaseModel):
    """What became of one turn."""

    id: UUID
    status: Status
    score: float | None = Field(default=None, description="the gate's information score, 0 to 1")
    reason: str | None = Field(default=None, description="why it was kept, gated, or failed")
    memories: list[UUID] = Field(description="visible episodes and facts that rest on it")


class EventState(BaseModel):
    """What became of a request, or of one turn."""

    id: UUID
    status: EventStatus = Field(description="failed and accepted outweigh the rest: see the turns")
    turns: list[TurnState]


class SearchFilters(Request):
    """What every result must satisfy."""

    run_id: Label | None = Field(default=None, description="only this session")
    speaker: Name | None = Field(default=None, description="only what this speaker said")
    said_from: Moment | None = Field(default=None, description="not said before")
    said_to: Moment | None = Field(default=None, description="not said after")


class Search(Request):
    """A search in one user's memory."""

    query: Question
    user_id: UserId
    filters: SearchFilters = Field(default_factory=SearchFilters)
    kinds: list[SearchableKind] | None = Field(
        default=None, min_length=1, description="only these kinds; without it all"
    )
    top_k: StrictInt = Field(default=10, ge=1, description="most results; the service's own limit holds")
    max_tokens: StrictInt | None = Field(
        default=None, ge=1, description="most tokens of all texts together, estimated as bytes ÷ 4"
    )
    strategy: Chosen = "auto"
    options: Parameters = Field(default_factory=Options)
    as_of: AsOf = None
    include: list[Literal["links", "turns", "timings", "why"]] = Field(
        default_factory=list, description="extra parts of the response"
    )


class Said(BaseModel):
    """A turn as evidence: what was said, by whom and when."""

    id: UUID
    speaker: str
    text: str
    said_at: datetime


class MemoryLink(BaseModel):
    """A typed link from a newer or derived memory to an older or supporting one."""

    source: UUID
    target: UUID
    type: LinkType
    weight: float = Field(description="cosine for `semantic`, else 1")


class Result(BaseModel):
    """One memory that was found."""

    id: UUID
    kind: str
    text: str
    score: float = Field(description="what the strategy ranks by; with `tiers` the cosine with the question")
    tier: str
    visible: bool = Field(description="false: archived, replaced or absorbed by what links to it")
    session: str
    speaker: str
    said_at: datetime
    time_source: TimeSource = Field(description="how `said_at` came about; all but `given` deserve doubt")
    valid_from: datetime | None
    valid_to: datetime | None
    engine: str = Field(description="`said`, or what wrote it")
    evidence: list[UUID] = Field(description="the turns it rests on, in time order")
    turns: list[Said] | None = None
    links: list[MemoryLink] | None = None
    why: dict[str, int | float | str] | None = Field(
        default=None, description="the strategy's reasons by name; `cosine` is always among them"
    )


class SearchResponse(BaseModel):
    """Results, best first."""

    strategy: Strategy
    results: list[Result]
    timings: dict[str, float] | None = Field(default=None, description="milliseconds by stage")


class Memory(BaseModel):
    """One memory with all that is known about it."""

    id: UUID
    user_id: str
    kind: str
    text: str
    session: str
    role: str
    speaker: str
    said_at: datetime
    time_source: TimeSource
    recorded_at: datetime
    occurred_from: datetime | None
    occurred_to: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None
    visible: bool = Field(description="false: gated, or archived by a newer version")
    version: int
    engine: str
    status: Status
    score: float | None
    reason: str | None
    topic: str | None
    keywords: list[str]
    entities: list[str]
    subject: str | None
    relation: str | None
    object: str | None
    evidence: list[UUID]
    metadata: dict[str, Any]


class Links(BaseModel):
    """The links from and to a memory."""

    links: list[MemoryLink]


class Live(BaseModel):
    """The process answers."""

    status: Literal["live"] = "live"


class Ready(BaseModel):
    """Whether the service can do its work, by check: true, or what is wrong."""

    ready: bool
    checks: dict[str, bool | str]


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    field: str = Field(examples=["messages.0.role"])
    message: str


class Problem(BaseModel):
    """Why a request was not served."""

    detail: str = Field(description="a sentence for a person")
    reason: str = Field(description="a short name for a program", examples=["invalid_request"])
    errors: list[FieldProblem] = Field(default_factory=list)
