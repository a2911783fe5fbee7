"""Which tokenizer counts, and how the tokens of a prompt are counted without a server's bill.

The vocabulary of OpenAI's present models (o200k_base) comes with `bpe-openai` (extra `bench`), which needs
no download. Where it is not installed, MiniLM's own WordPiece counts; every report names which.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from tokenizers import Tokenizer as WordPieces

from lamina.sinks.weights import ensure_weights
from lamina.streams.llm import Prompt

MESSAGE_TOKENS = 4
"""Of a chat message beside its content: its borders and its role (OpenAI's cookbook: 3 and the role's 1)."""
REPLY_TOKENS = 3
"""That begin the assistant's reply (the same)."""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Counts the tokens of a text; `name` is its vocabulary."""

    name: str
    count: Callable[[str], int]

    def prompt(self, prompt: Prompt[Any]) -> int:
        """Return the tokens that a prompt sends: both messages and the JSON schema of its reply.

        How a provider writes a schema into its model's context is not published; here it counts as its
        compact JSON, which is rather too much than too little.
        """
        schema = orjson.dumps(prompt.reply.model_json_schema()).decode()
        texts = [*(message["content"] for message in prompt.messages), schema]
        return sum(map(self.count, texts)) + MESSAGE_TOKENS * len(prompt.messages) + REPLY_TOKENS


def open_tokenizer(cache: Path) -> Tokenizer:
    """Return the o200k tokenizer where `bpe-openai` is installed, else the WordPiece one of the weights.

    Args:
        cache: folder of converted weights, for the second.

    Raises:
        Misconfigured: neither can be had.
    """
    try:
        import bpe_openai  # noqa: PLC0415  # an extra of the benchmark: no other part shall need it
    except ImportError:
        return word_pieces(cache)
    encoding = bpe_openai.get_encoding("o200k_base")
    return Tokenizer("o200k_base (bpe-openai)", lambda text: len(encoding.encode_ordinary(text)))


def word_pieces(cache: Path) -> Tokenizer:
    """Return the tokenizer of all-MiniLM-L6-v2, without special tokens.

    Raises:
        Misconfigured: its weights cannot be had.
    """
    pieces = WordPieces.from_file(str(ensure_weights(cache).tokenizer))
    pieces.no_truncation()
    pieces.no_padding()
    return Tokenizer(
        "WordPiece (all-MiniLM-L6-v2)", lambda text: len(pieces.encode(text, add_special_tokens=False).ids)
    )
