"""How many tokens a text is, where no server says it."""

from collections.abc import Iterable
from typing import Any

import orjson

from lamina.streams.llm import Prompt

CHARACTERS_PER_TOKEN = 4
"""Of English text in OpenAI's vocabularies, by OpenAI's own rule of thumb. JSON and other scripts have fewer
characters to a token, so an estimate is a bound on neither side."""


def estimated(texts: Iterable[str]) -> int:
    """Return about how many tokens the texts are, together."""
    return -(-sum(map(len, texts)) // CHARACTERS_PER_TOKEN)


def estimated_prompt(prompt: Prompt[Any]) -> int:
    """Return about how many tokens a prompt sends: its messages and the JSON schema of its reply."""
    schema = orjson.dumps(prompt.reply.model_json_schema()).decode()
    return estimated([*(message["content"] for message in prompt.messages), schema])
