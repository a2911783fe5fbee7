"""What goes wrong at an OpenAI-compatible endpoint, in the words of the flow: the same for all its doors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import urlsplit

from openai import APIConnectionError, APIStatusError

from lamina.streams.errors import LaminaError, Misconfigured, Transient

NO_KEY = "none"
"""Stands for a key where none is set: local servers want none, the client wants one."""

LONGEST_DELAY_SECONDS = 86_400.0
"""Most that a Retry-After is believed: a server that names more has slipped, or means us ill."""

LONGEST_QUOTE = 300
"""Characters of an endpoint's own words that a message repeats."""

_TRY_AGAIN = frozenset({408, 409, 425, 429})  # timeouts, conflicts and limits that the next call may not meet


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint as its door's messages speak of it."""

    name: str
    """With its article: "the embedding endpoint"."""
    away: type[Transient]
    """What it is when it does not answer now."""
    key: str
    """Its key, which no message may repeat."""
    advice: Mapping[int, str]
    """What to do about a status that refuses the request."""
    otherwise: str
    """What to do about any other."""


def check_url(url: str, setting: str) -> None:
    """Refuse at start-up what the client would take for an endpoint that is down, and retry for ever.

    Raises:
        Misconfigured: `url`, the value of `setting`, is not an HTTP URL with a host.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise Misconfigured(f"{setting}={url} is not a URL like http://host:8000/v1")


def check_key(key: str, setting: str) -> None:
    """Refuse a key that no header can carry: the fault met later would repeat it in full.

    Raises:
        Misconfigured: `key`, the value of `setting`, holds a blank, a line break or a letter beyond ASCII.
    """
    if not all("!" <= character <= "~" for character in key):
        raise Misconfigured(f"{setting} holds characters that an HTTP header cannot carry")


def translated(error: APIConnectionError | APIStatusError, endpoint: Endpoint) -> LaminaError:
    """Return the fault of the flow that a fault of the client is.

    Returns:
        `endpoint.away` where waiting may mend it (no connection, a timeout, 408, 409, 425, 429, 5xx), with
        the delay that the endpoint asked for; else `Misconfigured` with what to do.
    """
    if isinstance(error, APIConnectionError):  # its timeouts are among these
        return endpoint.away(f"{endpoint.name} does not answer: {error.__cause__ or error}")
    status, words = error.status_code, quoted(error.message, endpoint.key)
    if status in _TRY_AGAIN or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return endpoint.away(
            f"{endpoint.name} answered {status}: {words}", retry_after=asked_delay(error.response.headers)
        )
    advice = endpoint.advice.get(status, endpoint.otherwise)
    return Misconfigured(f"{endpoint.name} answered {status} ({words}): {advice}")


def was_sent(error: APIConnectionError) -> bool:
    """Tell whether a request may have reached the endpoint before its connection failed."""
    # by name: the client has its own copy of httpx, whose classes are not those of the one we import
    return type(error.__cause__).__name__ not in {"ConnectError", "ConnectTimeout", "PoolTimeout"}


def quoted(words: str, key: str) -> str:
    """Return the beginning of an endpoint's words without the key, which some repeat to whoever sent it."""
    safe = words.replace(key, "***") if key and key != NO_KEY else words
    return safe if len(safe) <= LONGEST_QUOTE else f"{safe[:LONGEST_QUOTE]}…"


def asked_delay(headers: Mapping[str, str]) -> float | None:
    """Read a Retry-After header, which names seconds or a date; what is neither, or past, counts as none.

    A date is read against the server's own `Date`, so that clocks which differ do not matter.

    Returns:
        Seconds, at most a day.
    """
    named = headers.get("retry-after", "").strip()
    try:
        seconds = float(named)
    except ValueError:
        until = _moment(named)
        if until is None:
            return None
        seconds = (until - (_moment(headers.get("date", "")) or datetime.now(UTC))).total_seconds()
    if not math.isfinite(seconds) or seconds <= 0:
        return None  # "at once" too: the caller's own pause keeps it from asking without a pause
    return min(seconds, LONGEST_DELAY_SECONDS)


def _moment(date: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
