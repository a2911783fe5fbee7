"""The bundled embedder: all-MiniLM-L6-v2 on ONNX Runtime, in threads of its own.

Each run of the model takes one sequence. With int8 that is needed (a batch shares its activation ranges,
so neighbours would change a text's vectors), and it is also the fastest: nothing is padded, and N
sequences on N threads of one core each beat one batch spread over N cores (docs/decisions). A vector
therefore depends on its own text alone, to the last bit, whatever the batch.
"""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from lamina.sinks.minilm_graph import INPUT_IDS, TOKEN_EMBEDDINGS
from lamina.sinks.vector_cache import Rows, VectorCache, content_key
from lamina.sinks.weights import MODEL, Weights, ensure_weights
from lamina.streams.codec import Matrix, Vector
from lamina.streams.errors import EmbedderUnavailable, Misconfigured
from lamina.streams.ports import Metrics, TurnVectors
from lamina.streams.settings import Settings

DIMENSION = 384

TEXT_TOKENS = 256
"""Longest text on its own, [CLS] and [SEP] included: the published model's `max_seq_length`."""

TURN_TOKENS = 512
"""Longest turn with the turn before it, [CLS] and [SEP] included: the model's position table."""

SHARE_TOKENS = 256
"""Tokens a thread takes at a time (about 30 ms): how long a question waits behind a batch."""

_CLS, _SEP = 101, 102  # ids of the pinned tokenizer


@dataclass(frozen=True, slots=True)
class _Sequence:
    """A sequence to run: the two parts that pooling tells apart, without the special tokens."""

    previous: list[int]
    own: list[int]

    def __len__(self) -> int:
        return len(self.previous) + len(self.own) + 2

    def ids(self) -> list[int]:
        return [_CLS, *self.previous, *self.own, _SEP]


class OnnxEmbedder:
    """An `Embedder` that needs no network once its weights are cached. Made by `open_onnx_embedder`."""

    dimension = DIMENSION

    def __init__(
        self,
        name: str,
        session: onnxruntime.InferenceSession,
        tokenizer: Tokenizer,
        threads: int,
        cache: VectorCache,
    ) -> None:
        self.name = name
        self._session = session
        self._tokenizer = tokenizer
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="embed")
        self._cache = cache

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """Embed texts on their own, as the published model does: the mean over all tokens.

        Returns:
            float32 (n, 384), rows of unit length, in order; a text beyond 256 tokens counts by its
            first 254, an empty one has the vector of its special tokens.

        Raises:
            EmbedderUnavailable: the embedder is closed, or the runtime failed (memory).
        """

        async def compute(positions: list[int]) -> list[Rows]:
            chosen = [texts[position] for position in positions]
            tokens = await self._tokenize(chosen)
            return await self._run([_Sequence([], ids[: TEXT_TOKENS - 2]) for ids in tokens], _pool_text)

        rows = await self._cache.through([content_key("text", text) for text in texts], compute)
        return _stack(rows, 1)[:, 0]

    async def embed_turns(self, turns: Sequence[tuple[str | None, str]]) -> TurnVectors:
        """Embed each turn in one pass over the turn before it and itself.

        A turn's vector is the mean over its own tokens, its exchange's the mean over both, special
        tokens left out. Of what exceeds 512 tokens, the beginning of the turn before it goes first,
        then the end of the turn itself.

        Raises:
            EmbedderUnavailable: the embedder is closed, or the runtime failed (memory).
        """

        async def compute(positions: list[int]) -> list[Rows]:
            chosen = [turns[position] for position in positions]
            tokens = await self._tokenize([part for previous, text in chosen for part in (previous or "", text)])
            sequences = [_turn_sequence(tokens[i], tokens[i + 1]) for i in range(0, len(tokens), 2)]
            return await self._run(sequences, _pool_turn)

        keys = [content_key("turn", previous or "", text) for previous, text in turns]
        rows = _stack(await self._cache.through(keys, compute), 2)
        return TurnVectors(turn=rows[:, 0], exchange=rows[:, 1])

    async def close(self) -> None:
        """End the threads; calls in flight fail with `EmbedderUnavailable`."""
        self._pool.shutdown(wait=False, cancel_futures=True)
