"""Dead letters: the original bytes of a record that can never be processed, and why."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lamina.streams.errors import InvalidTurn
from lamina.streams.metrics import DEAD_LETTERS as DEAD_LETTERS_TOTAL
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Metrics, Outgoing, Publisher
from lamina.streams.records import DeadLetter
from lamina.streams.topics import DEAD_LETTERS, DOOR_RECORD_BYTES

_KEY_BYTES = 1024
"""Longer than any namespace."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a record came from, with its original key, value and headers."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


class DeadLetters:
    """The door to the `dead-letters` topic."""

    def __init__(self, publisher: Publisher, metrics: Metrics) -> None:
        self._publisher = publisher
        self._metrics = metrics

    async def bury(self, source: Source, *, step: str, reason: str, detail: str) -> None:
        """Publish the original bytes with headers that say step, reason and source; return when acknowledged.

        The original key travels in the header `source-key`, since it may be what is wrong, and each original
        header under its own name behind `source-header-`; of a repeated one the last, as every step reads it.
        Of a record that is larger than the topic takes, the beginning travels, and `source-bytes` says how
        much there was.

        Raises:
            BrokerUnavailable: not acknowledged; call again.
        """
        letter = DeadLetter(
            step=step,
            reason=reason,
            detail=detail[:2000],
            topic=source.topic,
            partition=source.partition,
            offset=source.offset,
        )
        headers = {name: str(value).encode(errors="replace") for name, value in letter.model_dump().items()}
        if source.key is not None:
            headers["source-key"] = source.key
        headers["source-null"] = b"1" if source.value is None else b"0"
        headers |= {f"source-header-{name}": value or b"" for name, value in source.headers}
        key = Namespace(f"{source.topic}/{source.partition}")
        whole = Outgoing(DEAD_LETTERS, key, source.value or b"", headers)
        try:
            await self._publisher.publish([whole])
        except InvalidTurn:  # a compressed record may hold more than any topic takes
            await self._publisher.publish([_cut(whole)])
        self._metrics.count(DEAD_LETTERS_TOTAL, step=step, reason=reason)


def _cut(letter: Outgoing) -> Outgoing:
    """Return a letter that its topic takes: the beginnings of key and value, without the original headers."""
    headers = {name: value for name, value in letter.headers.items() if not name.startswith("source-header-")}
    if "source-key" in headers:
        headers["source-key"] = headers["source-key"][:_KEY_BYTES]
    headers["source-bytes"] = str(len(letter.value)).encode()
    return replace(letter, value=letter.value[:DOOR_RECORD_BYTES], headers=headers)
