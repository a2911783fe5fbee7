"""What `deep` adds to requests and responses."""

from typing import Literal

from pydantic import BaseModel, Field


class DeepCost(BaseModel):
    """What the reading of one question took."""

    programs: int = Field(description="programs that the model wrote")
    calls: int = Field(description="calls of the model: programs, sub-queries, the forced answer")
    tokens: int = Field(description="of their prompts and replies, estimated as UTF-8 bytes ÷ 4")
    forced: Literal["programs", "calls", "tokens", "seconds"] | None = Field(
        description="which part of the budget was used up before the model came to an answer; null: none"
    )
    turns: int = Field(description="turns of the history that were there to read")
    cut: bool = Field(description="whether older turns were left out: LAMINA_DEEP_TURNS, _CHARACTERS")
