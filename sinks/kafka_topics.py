"""The topics on the broker: created where missing, refused where they differ from the topic table."""

import asyncio
import time
from collections.abc import Mapping

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from lamina.streams.errors import Misconfigured
from lamina.streams.settings import Settings
from lamina.streams.topics import TOPICS, Topic, full_name

_DEADLINE_SECONDS = 15.0
_REQUEST_MS = 5_000
_PAUSE_SECONDS = 0.2


async def ensure_topics(
    bootstrap: str, settings: Settings, *, within_seconds: float = _DEADLINE_SECONDS
) -> None:
    """Make sure that every topic exists with the partitions the topic table states.

    Safe to run from several processes at once.

    Raises:
        Misconfigured: no broker answers in time, a topic is missing and may not or cannot be created, or a
            topic has another number of partitions.
    """
    wanted = {full_name(topic, settings.topic_prefix): topic for topic in TOPICS}
    deadline = time.monotonic() + within_seconds
    admin = await _reach(bootstrap, deadline)
    try:
        async with asyncio.timeout(max(deadline - time.monotonic(), 1)):
            missing = set(wanted) - set(await admin.list_topics())
            if missing and not settings.create_topics:
                raise Misconfigured(
                    f"the broker at {bootstrap} has no topic {', '.join(sorted(missing))}: "
                    "create them (docs/topics.md) or set LAMINA_CREATE_TOPICS=true"
                )
            if missing:
                await _create(admin, {name: wanted[name] for name in missing}, settings.replication)
            _compare(wanted, await _partitions(admin, set(wanted)))
    except (KafkaError, OSError, TimeoutError) as exc:
        raise Misconfigured(f"the broker at {bootstrap} did not answer about its topics: {exc!r}") from exc
    finally:
        await admin.close()


async def _reach(bootstrap: str, deadline: float) -> AIOKafkaAdminClient:
    """Return a connected client, trying until the deadline: a broker may start beside us."""
    while True:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=_REQUEST_MS)
        try:
            async with asyncio.timeout(max(deadline - time.monotonic(), _PAUSE_SECONDS)):
                await admin.start()
        except (KafkaError, OSError, TimeoutError, ValueError) as exc:
            await admin.close()
            if time.monotonic() + _PAUSE_SECONDS > deadline or isinstance(exc, ValueError):
                raise Misconfigured(
                    f"no broker answers at {bootstrap} ({exc}): "
                    "is a broker listening there? set LAMINA_BROKER to its host:port"
                ) from exc
            await asyncio.sleep(_PAUSE_SECONDS)
        else:
            return admin


async def _create(admin: AIOKafkaAdminClient, topics: Mapping[str, Topic], replication: int) -> None:
    """Create topics; one that another process created meanwhile is left to the comparison."""
    answer = await admin.create_topics(
        [
            NewTopic(
                name,
                topic.partitions,
                replication,
                topic_configs={
                    "retention.ms": str(topic.retention_hours * 3_600_000),
                    "max.message.bytes": str(topic.max_record_bytes),
                },
            )
            for name, topic in topics.items()
        ],
        timeout_ms=_REQUEST_MS,
    )
    for name, code, *message in answer.topic_errors:
        if code not in {0, TopicAlreadyExistsError.errno}:
            raise Misconfigured(
                f"the broker refused to create the topic {name}: {(message and message[0]) or for_code(code)}"
            )


async def _partitions(admin: AIOKafkaAdminClient, names: set[str]) -> dict[str, int]:
    """Return the number of partitions by topic, waiting until a new topic is known to the whole cluster."""
    # Some brokers create a topic that is only asked about, with a default count: ask for known ones alone.
    while not names <= set(await admin.list_topics()):  # noqa: ASYNC110 (no event tells of another process)
        await asyncio.sleep(_PAUSE_SECONDS)
    while True:
        answer = await admin.describe_topics(sorted(names))
        if all(topic["error_code"] == 0 and topic["partitions"] for topic in answer):
            return {topic["topic"]: len(topic["partitions"]) for topic in answer}
        await asyncio.sleep(_PAUSE_SECONDS)


def _compare(wanted: Mapping[str, Topic], found: Mapping[str, int]) -> None:
    for name, topic in wanted.items():
        if found[name] != topic.partitions:
            raise Misconfigured(
                f"the topic {name} has {found[name]} partitions where {topic.partitions} are expected: "
                "delete it (what it holds is lost) to have it created again, "
                "or set LAMINA_TOPIC_PREFIX to start beside it"
            )
