"""The base of every reply's form: closed, small, and acceptable as a strict JSON schema."""

from typing import Any

from pydantic import BaseModel, ConfigDict


def _short(schema: dict[str, Any]) -> None:
    """Leave out titles and descriptions: the system message says what a field means, once."""
    for part in (schema, *schema.get("properties", {}).values()):
        part.pop("title", None)
        part.pop("description", None)


class Reply(BaseModel):
    """What a model fills in: every field is required, no other is allowed, no value is bounded here.

    Strict JSON schema (OpenAI's subset) knows neither defaults nor bounds; what a value may be is judged by
    `lamina.streams.grounding`, which leaves out one bad item rather than the whole reply.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_short)
