"""A namespace's turns in pages, newest first: the history that `deep` reads."""

from datetime import timedelta

from sqlalchemy import event

from lamina.sinks.tables import open_tables
from lamina.streams.records import Status

from .tables_kit import ANN, BOB, NOW, a_fact, a_turn, plan_of


async def keep(tables, *units):
    async with tables.transaction({unit.namespace for unit in units}) as transaction:
        await transaction.insert_units(units)


def turns_of(count, namespace=ANN):
    return [
        a_turn(
            namespace,
            text=f"turn {number} of {namespace}",
            position=number,
            ordinal=number,
            said_at=NOW + timedelta(minutes=number),
            status=list(Status)[number % len(Status)],
            visible=number % 2 == 0,
        )
        for number in range(1, count + 1)
    ]


async def test_pages_hold_every_turn_once_whatever_became_of_it(tables):
    turns = turns_of(7)
    await keep(tables, *turns, a_fact("a", "b"))
    await keep(tables, *turns_of(3, BOB))
    pages, before = [], None
    while page := await tables.turns_before(ANN, before, 3):
        pages.append(page)
        before = page[-1].position
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [turn for page in pages for turn in page] == turns[::-1]
    assert await tables.turns_before(BOB, 1, 3) == []


async def test_only_what_was_said_by_then(tables):
    turns = turns_of(4)
    await keep(tables, *turns)
    said_to = NOW + timedelta(minutes=2)
    assert await tables.turns_before(ANN, None, 10, said_to=said_to) == [turns[1], turns[0]]


async def test_a_page_is_read_from_an_index_in_its_order(tmp_path):
    tables = await open_tables(f"sqlite+aiosqlite:///{tmp_path / 'tables.db'}")
    seen = []

    def note(_connection, _cursor, statement, parameters, _context, _many):
        if statement.startswith("SELECT"):
            seen.append((statement, parameters))

    event.listen(tables._database._reader.sync_engine, "before_cursor_execute", note)
    await keep(tables, *turns_of(9))
    seen.clear()
    await tables.turns_before(ANN, None, 3)
    await tables.turns_before(ANN, 5, 3, said_to=NOW)
    async with tables._database.writing() as sql:
        for statement, parameters in seen:
            (step,) = await plan_of(sql, statement, parameters)
            assert "SEARCH units USING INDEX ix_units_position" in step
    assert len(seen) == 2
    await tables.close()
