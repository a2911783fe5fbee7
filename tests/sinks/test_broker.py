"""The embedded broker, the topics on it, and the way onto them."""

import socket

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from lamina.sinks import broker_embedded
from lamina.sinks.broker_embedded import start_broker
from lamina.sinks.kafka_topics import ensure_topics
from lamina.sinks.publisher import KafkaPublisher
from lamina.streams.errors import BrokerUnavailable, InvalidTurn, Misconfigured
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Outgoing
from lamina.streams.settings import Settings
from lamina.streams.topics import CHANGES, TOPICS, TURNS, full_name

pytestmark = pytest.mark.broker

ANA = Namespace("acme/ana")
NOBODY = "127.0.0.1:1"


@pytest.fixture
async def broker(tmp_path):
    broker = await start_broker(tmp_path)
    yield broker
    await broker.stop()


@pytest.fixture
async def admin(broker):
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    yield admin
    await admin.close()


async def test_topics_are_created_as_the_table_states(broker, admin):
    await ensure_topics(broker.bootstrap, Settings(topic_prefix="mem"))

    found = {t["topic"]: len(t["partitions"]) for t in await admin.describe_topics(await admin.list_topics())}
    assert found == {full_name(t, "mem"): t.partitions for t in TOPICS}
    answer = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "mem.turns")])
    configs = {entry[0]: entry[1] for entry in answer[0].resources[0][4]}
    assert configs["retention.ms"] == str(168 * 3_600_000)
    assert configs["max.message.bytes"] == str(TURNS.max_record_bytes)


async def test_topics_that_exist_are_left_alone(broker):
    await ensure_topics(broker.bootstrap, Settings())
    publisher = await KafkaPublisher.open(broker.bootstrap, Settings())
    await publisher.publish([Outgoing(TURNS, ANA, b"{}")])
    await publisher.close()

    await ensure_topics(broker.bootstrap, Settings(create_topics=False))

    assert len(await everything_on(broker, "lamina.turns", 1)) == 1


async def test_another_partition_count_is_refused_with_both_counts_and_the_remedy(broker, admin):
    await admin.create_topics([NewTopic("lamina.turns", 3, 1)])

    with pytest.raises(Misconfigured, match=r"lamina\.turns has 3 partitions where 8 are.*delete"):
        await ensure_topics(broker.bootstrap, Settings())


async def test_missing_topics_are_named_where_they_may_not_be_created(broker, admin):
    with pytest.raises(Misconfigured, match=r"no topic .*lamina\.turns.*LAMINA_CREATE_TOPICS"):
        await ensure_topics(broker.bootstrap, Settings(create_topics=False))

    assert await admin.list_topics() == []


async def test_an_unreachable_broker_is_named_with_the_remedy():
    with pytest.raises(Misconfigured, match=r"no broker answers at 127\.0\.0\.1:1 .*set LAMINA_BROKER"):
        await ensure_topics(NOBODY, Settings(), within_seconds=0.5)


async def test_published_records_arrive_whole_and_in_the_order_of_their_key(broker):
    await ensure_topics(broker.bootstrap, Settings())
    publisher = await KafkaPublisher.open(broker.bootstrap, Settings())
    values = [f'{{"n":{n}}}'.encode() for n in range(50)]

    await publisher.publish([Outgoing(CHANGES, ANA, value, {"message-id": b"m"}) for value in values])

    records = await everything_on(broker, "lamina.changes", 50)
    assert [r.value for r in records] == values
    assert {(r.key, r.headers) for r in records} == {(b"acme/ana", (("message-id", b"m"),))}
    assert len({r.partition for r in records}) == 1
    await publisher.close()


async def test_a_record_too_large_for_its_topic_is_rejected_and_smaller_ones_still_pass(broker):
    await ensure_topics(broker.bootstrap, Settings())
    publisher = await KafkaPublisher.open(broker.bootstrap, Settings())

    with pytest.raises(InvalidTurn, match=f"the topic turns takes {TURNS.max_record_bytes}"):
        await publisher.publish([Outgoing(TURNS, ANA, b"x" * TURNS.max_record_bytes)])
    largest = Outgoing(CHANGES, ANA, b"x" * (CHANGES.max_record_bytes - 200))
    await publisher.publish([largest])

    assert len(await everything_on(broker, "lamina.changes", 1)) == 1
    await publisher.close()


async def test_a_broker_that_is_gone_is_a_transient_fault(broker):
    publisher = await KafkaPublisher.open(broker.bootstrap, Settings())
    await publisher.publish([Outgoing(TURNS, ANA, b"{}")])
    await broker.stop()

    with pytest.raises(BrokerUnavailable):
        await publisher.publish([Outgoing(TURNS, ANA, b"{}"), Outgoing(TURNS, ANA, b"{}")])
    await publisher.close()
    with pytest.raises(BrokerUnavailable, match=broker.bootstrap):
        await KafkaPublisher.open(broker.bootstrap, Settings())


async def test_a_port_taken_meanwhile_is_replaced_by_another(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter([taken.getsockname()[1], broker_embedded._free_port()])
        monkeypatch.setattr(broker_embedded, "_free_port", lambda: next(ports))

        broker = await start_broker(tmp_path)

        assert broker.bootstrap != f"127.0.0.1:{taken.getsockname()[1]}"
        await broker.stop()


async def everything_on(broker, topic, count):
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        return [await consumer.getone() for _ in range(count)]
    finally:
        await consumer.stop()
