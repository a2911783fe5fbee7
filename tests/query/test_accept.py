"""The accepting door: what is taken, what is refused and how, and that nothing is doubled."""

import asyncio
from datetime import UTC, datetime
from uuid import UUID

import pytest

from lamina.sinks.in_memory import InMemoryPublisher
from lamina.streams.codec import decode
from lamina.streams.errors import BrokerUnavailable
from lamina.streams.identity import event_id_for_key, turn_id_from_event, turn_id_from_message
from lamina.streams.namespace import namespace_of
from lamina.streams.records import Status, Turn
from lamina.streams.topics import DOOR_RECORD_BYTES, MAX_CONTENT_BYTES, TURNS

ADA = namespace_of("local", "ada")


def a_body(*contents, **fields):
    messages = [{"role": "user", "content": content} for content in contents or ("I keep bees.",)]
    return {"messages": messages, "user_id": "ada", **fields}


async def test_accepted_turns_are_published_in_order_under_their_namespace(world, http):
    answer = await http.post("/v1/memories", json=a_body("one", "two", run_id="r", agent_id="bot"))
    assert answer.status_code == 202
    body = answer.json()
    assert body["status"] == "accepted"
    turns = [decode(Turn, record.value) for record in world.publisher.records]
    assert [turn.content for turn in turns] == ["one", "two"]
    assert [str(turn.id) for turn in turns] == body["turn_ids"]
    assert body["turn_ids"] == [str(turn_id_from_event(UUID(body["event_id"]), i)) for i in (0, 1)]
    assert {(record.topic, record.key) for record in world.publisher.records} == {(TURNS, ADA)}
    assert {(turn.run_id, turn.agent_id) for turn in turns} == {("r", "bot")}
    headers = world.publisher.records[0].headers
    assert headers["message-id"].decode() == body["turn_ids"][0]
    assert datetime.fromisoformat(headers["event-time"].decode()) == world.clock.now()


async def test_the_answer_waits_for_the_broker(world):
    class Away(InMemoryPublisher):
        async def publish(self, records):
            raise BrokerUnavailable("the broker did not acknowledge", retry_after=2.4)

    async with world.caller(publisher=Away()) as http:
        answer = await http.post("/v1/memories", json=a_body())
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "3"
    assert answer.json()["reason"] == "broker_unavailable"


async def test_a_retry_after_a_failed_publish_loses_and_doubles_nothing(world):
    class AwayOnce(InMemoryPublisher):
        failed = False

        async def publish(self, records):
            if not self.failed:
                self.failed = True
                raise BrokerUnavailable("away")
            await super().publish(records)

    publisher = AwayOnce()
    async with world.caller(publisher=publisher, accept_rows=True) as http:
        first = await http.post("/v1/memories", json=a_body("one", idempotency_key="k"))
        second = await http.post("/v1/memories", json=a_body("one", idempotency_key="k"))
    assert (first.status_code, second.status_code) == (503, 202)
    assert len(publisher.records) == 1
    assert sum((await world.tables.tally()).turns.values()) == 1


async def test_same_key_and_body_get_the_same_answer(world, http):
    first = await http.post("/v1/memories", json=a_body(idempotency_key="order-7"))
    second = await http.post("/v1/memories", json=a_body(), headers={"Idempotency-Key": "order-7"})
    assert first.status_code == second.status_code == 202
    assert first.json() == second.json()
    assert first.json()["event_id"] == str(event_id_for_key("local", "order-7"))
    assert len({decode(Turn, record.value).id for record in world.publisher.records}) == 1


async def test_a_key_with_another_body_is_a_conflict(world, http):
    await http.post("/v1/memories", json=a_body("one", idempotency_key="k"))
    answer = await http.post("/v1/memories", json=a_body("two", idempotency_key="k"))
    assert answer.status_code == 409
    assert "another body" in answer.json()["detail"]
    assert len(world.publisher.records) == 1
    other_user = await http.post("/v1/memories", json={**a_body("one", idempotency_key="k"), "user_id": "bo"})
    assert other_user.status_code == 409


async def test_two_different_keys_in_one_request_are_refused(http):
    answer = await http.post(
        "/v1/memories", json=a_body(idempotency_key="a"), headers={"Idempotency-Key": "b"}
    )
    assert answer.status_code == 422
    assert "differ" in answer.json()["detail"]


async def test_without_a_key_the_same_sentence_is_two_turns(http):
    answers = [(await http.post("/v1/memories", json=a_body())).json() for _ in range(2)]
    assert answers[0]["event_id"] != answers[1]["event_id"]
    assert answers[0]["turn_ids"] != answers[1]["turn_ids"]


async def test_a_message_id_makes_one_memory_within_and_across_requests(world):
    message = {"role": "user", "content": "I keep bees.", "message_id": "m1"}
    async with world.caller(accept_rows=True) as http:
        twice = await http.post("/v1/memories", json={"messages": [message, message], "user_id": "ada"})
        again = await http.post("/v1/memories", json={"messages": [message], "user_id": "ada"})
        other = await http.post("/v1/memories", json={"messages": [message], "user_id": "bo"})
    expected = str(turn_id_from_message(ADA, "m1"))
    assert twice.json()["turn_ids"] == [expected, expected]
    assert again.json()["turn_ids"] == [expected]
    assert other.json()["turn_ids"] != [expected]
    assert sum((await world.tables.tally("local/ada")).turns.values()) == 1


async def test_embedded_rows_stand_before_the_broker_is_asked(world):
    seen = []

    class Watching(InMemoryPublisher):
        async def publish(self, records):
            ids = [decode(Turn, record.value).id for record in records]
            seen.append(await world.tables.units(ADA, ids))
            await super().publish(records)

    async with world.caller(publisher=Watching(), accept_rows=True) as http:
        answer = await http.post("/v1/memories", json=a_body("one", "two"))
    (units,) = seen
    assert {str(unit.id) for unit in units.values()} == set(answer.json()["turn_ids"])
    assert {unit.status for unit in units.values()} == {Status.ACCEPTED}


async def test_production_leaves_the_row_to_the_gate(world, http):
    await http.post("/v1/memories", json=a_body())
    assert sum((await world.tables.tally()).turns.values()) == 0


@pytest.mark.parametrize(
    ("given", "said_at", "source"),
    [
        ("2023-05-08T13:56:00+02:00", datetime(2023, 5, 8, 11, 56, tzinfo=UTC), "given"),
        ("2023-05-08T13:56:00", datetime(2023, 5, 8, 13, 56, tzinfo=UTC), "zoneless"),
        (1683554160, datetime(2023, 5, 8, 13, 56, tzinfo=UTC), "given"),
        ("2099-01-01T00:00:00Z", datetime(2099, 1, 1, tzinfo=UTC), "future"),
        (None, datetime(2026, 3, 1, 12, tzinfo=UTC), "missing"),
    ],
)
async def test_event_time_is_kept_and_doubt_is_flagged(world, given, said_at, source):
    async with world.caller(accept_rows=True) as http:
        answer = await http.post("/v1/memories", json=a_body(timestamp=given))
    assert answer.status_code == 202
    (unit,) = (await world.units_of(ADA, answer.json()["turn_ids"])).values()
    assert (unit.said_at, unit.time_source) == (said_at, source)


async def test_a_messages_own_time_wins_over_the_requests(world, http):
    messages = [
        {"role": "user", "content": "a", "timestamp": "2020-01-01T00:00:00Z"},
        {"role": "assistant", "content": "b"},
    ]
    await http.post(
        "/v1/memories", json={"messages": messages, "user_id": "ada", "timestamp": "2021-01-01T00:00:00Z"}
    )
    times = [decode(Turn, record.value).timestamp for record in world.publisher.records]
    assert times == [datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({**a_body(), "tenant": "acme"}, "tenant", "not permitted"),
        ({**a_body(), "user": "x"}, "user", "not permitted"),
        (
            {"messages": [{"role": "user", "content": "x", "text": "y"}], "user_id": "a"},
            "messages.0.text",
            "",
        ),
        ({"messages": [{"role": "human", "content": "x"}], "user_id": "a"}, "messages.0.role", "'assistant'"),
        (a_body("fine", " \n\t"), "messages.1.content", "empty"),
        ({"messages": [], "user_id": "a"}, "messages", "at least 1"),
        (a_body(*["x"] * 1001), "messages", "1000"),
        ({"messages": [{"role": "user", "content": "x"}], "user_id": ""}, "user_id", "empty"),
        ({"messages": [{"role": "user", "content": "x"}], "user_id": "é" * 400}, "user_id", "768"),
        (a_body(timestamp="yesterday"), "timestamp", "datetime"),
        (a_body(timestamp="9999-12-31T23:59:59-10:00"), "timestamp", "years"),
        (a_body(metadata={"big": "x" * 70_000}), "body", "65536"),
        (a_body(idempotency_key=""), "idempotency_key", "at least 1"),
    ],
)
async def test_a_wrong_request_is_answered_with_the_field_and_the_rule(world, http, body, field, says):
    answer = await http.post("/v1/memories", json=body)
    assert answer.status_code == 422
    problem = answer.json()
    assert [error["field"] for error in problem["errors"]] == [field]
    assert says in problem["errors"][0]["message"]
    assert field in problem["detail"]
    assert world.publisher.records == []


async def test_content_over_the_limit_names_the_message_and_the_limit(world, http):
    answer = await http.post("/v1/memories", json=a_body("fine", "é" * (MAX_CONTENT_BYTES // 2 + 1)))
    assert answer.status_code == 413
    problem = answer.json()
    assert problem["errors"][0]["field"] == "messages.1.content"
    assert str(MAX_CONTENT_BYTES) in problem["detail"]
    assert world.publisher.records == []


async def test_content_of_exactly_the_limit_is_accepted(http):
    answer = await http.post("/v1/memories", json=a_body("x" * MAX_CONTENT_BYTES))
    assert answer.status_code == 202


async def test_content_that_json_swells_sixfold_still_fits_into_a_record(world, http):
    answer = await http.post("/v1/memories", json=a_body("\x01" * (MAX_CONTENT_BYTES - 1) + "x"))
    assert answer.status_code == 202
    (record,) = world.publisher.records
    assert MAX_CONTENT_BYTES < len(record.value) < DOOR_RECORD_BYTES


@pytest.mark.parametrize("raw", [b"{", b"\xff\xfe", b"[]", b'"x"', b"null", b""])
async def test_a_body_that_is_no_json_object_is_a_client_error(http, raw):
    answer = await http.post("/v1/memories", content=raw, headers={"Content-Type": "application/json"})
    assert answer.status_code in {400, 422}
    assert answer.json()["detail"]


@pytest.mark.parametrize("place", ["content", "metadata", "user"])
async def test_half_a_surrogate_pair_is_a_client_error(http, place):
    texts = {"content": "x", "metadata": "x", "user": "x", place: "\\ud800"}
    raw = (
        f'{{"messages": [{{"role": "user", "content": "{texts["content"]}"}}], '
        f'"user_id": "{texts["user"]}", "metadata": {{"a": "{texts["metadata"]}"}}}}'
    )
    answer = await http.post("/v1/memories", content=raw, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422


async def test_emoji_chinese_and_nul_are_kept_as_they_are(world):
    texts = ["我喜欢喝茶 🍵", "👩‍👩‍👧‍👦", "a\x00b"]
    async with world.caller(accept_rows=True) as http:
        answer = await http.post("/v1/memories", json=a_body(*texts))
    units = await world.units_of(ADA, answer.json()["turn_ids"])
    assert [units[UUID(one)].text for one in answer.json()["turn_ids"]] == texts


async def test_many_at_once_with_one_key_are_one_request(world):
    async with world.caller(accept_rows=True) as http:
        answers = await asyncio.gather(
            *(http.post("/v1/memories", json=a_body("one", "two", idempotency_key="k")) for _ in range(8))
        )
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.text for answer in answers}) == 1
    assert sum((await world.tables.tally()).turns.values()) == 2
