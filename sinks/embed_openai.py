"""The door to an OpenAI-compatible embedding endpoint.

It gives no token vectors, so a turn's vector is that of its text alone, and its exchange's that of
"previous turn, newline, turn".
"""

import asyncio
from collections.abc import Iterator, Sequence

import numpy as np
import orjson
from openai import APIConnectionError, APIStatusError, AsyncOpenAI

from lamina.sinks.openai_faults import NO_KEY, Endpoint, check_url, translated
from lamina.sinks.vector_cache import VectorCache, content_key
from lamina.streams.codec import Matrix, Vector
from lamina.streams.errors import EmbedderUnavailable, Misconfigured, WrongDimension
from lamina.streams.ports import Metrics, QuestionVectors, TurnVectors
from lamina.streams.settings import Settings

REQUEST_TEXTS = 256
"""Most texts of one request."""

REQUEST_BYTES = 250_000
"""Most bytes of one request: a token is at least one byte, and the usual limit is 300,000 tokens."""

TEXT_BYTES = 8_000
"""Most bytes of one text: no tokenizer makes more than the usual 8,191 tokens of them."""

NO_TEXT = "."
"""Stands for an empty text, which endpoints refuse."""

_ADVICE = {
    401: "check LAMINA_OPENAI_API_KEY",
    403: "the key in LAMINA_OPENAI_API_KEY may not use this model",
    404: "check LAMINA_OPENAI_BASE_URL (it usually ends in /v1) and LAMINA_OPENAI_EMBED_MODEL",
}
_OTHERWISE = "check that LAMINA_OPENAI_EMBED_MODEL is an embedding model that reads texts of 8,000 bytes"


class OpenAIEmbedder:
    """An `Embedder` over HTTP. Never retries: the caller's guard does. Made by `open_openai_embedder`."""

    token_width = 0

    def __init__(
        self, client: AsyncOpenAI, model: str, dimension: int, timeout_seconds: float, cache: VectorCache
    ) -> None:
        self.name = model
        self.dimension = dimension
        self._client = client
        self._timeout_seconds = timeout_seconds
        self._cache = cache
        self._endpoint = Endpoint(
            name="the embedding endpoint",
            away=EmbedderUnavailable,
            key=client.api_key,
            advice=_ADVICE,
            otherwise=_OTHERWISE,
        )

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """Embed texts on their own.

        Returns:
            float32 (n, dimension), rows of unit length, in order; a text beyond 8,000 bytes counts by
            its beginning.

        Raises:
            EmbedderUnavailable: no answer in time, 429 or 5xx; `retry_after` as the endpoint asked.
            Misconfigured: the endpoint refuses the key, the model or the request.
            WrongDimension: the model's vectors are not of the configured dimension.
        """
        fitted = [_head(text, TEXT_BYTES) if text.strip() else NO_TEXT for text in texts]

        async def compute(positions: list[int]) -> list[Vector]:
            rows: list[Vector] = []
            for request in _requests([fitted[position] for position in positions]):
                rows.extend(await self._request(request))
            return rows

        rows = await self._cache.through([content_key("text", text) for text in fitted], compute)
        return np.asarray(rows, dtype=np.float32).reshape(len(rows), self.dimension)

    async def embed_turns(self, turns: Sequence[tuple[str | None, str]]) -> TurnVectors:
        """Embed each turn, and each exchange of a turn with the one before it.

        Raises:
            EmbedderUnavailable, Misconfigured, WrongDimension: as `embed`.
        """
        texts = [text for _, text in turns]
        paired = [position for position, (previous, _) in enumerate(turns) if previous]
        exchanges = [_exchange(turns[position][0] or "", texts[position]) for position in paired]
        vectors = await self.embed([*texts, *exchanges])
        turn = vectors[: len(turns)]
        exchange = turn.copy()
        exchange[paired] = vectors[len(turns) :]
        return TurnVectors(turn=turn, exchange=exchange)

    async def embed_question(self, question: str) -> QuestionVectors:
        """Embed a question; its tokens stay with the endpoint.

        Raises:
            EmbedderUnavailable, Misconfigured, WrongDimension: as `embed`.
        """
        [dense] = await self.embed([question])
        return QuestionVectors(dense)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _request(self, texts: list[str]) -> list[Vector]:
        try:
            # the client's timeout is per read, so a reply that trickles in would not end
            async with asyncio.timeout(self._timeout_seconds):
                reply = await self._client.embeddings.with_raw_response.create(
                    input=texts, model=self.name, encoding_format="float"
                )
        except (APIConnectionError, APIStatusError) as exc:
            raise translated(exc, self._endpoint) from exc
        except TimeoutError as exc:
            raise EmbedderUnavailable(f"no embeddings within {self._timeout_seconds} s") from exc
        return self._read(reply.content, len(texts))

    def _read(self, body: bytes, expected: int) -> list[Vector]:
        """Return one (1, dimension) row of unit length per text, in the order of the request."""
        try:
            items = sorted(orjson.loads(body)["data"], key=lambda item: item["index"])
            with np.errstate(over="ignore"):  # an overflow is found below, as not finite
                vectors = [np.asarray(item["embedding"], dtype=np.float32) for item in items]
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as exc:
            raise Misconfigured(
                f"the reply is not one of an embedding endpoint ({body[:80]!r}): check LAMINA_OPENAI_BASE_URL"
            ) from exc
        if len(vectors) != expected:
            raise EmbedderUnavailable(f"{len(vectors)} embeddings came for {expected} texts")
        for vector in vectors:
            if vector.shape != (self.dimension,):
                raise WrongDimension(
                    f"{self.name} gives vectors of shape {vector.shape}, expected ({self.dimension},): set "
                    "LAMINA_OPENAI_EMBED_DIMENSION to the model's, and reindex a store that has another"
                )
            if not np.isfinite(vector).all():
                raise EmbedderUnavailable(f"{self.name} gave a vector that is not finite")
        return [(vector / max(float(np.linalg.norm(vector)), 1e-12))[np.newaxis] for vector in vectors]


def open_openai_embedder(settings: Settings, metrics: Metrics) -> OpenAIEmbedder:
    """Make the embedder that the settings describe; nothing is sent yet.

    Raises:
        Misconfigured: neither an endpoint nor a key is set, or the endpoint is not a URL.
    """
    if not settings.openai_base_url and not settings.openai_api_key:
        raise Misconfigured("LAMINA_EMBEDDER=openai needs LAMINA_OPENAI_API_KEY or LAMINA_OPENAI_BASE_URL")
    if settings.openai_base_url:
        check_url(settings.openai_base_url, "LAMINA_OPENAI_BASE_URL")
    client = AsyncOpenAI(
        base_url=settings.openai_base_url or None,
        api_key=settings.openai_api_key or NO_KEY,
        timeout=settings.openai_timeout_seconds,
        max_retries=0,
    )
    return OpenAIEmbedder(
        client=client,
        model=settings.openai_embed_model,
        dimension=settings.openai_embed_dimension,
        timeout_seconds=settings.openai_timeout_seconds,
        cache=VectorCache(settings.embed_cache_texts, "openai", metrics),
    )


def _exchange(previous: str, text: str) -> str:
    """Join two turns; of what is too long, the beginning of the previous one goes first."""
    own = _head(text, TEXT_BYTES)
    room = TEXT_BYTES - len(own.encode()) - 1
    before = previous.encode()[-room:].decode(errors="ignore") if room > 0 else ""
    return f"{before}\n{own}" if before else own


def _head(text: str, limit: int) -> str:
    """Return the longest beginning of at most `limit` bytes of UTF-8, whole characters only."""
    return text.encode()[:limit].decode(errors="ignore")


def _requests(texts: Sequence[str]) -> Iterator[list[str]]:
    """Cut the texts into requests within both limits, in order."""
    request: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode())
        if request and (len(request) == REQUEST_TEXTS or size + length > REQUEST_BYTES):
            yield request
            request, size = [], 0
        request.append(text)
        size += length
    if request:
        yield request
