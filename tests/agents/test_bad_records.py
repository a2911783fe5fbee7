"""Bad records on the topics of a running system: each is kept with its bytes, and the partition moves on."""

import asyncio
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from uuid import UUID, uuid4

import orjson
import pytest
import pytest_asyncio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.partitioner import DefaultPartitioner

from lamina.agents.embedded import embedded
from lamina.agents.process import Running
from lamina.streams.codec import encode
from lamina.streams.identity import turn_id_from_message
from lamina.streams.namespace import Namespace, namespace_of
from lamina.streams.records import Admitted, Command, Embedded, Status, Unit
from lamina.streams.settings import Settings
from lamina.streams.topics import (
    ADMITTED,
    CONSOLIDATION,
    DEAD_LETTERS,
    EMBEDDED,
    MAX_CONTENT_BYTES,
    TURNS,
    Topic,
    full_name,
)

pytestmark = [pytest.mark.broker, pytest.mark.asyncio(loop_scope="module")]

DEADLINE_SECONDS = 60
KEPT = {Status.REMEMBERED, Status.CONSOLIDATED}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LETTERS = TopicPartition(full_name(DEAD_LETTERS, "lamina"), 0)
FAR = b"9999-12-31T23:59:59-10:00"

numbers = count(1)


@dataclass
class System:
    """The running system from outside: a plain producer and consumer, and the tables to look into."""

    running: Running
    producer: AIOKafkaProducer
    consumer: AIOKafkaConsumer
    letters: list[ConsumerRecord] = field(default_factory=list)
    """Everything on the dead-letter topic, as far as it was read."""
    bad: set[tuple[str, int, int]] = field(default_factory=set)
    """Where the bad records of this module went: topic, partition, offset."""

    async def put(
        self, topic: Topic, value: bytes | None, key: bytes | None, *, partition=None, headers=()
    ) -> tuple[str, int, int]:
        sent = await self.producer.send_and_wait(
            full_name(topic, "lamina"), value, key=key, partition=partition, headers=list(headers)
        )
        return sent.topic, sent.partition, sent.offset

    async def put_bad(self, topic: Topic, value: bytes | None, key: bytes | None, **how) -> ConsumerRecord:
        """Put a record that can never be processed, and return the dead letter that it becomes."""
        place = await self.put(topic, value, key, **how)
        self.bad.add(place)
        async with asyncio.timeout(DEADLINE_SECONDS):
            while place not in map(place_of, self.letters):
                self.letters.append(await self.consumer.getone())
        [letter] = [letter for letter in self.letters if place_of(letter) == place]
        return letter

    async def read_letters(self) -> None:
        """Read what else is on the dead-letter topic."""
        end = (await self.consumer.end_offsets([LETTERS]))[LETTERS]
        async with asyncio.timeout(DEADLINE_SECONDS):
            while len(self.letters) < end:
                self.letters.append(await self.consumer.getone())

    async def remembered(self, namespace: Namespace, turn: UUID) -> Unit:
        """Wait until a turn is remembered, and return it."""
        return (await self.all_remembered(namespace, [turn]))[0]

    async def all_remembered(self, namespace: Namespace, turns: Sequence[UUID]) -> list[Unit]:
        tables = self.running.outside.ports.tables
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                units = await tables.units(namespace, turns)
                if all(turn in units and units[turn].status in KEPT for turn in turns):
                    return [units[turn] for turn in turns]
                await asyncio.sleep(0.02)

    async def a_good_turn(self, namespace: Namespace, *, partition=None, **fields) -> Unit:
        """Put a turn that matters, and wait until it is remembered."""
        name = f"m{next(numbers)}"
        value = a_turn(message_id=name, **fields)
        await self.put(TURNS, value, namespace.encode(), partition=partition)
        return await self.remembered(namespace, turn_id_from_message(namespace, name))

    async def turns_of(self, namespace: Namespace) -> int:
        return sum((await self.running.outside.ports.tables.tally(namespace)).turns.values())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory, weights_cache):
    data = tmp_path_factory.mktemp("bad-records")
    settings = Settings(
        data_dir=str(data), cache_dir=str(weights_cache), http_port=0, batch_within_seconds=0.005
    )
    async with embedded(settings) as running:
        producer = AIOKafkaProducer(
            bootstrap_servers=running.outside.bootstrap, max_request_size=8 * 1024 * 1024
        )
        consumer = AIOKafkaConsumer(bootstrap_servers=running.outside.bootstrap)
        await producer.start()
        await consumer.start()
        consumer.assign([LETTERS])
        await consumer.seek_to_beginning(LETTERS)
        yield System(running, producer, consumer)
        await consumer.stop()
        await producer.stop()


@pytest.fixture
def user(request) -> Namespace:
    """A user of the test's own."""
    return namespace_of("local", f"{request.node.originalname}-{next(numbers)}")


def a_turn(**fields) -> bytes:
    said = f"Please remember that I am allergic to penicillin, and that my locker is {next(numbers)}."
    return orjson.dumps({"role": "user", "content": said} | fields)


def a_unit(namespace: Namespace) -> Unit:
    return Unit(
        id=uuid4(), namespace=namespace, kind="turn", session="s", text="x", said_at=NOON, recorded_at=NOON
    )


def a_command(namespace: Namespace) -> Command:
    return Command(
        id=uuid4(),
        namespace=namespace,
        kind="promote",
        thread=uuid4(),
        exchanges=(uuid4(),),
        evidence=(uuid4(),),
        reason="salience",
        position=1,
        issued_at=NOON,
    )


def home_of(key: bytes) -> int:
    """The partition that a key belongs to."""
    every = list(range(TURNS.partitions))
    return int(DefaultPartitioner()(key, every, every))


def place_of(letter: ConsumerRecord) -> tuple[str, int, int]:
    headers = dict(letter.headers)
    return headers["topic"].decode(), int(headers["partition"]), int(headers["offset"])


def reason_of(letter: ConsumerRecord) -> str:
    return dict(letter.headers)["reason"].decode()


NOT_RECORDS = [
    pytest.param(b"not json", "malformed", id="not JSON"),
    pytest.param(b"", "malformed", id="no bytes"),
    pytest.param(b'{"content": "caf\xe9"}', "malformed", id="not UTF-8"),
    pytest.param(b'[{"content": "x"}]', "malformed", id="a list"),
    pytest.param(b'"text"', "malformed", id="a text"),
    pytest.param(b"null", "malformed", id="a JSON null"),
    pytest.param(b"{}", "malformed", id="no field at all"),
    pytest.param(b"[" * 2000 + b"]" * 2000, "malformed", id="too deep"),
    pytest.param(a_turn(schema_version=2), "newer_schema", id="a newer schema"),
    pytest.param(None, "malformed", id="a tombstone"),
]

BAD_TURNS = [
    *NOT_RECORDS,
    pytest.param(b'{"role": "user"}', "malformed", id="no content"),
    pytest.param(a_turn(content=None), "malformed", id="content is null"),
    pytest.param(a_turn(content=7), "malformed", id="content is a number"),
    pytest.param(a_turn(content=""), "invalid_turn", id="empty content"),
    pytest.param(a_turn(content=" \n\t"), "invalid_turn", id="blank content"),
    pytest.param(a_turn(content="é" * (MAX_CONTENT_BYTES // 2 + 1)), "invalid_turn", id="a byte too much"),
    pytest.param(a_turn(content="x" * 1_000_000), "invalid_turn", id="1 MB of content"),
    pytest.param(a_turn(schema_version=0), "malformed", id="schema 0"),
    pytest.param(a_turn(role="wizard"), "malformed", id="an unknown role"),
    pytest.param(a_turn(timestamp="yesterday"), "malformed", id="a time that is none"),
    pytest.param(a_turn(timestamp=FAR.decode()), "invalid_turn", id="a time beyond the calendar"),
    pytest.param(a_turn(message_id=""), "malformed", id="an empty message id"),
    pytest.param(a_turn(id="not-a-uuid"), "malformed", id="an id that is none"),
    pytest.param(b'{"content": "half a pair \\ud800"}', "malformed", id="half a surrogate pair"),
]


@pytest.mark.parametrize(("value", "reason"), BAD_TURNS)
async def test_a_bad_turn_is_kept_as_it_came_and_the_next_one_is_remembered(system, user, value, reason):
    headers = [("traceparent", b"00-abc"), ("odd", b"\x00\xff")]
    letter = await system.put_bad(TURNS, value, user.encode(), headers=headers)
    assert (letter.value, reason_of(letter)) == (value or b"", reason)
    kept = dict(letter.headers)
    assert kept["source-key"] == user.encode()
    assert kept["source-null"] == (b"1" if value is None else b"0")
    assert [kept[f"source-header-{name}"] for name, _ in headers] == [value for _, value in headers]
    assert kept["step"] == b"gate"
    assert kept["detail"]
    await system.a_good_turn(user)
    assert await system.turns_of(user) == 1


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(None, id="no key"),
        pytest.param(b"", id="an empty key"),
        pytest.param(b"\xff\xfe", id="not UTF-8"),
        pytest.param(b"ada", id="no slash"),
        pytest.param(b"/ada", id="no tenant"),
        pytest.param(b"local/", id="no user"),
        pytest.param(b"lo cal/ada", id="a tenant with a blank"),
        pytest.param("café/ada".encode(), id="a tenant with an accent"),
        pytest.param(b"local/ada/x", id="a user that is not encoded"),
        pytest.param(b"local/ada%2fx", id="a user in another spelling"),
    ],
)
async def test_a_turn_with_a_wrong_key_is_kept_and_the_partition_moves_on(system, user, key):
    partition = home_of(user.encode())
    value = a_turn()
    letter = await system.put_bad(TURNS, value, key, partition=partition)
    assert (letter.value, reason_of(letter)) == (value, "wrong_key")
    assert dict(letter.headers).get("source-key") == key
    await system.a_good_turn(user, partition=partition)


@pytest.mark.parametrize(("value", "reason"), NOT_RECORDS)
@pytest.mark.parametrize("topic", [ADMITTED, EMBEDDED, CONSOLIDATION], ids=lambda topic: topic.name)
async def test_what_is_no_record_is_kept_on_every_topic_that_is_read(system, user, topic, value, reason):
    letter = await system.put_bad(topic, value, user.encode(), headers=[("dense", vector(384))])
    assert (letter.value, reason_of(letter)) == (value or b"", reason)
    assert dict(letter.headers)["source-header-dense"] == vector(384)
    if topic is CONSOLIDATION:
        await a_good_command(system, user)
    else:
        await system.a_good_turn(user)


def vector(length: int, *, first: float = 1.0) -> bytes:
    return struct.pack(f"<{length}f", first, *[0.0] * (length - 1))


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="no vector"),
        pytest.param({"dense": b""}, id="an empty vector"),
        pytest.param({"dense": b"abc"}, id="no whole number"),
        pytest.param({"dense": vector(8)}, id="another dimension"),
        pytest.param({"dense": vector(384, first=float("nan"))}, id="not a number"),
        pytest.param({"dense": vector(384), "exchange": vector(383)}, id="an exchange of another dimension"),
    ],
)
async def test_an_embedded_turn_without_a_fitting_vector_is_kept_and_stops_nobody(system, user, headers):
    value = encode(Embedded(unit=a_unit(user)))
    letter = await system.put_bad(EMBEDDED, value, user.encode(), headers=list(headers.items()))
    assert (letter.value, reason_of(letter)) == (value, "malformed")
    assert {name: dict(letter.headers)[f"source-header-{name}"] for name in headers} == headers
    await system.a_good_turn(user)
    assert await system.turns_of(user) == 1


@pytest.mark.parametrize("key", [None, b"no-namespace", b"other/tenant"])
@pytest.mark.parametrize("topic", [ADMITTED, EMBEDDED, CONSOLIDATION], ids=lambda topic: topic.name)
async def test_a_record_under_a_key_that_is_not_its_namespace_is_kept(system, user, topic, key):
    record = {ADMITTED: Admitted, EMBEDDED: Embedded}.get(topic)
    value = encode(a_command(user) if record is None else record(unit=a_unit(user)))
    partition = home_of(user.encode())
    headers = [("dense", vector(384))]
    letter = await system.put_bad(topic, value, key, partition=partition, headers=headers)
    assert (letter.value, reason_of(letter)) == (value, "wrong_key")
    if topic is CONSOLIDATION:
        await a_good_command(system, user)
    else:
        await system.a_good_turn(user)


async def a_good_command(system: System, user: Namespace) -> None:
    """Put a command that names no thread: it reaches the journal, and is skipped there with its reason."""
    await system.put(CONSOLIDATION, encode(a_command(user)), user.encode())
    async with asyncio.timeout(DEADLINE_SECONDS):
        while (await system.running.outside.ports.tables.tally(user)).commands.get("skipped") != 1:
            await asyncio.sleep(0.02)


async def test_unknown_fields_are_tolerated(system, user):
    unit = await system.a_good_turn(user, colour="red", nested={"deep": [1, 2]}, metadata={"app": "chat"})
    assert unit.metadata == {"app": "chat"}


async def test_metadata_as_deep_as_json_allows_harms_neither_its_turn_nor_the_next(system, user):
    deep = b'{"content": "Please remember that I am allergic to bees.", "metadata": {"a": %s}}'
    place = await system.put(TURNS, deep % (b"[" * 900 + b"]" * 900), user.encode())
    await system.a_good_turn(user)
    await system.a_good_turn(user)
    await system.read_letters()
    if place in map(place_of, system.letters):
        system.bad.add(place)
    else:
        assert await system.turns_of(user) == 3


@pytest.mark.parametrize(
    ("given", "said_at", "source"),
    [
        ("2026-03-01T14:00:00+02:00", NOON, "given"),
        (int(NOON.timestamp()), NOON, "given"),
        (str(int(NOON.timestamp())), NOON, "given"),
        ("2026-03-01T12:00:00", NOON, "zoneless"),
        ("2099-01-01T00:00:00Z", datetime(2099, 1, 1, tzinfo=UTC), "future"),
        ("9999-12-31T23:59:59Z", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), "future"),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC), "given"),
        (None, None, "missing"),
    ],
)
async def test_event_time_is_kept_and_doubt_is_flagged(system, user, given, said_at, source):
    before = datetime.now(UTC)
    unit = await system.a_good_turn(user, timestamp=given)
    assert unit.time_source == source
    if said_at is None:
        assert abs((unit.said_at - before).total_seconds()) < DEADLINE_SECONDS
        assert unit.said_at == unit.recorded_at
    else:
        assert unit.said_at == said_at
    assert unit.recorded_at != said_at
    await system.a_good_turn(user, timestamp=given)
    await system.a_good_turn(user)
    assert await system.turns_of(user) == 3


async def test_the_same_message_id_five_times_is_one_memory(system, user):
    value = a_turn(message_id="order-7")
    for _ in range(5):
        await system.put(TURNS, value, user.encode())
    unit = await system.remembered(user, turn_id_from_message(user, "order-7"))
    await system.a_good_turn(user)
    assert await system.turns_of(user) == 2
    assert unit.text == orjson.loads(value)["content"]


async def test_the_first_content_under_a_message_id_is_the_one_kept(system, user):
    first, second = a_turn(message_id="order-7"), a_turn(message_id="order-7")
    await system.put(TURNS, first, user.encode())
    await system.put(TURNS, second, user.encode())
    await system.a_good_turn(user)
    unit = await system.remembered(user, turn_id_from_message(user, "order-7"))
    assert unit.text == orjson.loads(first)["content"]
    assert await system.turns_of(user) == 2


async def test_one_message_id_of_two_users_is_two_memories(system, user):
    other = namespace_of("local", f"other-{next(numbers)}")
    for namespace in (user, other):
        await system.put(TURNS, a_turn(message_id="order-7"), namespace.encode())
        await system.remembered(namespace, turn_id_from_message(namespace, "order-7"))


async def test_an_id_that_is_another_users_is_refused_and_touches_nothing(system, user):
    theirs = await system.a_good_turn(namespace_of("other", f"victim-{next(numbers)}"))
    value = a_turn(id=str(theirs.id))
    letter = await system.put_bad(TURNS, value, user.encode())
    assert letter.value == value
    assert await system.turns_of(user) == 0
    assert (await system.remembered(theirs.namespace, theirs.id)).text == theirs.text


async def test_the_same_sentence_said_twice_is_two_memories(system, user):
    said = "Please remember that I am allergic to walnuts."
    await system.a_good_turn(user, content=said)
    await system.a_good_turn(user, content=said)
    await system.put(TURNS, orjson.dumps({"content": said}), user.encode())
    await system.put(TURNS, orjson.dumps({"content": said}), user.encode())
    await system.a_good_turn(user)
    assert await system.turns_of(user) == 5


async def test_content_of_exactly_the_limit_is_a_turn(system, user):
    said = "Please remember that I am allergic to bees. "
    content = said + "x" * (MAX_CONTENT_BYTES - len(said))
    unit = await system.a_good_turn(user, content=content)
    assert unit.text == content


async def test_a_lone_turn_waits_for_no_fetch_to_run_out(system, user):
    """The embedded broker holds an empty fetch to its end; with Faust's own 1.5 s a lone turn took 2.3 s."""
    loop = asyncio.get_running_loop()
    seconds = []
    for _ in range(3):
        begun = loop.time()
        await system.a_good_turn(user)
        seconds.append(loop.time() - begun)
    assert min(seconds) < 1


async def test_every_bad_record_became_one_dead_letter_and_nothing_else_did(system):
    await system.read_letters()
    letters = [place_of(letter) for letter in system.letters]
    assert len(letters) == len(set(letters)) == len(system.bad)
    assert set(letters) == system.bad
    assert not system.running.ending.told.is_set()
