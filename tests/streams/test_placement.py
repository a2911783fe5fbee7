"""Where a turn belongs: its id, its time, its session, its exchange."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from uuid import UUID, uuid4

import pytest

from lamina.streams.errors import InvalidTurn, WrongKey
from lamina.streams.identity import turn_id_from_message
from lamina.streams.namespace import namespace_of, parse_namespace, tenant_of, user_of
from lamina.streams.placement import arrive, place, reply_closes
from lamina.streams.records import Turn
from lamina.streams.topics import MAX_CONTENT_BYTES

ADA = namespace_of("acme", "ada")
NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def arrived(content: str = "hello", *, received_at: datetime = NOW, **fields):
    return arrive(ADA, Turn(content=content, **fields), fallback_id=uuid4(), received_at=received_at)


async def placed(tables, *placements):
    async with tables.transaction({each.namespace for each in placements}) as tx:
        return await place(tx, placements)


def test_an_id_comes_from_the_door_else_from_the_message_id_else_from_the_record() -> None:
    door, fallback = uuid4(), uuid4()
    assert (
        arrive(ADA, Turn(content="x", id=door, message_id="m"), fallback_id=fallback, received_at=NOW).id
        == door
    )
    assert arrived(message_id="m").id == turn_id_from_message(ADA, "m")
    assert arrive(ADA, Turn(content="x"), fallback_id=fallback, received_at=NOW).id == fallback


@pytest.mark.parametrize(
    ("timestamp", "said_at", "source"),
    [
        (None, NOW, "missing"),
        (datetime(2024, 1, 2, 3, 4), datetime(2024, 1, 2, 3, 4, tzinfo=UTC), "zoneless"),
        (
            datetime(2024, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))),
            datetime(2024, 1, 2, 1, tzinfo=UTC),
            "given",
        ),
        (datetime(2099, 1, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC), "future"),
    ],
)
def test_event_time_is_kept_and_what_is_doubtful_about_it_is_flagged(timestamp, said_at, source) -> None:
    placement = arrived(timestamp=timestamp)
    assert (placement.said_at, placement.time_source) == (said_at, source)


@pytest.mark.parametrize(
    "content", ["", "  \n", "x" * (MAX_CONTENT_BYTES + 1), "é" * (MAX_CONTENT_BYTES // 2 + 1)]
)
def test_a_turn_without_content_or_with_too_much_is_refused(content) -> None:
    with pytest.raises(InvalidTurn):
        arrived(content)


async def test_turns_get_ordinals_in_their_session_and_positions_in_their_namespace(tables) -> None:
    units = await placed(tables, arrived(run_id="a"), arrived(run_id="b"), arrived(run_id="a"))
    assert [(unit.session, unit.ordinal, unit.position) for unit in units] == [
        ("a", 0, 1),
        ("b", 0, 2),
        ("a", 1, 3),
    ]
    assert not any(unit.visible for unit in units)


async def test_a_turn_that_comes_again_keeps_its_first_place(tables) -> None:
    first, second = arrived(message_id="1", run_id="a"), arrived(message_id="2", run_id="a")
    once = await placed(tables, first, second, first)
    again = await placed(tables, second, first)
    assert [unit.ordinal for unit in once] == [0, 1, 0]
    assert [unit.id for unit in again] == [second.id, first.id]
    assert [unit.position for unit in again] == [2, 1]


async def test_without_a_run_id_half_an_hour_of_silence_begins_a_session(tables) -> None:
    minutes = (0, 29, 58, 89)
    turns = [arrived(timestamp=NOW + timedelta(minutes=minute), message_id=str(minute)) for minute in minutes]
    units = await placed(tables, *turns[:2])
    units += await placed(tables, *turns[2:])
    assert [unit.ordinal for unit in units] == [0, 1, 2, 0]
    assert len({unit.session for unit in units}) == 2


@pytest.mark.parametrize(
    ("speakers", "closes"),
    [
        ([("user", "Ada"), ("assistant", "Bot")], [True]),
        ([("user", "Ada"), ("user", "Ada"), ("assistant", "Bot")], [False, True]),
        ([("assistant", "Bot"), ("user", "Ada"), ("assistant", "Bot")], [False, True]),
        ([("user", "Ada"), ("assistant", "Bot"), ("assistant", "Bot")], [True, False]),
        ([("user", "Ada"), ("user", "Bo"), ("user", "Ada"), ("user", "Bo")], [True, False, True]),
        ([("user", "Ada"), ("tool", "search")], [False]),
    ],
)
async def test_an_exchange_is_a_turn_and_its_reply(tables, speakers, closes) -> None:
    units = await placed(tables, *(arrived(role=role, name=name, run_id="a") for role, name in speakers))
    assert [reply_closes(*pair) for pair in pairwise(units)] == closes


@pytest.mark.parametrize(
    "key",
    [None, b"", b"acme", b"acme/", b"/ada", b"ac me/ada", b"acme/a b", b"\xff/ada", b"acme/a/b", b"acme/%e9"],
)
def test_a_key_that_is_no_namespace_is_refused(key) -> None:
    with pytest.raises(WrongKey):
        parse_namespace(key)


@pytest.mark.parametrize("user", ["ada", "a b", "用户", "a/b", "ada@example.org", "%"])
def test_any_user_fits_into_a_namespace_and_comes_out_again(user) -> None:
    namespace = namespace_of("acme", user)
    assert parse_namespace(namespace.encode()) == namespace
    assert (tenant_of(namespace), user_of(namespace)) == ("acme", user)


def test_ids_differ_between_namespaces() -> None:
    assert turn_id_from_message(ADA, "1") != turn_id_from_message(namespace_of("acme", "bo"), "1")
    assert isinstance(turn_id_from_message(ADA, "1"), UUID)
