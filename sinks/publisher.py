"""The way onto the topics: one Kafka producer with acks=all."""

import asyncio
from collections.abc import Sequence
from typing import Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from lamina.streams.errors import BrokerUnavailable, InvalidTurn
from lamina.streams.ports import Outgoing
from lamina.streams.settings import Settings
from lamina.streams.topics import TOPICS, full_name

_LINGER_MS = 0
"""A record waits for none that may follow. Those of one `publish`, and all that come while a batch is on its
way, go together anyway; five milliseconds here were a third of an acceptance, and thrice that of a turn."""
_REQUEST_MS = 10_000
_CLOSE_SECONDS = 5.0
_BACKOFF_MS = 250
_FRAMING_BYTES = 128
"""A bound on what the record and its batch add to key, value and headers (61 + about 20 bytes)."""
_HEADER_FRAMING_BYTES = 10
"""The same for one header: two variable-length lengths."""


class KafkaPublisher:
    """Publisher port over one producer. Partitions by the key's murmur2 hash, as Java clients do.

    The producer is not idempotent: a retry may publish a record twice, which every consumer tolerates by
    its id, and the embedded broker does not know idempotent producers.
    """

    def __init__(self, producer: AIOKafkaProducer, prefix: str) -> None:
        self._producer = producer
        self._prefix = prefix

    @classmethod
    async def open(cls, bootstrap: str, settings: Settings) -> Self:
        """Connect a producer.

        Raises:
            BrokerUnavailable: no broker answers at `bootstrap`.
        """
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            enable_idempotence=False,
            linger_ms=_LINGER_MS,
            max_request_size=max(topic.max_record_bytes for topic in TOPICS) + _FRAMING_BYTES,
            request_timeout_ms=_REQUEST_MS,
            retry_backoff_ms=_BACKOFF_MS,
        )
        try:
            await producer.start()
        except (KafkaError, OSError) as exc:
            await producer.stop()
            raise BrokerUnavailable(f"no broker answers at {bootstrap}: {exc}") from exc
        return cls(producer, settings.topic_prefix)

    async def publish(self, records: Sequence[Outgoing]) -> None:
        """Publish, and return only when the broker has acknowledged every record.

        Raises:
            BrokerUnavailable: at least one record was not acknowledged; all may be sent again.
            InvalidTurn: a record is larger than its topic takes. Where the size shows before sending, nothing
                is sent.
        """
        for record in records:
            _check_size(record)
        try:
            await asyncio.gather(*[await self._send(record) for record in records])
        except (MessageSizeTooLargeError, RecordListTooLargeError) as exc:
            raise InvalidTurn(f"the broker refuses a record of this size: {exc}") from exc
        except (KafkaError, OSError, TimeoutError) as exc:
            raise BrokerUnavailable(f"the broker did not acknowledge a record: {exc}") from exc

    async def close(self) -> None:
        """Send what is buffered and close; a dead broker delays this by `_CLOSE_SECONDS`.

        What was not sent by then was never acknowledged, and whoever published it was told so.
        """
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._producer.stop()
        except TimeoutError:
            await self._producer.client.close()

    async def _send(self, record: Outgoing) -> asyncio.Future[object]:
        delivery: asyncio.Future[object] = await self._producer.send(
            full_name(record.topic, self._prefix),
            record.value,
            key=None if record.key is None else record.key.encode(),
            headers=list(record.headers.items()),
        )
        # Where a later record cannot be sent nobody awaits this one, and its fate is no news.
        delivery.add_done_callback(lambda done: done.cancelled() or done.exception())
        return delivery


def _check_size(record: Outgoing) -> None:
    """Refuse a record beyond its topic's limit here too: the embedded broker does not check it."""
    headers = sum(len(k.encode()) + len(v) + _HEADER_FRAMING_BYTES for k, v in record.headers.items())
    key = 0 if record.key is None else len(record.key.encode())
    size = _FRAMING_BYTES + key + len(record.value) + headers
    if size > record.topic.max_record_bytes:
        raise InvalidTurn(
            f"a record of {size} bytes; the topic {record.topic.name} takes {record.topic.max_record_bytes}"
        )
