"""The endpoint behind the chat proxy: requests go to it, and its answers come back, as they are."""

from collections.abc import Mapping
from typing import Any

import httpx
import orjson

from lamina.query.errors import Refused
from lamina.streams.settings import Settings

CONNECT_SECONDS = 10.0
WAIT_SECONDS = 5.0
"""Longest wait for one of the `chat_calls_at_once` places."""

_PASSED_BACK = ("content-type", "retry-after", "retry-after-ms", "x-request-id", "x-should-retry")
_PASSED_BACK_PREFIXES = ("openai-", "x-ratelimit-")
_OF_OUR_KEY = frozenset({401, 403})


class Upstream:
    """One connection pool to one OpenAI-compatible endpoint."""

    def __init__(self, http: httpx.AsyncClient, model: str, key: str) -> None:
        self._http = http
        self._key = key
        self.model = model
        """Asked for where a request names none; empty: such requests go as they are."""

    async def begin(self, body: Mapping[str, Any]) -> httpx.Response:
        """Send a chat request; the response's body is still to be read, and the response to be closed.

        Raises:
            Refused: 502 without a connection, 504 without a beginning of an answer within
                `chat_timeout_seconds`, 503 when all places stay taken.
        """
        return await self._send("POST", "chat/completions", orjson.dumps(body))

    async def models(self) -> httpx.Response:
        """Ask for the list of models; read and closed as `begin` says."""
        return await self._send("GET", "models", None)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def safe(self, body: bytes) -> bytes:
        """Return an error's body without our key, which some endpoints repeat to whoever sent it."""
        return body.replace(self._key.encode(), b"***") if self._key else body

    async def _send(self, method: str, path: str, content: bytes | None) -> httpx.Response:
        request = self._http.build_request(method, path, content=content)
        try:
            return await self._http.send(request, stream=True)
        except httpx.PoolTimeout as exc:
            raise Refused(
                503,
                "too_many_chats",
                "all places of LAMINA_CHAT_CALLS_AT_ONCE are taken: send the same request again",
                headers={"Retry-After": "1"},
            ) from exc
        except httpx.ReadTimeout as exc:
            raise Refused(504, "upstream_timeout", "the chat endpoint did not answer in time") from exc
        except httpx.HTTPError as exc:
            sentence = f"no answer of the chat endpoint: {named(exc)}"
            raise Refused(502, "upstream_unavailable", sentence) from exc


def named(fault: httpx.HTTPError) -> str:
    """Return what went wrong, where the library says it in no words too."""
    return str(fault) or type(fault).__name__


def check_key_accepted(status: int) -> None:
    """Refuse to pass on what would read as the caller's own key being wrong.

    Raises:
        Refused: 502 for a 401 or 403 of the endpoint.
    """
    if status in _OF_OUR_KEY:
        raise Refused(
            502,
            "upstream_refused_key",
            f"the chat endpoint answered {status}: its operator should check LAMINA_CHAT_API_KEY, "
            "or LAMINA_LLM_API_KEY",
        )


def passed_back(headers: httpx.Headers) -> dict[str, str]:
    """Return those headers of an answer that are the client's business."""
    return {
        name: value
        for name, value in headers.items()
        if name in _PASSED_BACK or name.startswith(_PASSED_BACK_PREFIXES)
    }


def open_upstream(settings: Settings) -> Upstream | None:
    """Open the endpoint that the settings name, if they do and want a proxy; nothing is sent yet.

    An endpoint of its own (`chat_base_url`) never gets the key of the other one.

    Raises:
        Misconfigured: its URL or key cannot be used.
    """
    own = bool(settings.chat_base_url)
    url = settings.chat_base_url or settings.llm_base_url
    key = settings.chat_api_key or ("" if own else settings.llm_api_key)
    if not settings.chat_enabled or not (url or key):
        return None
    # Importing these costs the openai package's 0.7 s, which only who configures an endpoint shall pay.
    from lamina.sinks.llm_dialect import OPENAI_URL  # noqa: PLC0415
    from lamina.sinks.openai_faults import check_key, check_url  # noqa: PLC0415

    if url:
        check_url(url, "LAMINA_CHAT_BASE_URL" if own else "LAMINA_LLM_BASE_URL")
    check_key(key, "LAMINA_CHAT_API_KEY" if settings.chat_api_key else "LAMINA_LLM_API_KEY")
    # uncompressed: a compressed stream would come in pieces of the compressor's choosing
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    http = httpx.AsyncClient(
        base_url=url or OPENAI_URL,
        headers=headers,
        timeout=httpx.Timeout(settings.chat_timeout_seconds, connect=CONNECT_SECONDS, pool=WAIT_SECONDS),
        limits=httpx.Limits(max_connections=settings.chat_calls_at_once),
    )
    return Upstream(http, settings.chat_model or ("" if own else settings.llm_model), key)
