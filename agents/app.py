"""Build a Faust app that cannot lose a turn: its settings, its schema, its drain.

Every value here answers a measured fact (`docs/decisions/0001-at-least-once.md`).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

import faust
from faust.exceptions import ConsumerNotStarted
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer
from faust.types import TP

from lamina.agents.commit_fix import apply_commit_fix
from lamina.agents.guard import Guard, Step
from lamina.streams.errors import BrokerUnavailable
from lamina.streams.settings import Settings
from lamina.streams.topics import INTERNAL_RECORD_BYTES, TOPICS, Topic, full_name

NEVER = 86_400.0
"""Seconds. A member that does not poll for `broker_max_poll_interval` leaves and never returns, and a slow
step may hold polling back: so the interval is longer than any outage."""


FETCH_WAIT_MS = 100
"""How long a broker may hold a fetch for which it has nothing. Faust asks for 1,500 ms, and the embedded
broker holds a fetch to its end whatever arrives meanwhile: each hop of a lone turn took 0.75 s. Kafka answers
at the first byte, and minds ten empty fetches a second little."""

LEAVE_SECONDS = 5.0
"""Time a consumer has to commit and leave its group at the end: a broker that is gone would take a minute of
Faust's own, or all the time there is."""


class RawSchema(faust.Schema):
    """Hands every record over as the bytes it has, so that nothing can fail before the guard sees it.

    Faust acks a record whose decoding raises, and crashes the agent: the record would be gone.
    """

    def __init__(self) -> None:
        super().__init__(key_serializer="raw", value_serializer="raw", allow_empty=True)

    def loads_key(self, app: Any, message: Any, **_: Any) -> Any:  # noqa: ARG002  # faust's signature
        """Return the key's bytes."""
        return message.key

    def loads_value(self, app: Any, message: Any, **_: Any) -> Any:  # noqa: ARG002  # the same
        """Return the value's bytes."""
        return message.value


class _PromptThread(AIOKafkaConsumerThread):
    shutdown_timeout = LEAVE_SECONDS

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS  # noqa: SLF001  # faust states it, and takes no other
        return consumer


class _PromptConsumer(Consumer):
    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return _PromptThread(self, loop=self.loop, beacon=self.beacon)


class DrainedApp(faust.App):
    """A Faust app that waits a bounded time for in-flight events at shutdown and at a rebalance.

    Faust's own wait has no bound and cannot be cancelled. What is not finished then is not acked, and comes
    again.
    """

    drain_seconds: float = 20.0

    def _new_transport(self) -> Any:
        transport = super()._new_transport()
        transport.Consumer = _PromptConsumer
        return transport

    def _create_directories(self) -> None:
        """Create none: Faust's folders are for its tables, and the working directory may not be writable."""

    async def _consumer_wait_empty(self, consumer: Any, logger: Any) -> None:  # noqa: ARG002  # the same
        loop = asyncio.get_running_loop()
        end = loop.time() + self.drain_seconds
        while consumer._unacked_messages and loop.time() < end:  # noqa: SLF001  # faust offers no public view
            await asyncio.sleep(0.05)
            consumer._clean_unacked_messages()  # noqa: SLF001  # the same
        # Without a bound a commit waits for a coordinator for ever, and a broker may be gone for good.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await consumer.commit_and_end_transactions()

    async def stop(self) -> None:
        """Stop within a bounded time, whatever Faust still waits for."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.drain_seconds + 3 * LEAVE_SECONDS):
                await super().stop()


class Stream(Protocol):
    """The part of a Faust stream that a step uses."""

    def noack(self) -> "Stream":
        """Return the stream without automatic acks."""

    def noack_take(self, max_: int, within: float) -> AsyncIterator[Sequence[Any]]:
        """Yield batches of events."""


def build_app(name: str, bootstrap: str, settings: Settings) -> DrainedApp:
    """Build an app (one consumer group) with the settings that keep records safe.

    Args:
        name: the consumer group, after the topic prefix.
        bootstrap: `host:port,…`.
        settings: session timeout, batch and buffer sizes, drain.
    """
    apply_commit_fix()
    session = settings.session_timeout_seconds
    app = DrainedApp(
        f"{settings.topic_prefix}-{name}",
        id_format="{id}",
        broker=[f"kafka://{each}" for each in bootstrap.split(",")],
        web_enabled=False,
        autodiscover=False,
        processing_guarantee="at_least_once",
        consumer_auto_offset_reset="earliest",
        topic_allow_declare=False,
        topic_disable_leader=True,
        table_standby_replicas=0,
        stream_wait_empty=True,
        stream_recovery_delay=0.0,
        stream_buffer_maxsize=settings.buffer_size,
        stream_processing_timeout=NEVER,
        broker_commit_interval=0.5,
        broker_commit_livelock_soft_timeout=NEVER,
        broker_session_timeout=session,
        broker_heartbeat_interval=max(0.3, session / 10),
        broker_rebalance_timeout=max(60.0, settings.drain_seconds + 10),
        broker_request_timeout=max(90.0, session),
        broker_max_poll_interval=NEVER,
        broker_max_poll_records=settings.batch_size * 2,
        consumer_max_fetch_size=INTERNAL_RECORD_BYTES,
    )
    app.drain_seconds = settings.drain_seconds
    return app


def attach(app: DrainedApp, topic: Topic, step: Step[Any], guard: Guard, settings: Settings) -> None:
    """Register a step as the one agent of a topic: take a batch, hand it to the guard, which acks."""
    channel = app.topic(
        full_name(topic, settings.topic_prefix), schema=RawSchema(), partitions=topic.partitions
    )

    async def agent(stream: Stream) -> None:
        taken = stream.noack().noack_take(settings.batch_size, within=settings.batch_within_seconds)
        async for events in taken:
            await guard.run(step, events)

    app.agent(channel, name=f"{settings.topic_prefix}.{step.name}")(agent)


def lag(app: DrainedApp, settings: Settings) -> dict[str, int]:
    """Return, by the step that reads them, how many records are published and not yet committed here."""
    steps = {full_name(topic, settings.topic_prefix): topic.read_by for topic in TOPICS}
    consumer = app._consumer  # noqa: SLF001  # the public property creates one
    behind: dict[str, int] = {}
    if consumer is None:
        return behind
    try:
        assigned = consumer.assignment()
    except ConsumerNotStarted:  # its thread is about to
        return behind
    for tp in assigned:
        high = consumer.highwater(TP(tp.topic, tp.partition))
        committed = consumer._committed_offset[tp]  # noqa: SLF001  # faust offers no public view
        if high:
            step = steps[tp.topic]
            behind[step] = behind.get(step, 0) + max(0, high - (committed or 0))
    return behind


async def joined(app: DrainedApp, within_seconds: float) -> None:
    """Wait until the app has its partitions.

    Raises:
        BrokerUnavailable: the group was not joined within `within_seconds`.
    """
    try:
        async with asyncio.timeout(within_seconds):
            # Faust has no event for this, and its public property would create a consumer.
            while app._consumer is None or not app._consumer.assignment():  # noqa: ASYNC110, SLF001
                await asyncio.sleep(0.05)
    except TimeoutError as exc:
        raise BrokerUnavailable(
            f"the consumer group was not joined within {within_seconds:.0f} s: is the broker overloaded?"
        ) from exc
