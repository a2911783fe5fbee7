"""The bundled embedder: all-MiniLM-L6-v2 on ONNX Runtime, in threads of its own.

Each run of the model takes one sequence on one thread, N of them at once. With int8 that is needed: a
batch shares its activation ranges, so neighbours would change a text's vectors (cosine down to 0.98).
It is also the fastest, since nothing is padded. Pairs of LoCoMo turns a second, int8, two cores: 242 so;
168 one at a time over two threads; 235 in batches of 1,024 tokens over two threads, 197 in ones of 4,096.
A vector depends on its own text alone, to the last bit, whatever the batch.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, RuntimeException
from tokenizers import Tokenizer

from lamina.sinks.minilm_graph import INPUT_IDS, TOKEN_EMBEDDINGS
from lamina.sinks.minilm_tokens import TOKEN_WIDTH, TokenSpace
from lamina.sinks.vector_cache import VectorCache, content_key
from lamina.sinks.weights import MODEL, ensure_weights
from lamina.streams.codec import Matrix, Vector
from lamina.streams.errors import EmbedderUnavailable, Misconfigured
from lamina.streams.late_interaction import TokenVectors
from lamina.streams.ports import Metrics, QuestionVectors, TurnVectors
from lamina.streams.settings import Settings

T = TypeVar("T")
Rows = NDArray[np.float32]
"""(k, 384): the k vectors of one text, or of one turn."""

DIMENSION = 384

TEXT_TOKENS = 256
"""Longest text on its own, [CLS] and [SEP] included: the published model's `max_seq_length`."""

TURN_TOKENS = 512
"""Longest turn with the turn before it, [CLS] and [SEP] included: the model's position table."""

SHARE_TOKENS = 256
"""Tokens a thread takes at a time (about 30 ms): how long a question waits behind a batch."""

_CLS, _SEP = 101, 102  # ids of the pinned tokenizer


@dataclass(frozen=True, slots=True, eq=False)
class _TurnEntry:
    rows: Rows
    tokens: TokenVectors
    before: TokenVectors


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
    token_width = TOKEN_WIDTH

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
        self._space = TokenSpace(tokenizer)

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
        return _stack(rows, 1)[:, 0].copy()

    async def embed_turns(self, turns: Sequence[tuple[str | None, str]]) -> TurnVectors:
        """Embed each turn in one pass over the turn before it and itself.

        A turn's vector is the mean over its own tokens, its exchange's the mean over both, special
        tokens left out; its token vectors are of its own tokens. Of what exceeds 512 tokens, the
        beginning of the turn before it goes first, then the end of the turn itself.

        Raises:
            EmbedderUnavailable: the embedder is closed, or the runtime failed (memory).
        """

        async def compute(positions: list[int]) -> list[_TurnEntry]:
            chosen = [turns[position] for position in positions]
            tokens = await self._tokenize(
                [part for previous, text in chosen for part in (previous or "", text)]
            )
            sequences = [_turn_sequence(tokens[i], tokens[i + 1]) for i in range(0, len(tokens), 2)]
            return await self._run(sequences, self._turn_entry)

        keys = [content_key("turn", previous or "", text) for previous, text in turns]
        entries = await self._cache.through(keys, compute)
        rows = _stack([entry.rows for entry in entries], 2)
        return TurnVectors(
            turn=rows[:, 0].copy(),
            exchange=rows[:, 1].copy(),
            tokens=tuple(entry.tokens for entry in entries),
            before=tuple(entry.before for entry in entries),
        )

    async def embed_question(self, question: str) -> QuestionVectors:
        """Embed a question in one pass: its vector as `embed` gives it, and its tokens.

        Returns:
            A question beyond 256 tokens counts by its first and last 127: whoever pastes a text asks before
            or after it. One without a word has no tokens.

        Raises:
            EmbedderUnavailable: the embedder is closed, or the runtime failed (memory).
        """

        def work() -> QuestionVectors:
            [ids] = self._ids_of([question])
            sequence = _Sequence([], _ends(ids))
            return self._question_entry(self._states(sequence), sequence)

        async def compute(_: list[int]) -> list[QuestionVectors]:
            return [await self._in_pool(work)]

        [vectors] = await self._cache.through([content_key("question", question)], compute)
        return vectors

    async def token_states(self, turns: Sequence[tuple[str | None, str]]) -> AsyncIterator[Matrix]:
        """Give the states of each turn's own tokens, (tokens, 384), not normalised: what bases are made of.

        Raises:
            EmbedderUnavailable: the embedder is closed, or the runtime failed (memory).
        """
        for previous, text in turns:
            before, own = await self._tokenize([previous or "", text])
            sequence = _turn_sequence(before, own)
            states = await self._in_pool(partial(self._states, sequence))
            yield states[1 + len(sequence.previous) : -1]

    async def close(self) -> None:
        """End the threads when what they hold is done; later calls raise `EmbedderUnavailable`."""
        await asyncio.to_thread(self._pool.shutdown)

    async def _tokenize(self, texts: list[str]) -> list[list[int]]:
        """Return the token ids of each text, without special tokens."""
        return await self._in_pool(partial(self._ids_of, texts))

    def _ids_of(self, texts: list[str]) -> list[list[int]]:
        # encode_batch, even for one text: unlike encode it lets go of the GIL
        encodings = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    async def _run(self, sequences: list[_Sequence], pool: Callable[[Matrix, _Sequence], T]) -> list[T]:
        """Run the model over each sequence and pool its states, all threads at work."""
        results: dict[int, T] = {}
        shares = _shares([len(sequence) for sequence in sequences])

        def work(share: list[int]) -> None:
            for position in share:
                sequence = sequences[position]
                results[position] = pool(self._states(sequence), sequence)

        # Shares are handed out as threads come free, so the pool's queue stays short and a question
        # that comes meanwhile is next, not behind the whole batch.
        async def keep_busy() -> None:
            for share in shares:
                await self._in_pool(partial(work, share))

        await asyncio.gather(*(keep_busy() for _ in range(self._threads)))
        return [results[position] for position in range(len(sequences))]

    def _turn_entry(self, states: Matrix, sequence: _Sequence) -> _TurnEntry:
        border = 1 + len(sequence.previous)
        return _TurnEntry(
            rows=_pool_turn(states, sequence),
            tokens=self._space.of_turn(sequence.own, states[border:-1]),
            before=self._space.of_turn(sequence.previous, states[1:border]),
        )

    def _question_entry(self, states: Matrix, sequence: _Sequence) -> QuestionVectors:
        tokens = self._space.of_question(sequence.own, states[1:-1])
        return QuestionVectors(_pool_text(states, sequence)[0], tokens)

    def _states(self, sequence: _Sequence) -> Matrix:
        """Return the last layer's state of each token, (len(sequence), 384), not normalised."""
        ids = np.array([sequence.ids()], dtype=np.int64)
        try:
            states: Matrix = self._session.run([TOKEN_EMBEDDINGS], {INPUT_IDS: ids})[0][0]
        except (Fail, RuntimeException) as exc:
            raise EmbedderUnavailable(f"ONNX Runtime failed: {exc}") from exc
        return states

    async def _in_pool(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            future = loop.run_in_executor(self._pool, work)
        except RuntimeError as exc:
            raise EmbedderUnavailable("the embedder is closed") from exc
        return await future


async def open_onnx_embedder(settings: Settings, cache_dir: Path, metrics: Metrics) -> OnnxEmbedder:
    """Load the model, fetching and converting its weights into `cache_dir` the first time.

    Raises:
        Misconfigured: the weights cannot be had, or what is cached does not load.
    """
    return await asyncio.to_thread(_load, settings, cache_dir, metrics)


def _load(settings: Settings, cache_dir: Path, metrics: Metrics) -> OnnxEmbedder:
    weights = ensure_weights(cache_dir)
    path = weights.int8 if settings.embed_precision == "int8" else weights.fp32
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # it plans memory per input shape; here nearly every length differs
    options.log_severity_level = 3  # errors
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        tokenizer = Tokenizer.from_file(str(weights.tokenizer))
    except Exception as exc:  # neither library has a base class for its errors
        raise Misconfigured(
            f"{path.parent} does not load ({exc}): delete that folder and start again"
        ) from exc
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return OnnxEmbedder(
        name=f"{MODEL}-{settings.embed_precision}",
        session=session,
        tokenizer=tokenizer,
        threads=settings.embed_threads,
        cache=VectorCache(settings.embed_cache_texts, "onnx", metrics),
    )


def _ends(ids: list[int]) -> list[int]:
    """Fit a question into the model: all of it, else as much of its beginning as of its end."""
    half = TEXT_TOKENS // 2 - 1
    return ids if len(ids) <= 2 * half else ids[:half] + ids[-half:]


def _turn_sequence(previous: list[int], own: list[int]) -> _Sequence:
    """Fit a turn and the turn before it into the model."""
    own = own[: TURN_TOKENS - 2]
    room = TURN_TOKENS - 2 - len(own)
    return _Sequence(previous[max(0, len(previous) - room) :], own)


def _shares(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Deal positions out in shares of at most `SHARE_TOKENS`, longest first so that threads end together."""
    share: list[int] = []
    tokens = 0
    for position in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if share and tokens + lengths[position] > SHARE_TOKENS:
            yield share
            share, tokens = [], 0
        share.append(position)
        tokens += lengths[position]
    if share:
        yield share


def _pool_text(states: Matrix, _: _Sequence) -> Rows:
    """Mean over all tokens, special ones too, as the published model pools: (1, 384)."""
    return _unit(_mean(states)[np.newaxis])


def _pool_turn(states: Matrix, sequence: _Sequence) -> Rows:
    """Mean over the turn's own tokens, and over both turns': (2, 384)."""
    both = states[1:-1]
    own = both[len(sequence.previous) :]
    # a text without any token is left with what the special tokens say
    return _unit(np.stack([_mean(part) if len(part) else _mean(states) for part in (own, both)]))


def _mean(states: Matrix) -> Vector:
    mean: Vector = states.mean(axis=0)
    return mean


def _unit(rows: Rows) -> Rows:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Rows = (rows / np.maximum(norms, 1e-12)).astype(np.float32, copy=False)
    return unit


def _stack(rows: list[Rows], vectors: int) -> NDArray[np.float32]:
    """Return the rows as (n, vectors, 384); n may be 0."""
    return np.asarray(rows, dtype=np.float32).reshape(len(rows), vectors, DIMENSION)
