"""The migrations build what the metadata says, take it down again, and do so once."""

import asyncio
from uuid import uuid4

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from lamina.sinks.database import sqlite_migrator
from lamina.sinks.migrate import downgrade, upgrade
from lamina.sinks.rows import thread_row, unit_row
from lamina.sinks.rows_journal import command_row
from lamina.sinks.schema import metadata, namespaces, threads, units
from lamina.sinks.schema_journal import commands
from lamina.sinks.tables import open_tables
from lamina.streams.buffer import Buffered
from lamina.streams.errors import Misconfigured
from lamina.streams.journal import Transition

from .tables_kit import ANN, BOB, NOW, a_command, a_thread, a_turn, insert, later


@pytest.fixture
async def engine(database_url):
    sqlite = database_url.startswith("sqlite")
    made = sqlite_migrator(database_url) if sqlite else create_async_engine(database_url)
    yield made
    await made.dispose()


SQLITE = """
    SELECT 'table ' || name || ' ' || wr || ' ' || (sql LIKE '%AUTOINCREMENT%')
    FROM pragma_table_list JOIN sqlite_master USING (name)
    WHERE schema = 'main' AND pragma_table_list.type = 'table' AND {ours}
    UNION ALL
    SELECT m.name || ' ' || c.name || ' ' || c.type || ' ' || c."notnull" || ' ' || c.pk || ' '
           || coalesce(c.dflt_value, '')
    FROM sqlite_master m JOIN pragma_table_xinfo(m.name) c WHERE m.type = 'table' AND {ours_m}
    UNION ALL
    SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL
""".format(
    ours="name NOT LIKE 'alembic%' AND name NOT LIKE 'sqlite%'",
    ours_m="m.name NOT LIKE 'alembic%' AND m.name NOT LIKE 'sqlite%'",
)
POSTGRES = """
    SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'
    UNION ALL
    SELECT concat_ws(' ', table_name, column_name, data_type, collation_name, is_nullable, column_default)
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'
"""


async def described(engine: AsyncEngine) -> list[str]:
    """What the database itself says of its tables, columns and indexes, whatever the order of columns."""
    question = SQLITE if engine.dialect.name == "sqlite" else POSTGRES
    async with engine.connect() as connection:
        return sorted(" ".join(row[0].split()) for row in await connection.execute(text(question)))


async def test_the_migrated_schema_is_that_of_the_metadata(engine):
    await upgrade(engine)
    async with engine.connect() as connection:
        differences = await connection.run_sync(
            lambda sync: compare_metadata(MigrationContext.configure(sync, {"compare_type": True}), metadata)
        )
    assert differences == []
    migrated = await described(engine)
    assert migrated

    await downgrade(engine, "base")
    assert await described(engine) == []
    async with engine.connect() as connection:
        assert await connection.run_sync(lambda sync: inspect(sync).get_table_names()) == ["alembic_version"]

    async with engine.begin() as connection:
        await connection.run_sync(metadata.create_all)
    assert await described(engine) == migrated  # predicates of indexes too, which Alembic does not compare


async def test_the_second_version_keeps_the_rows_of_the_first_and_goes_back_to_it(engine, database_url):
    """Rows as the first version wrote them come out as records of this one, and the way back keeps them."""
    await upgrade(engine)
    await downgrade(engine, "0001")
    first = await described(engine)
    turn, done, open_one, thread = a_turn(), a_command(), a_command(BOB), a_thread(heads=(uuid4(),))
    await write_as_the_first_version(engine, turn, done, open_one, thread)

    tables = await open_tables(database_url)
    assert await tables.find([turn.id]) == {turn.id: turn}
    assert (await tables.thread(ANN, thread.id)).closed is False
    entry = await tables.journal_entry(done.id)
    assert (entry.command, entry.state, entry.edits, entry.attempts) == (done, "applied", (), 0)
    assert entry.history == (Transition("issued", NOW, None), Transition("applied", later(5), None))
    assert [entry.command for entry in await tables.journal()] == [open_one, done]

    topology = a_command(kind="topology", thread=None, units=(turn.id,), reason="sessions")
    async with tables.transaction([ANN, BOB]) as transaction:
        await transaction.issue_commands([topology])
        await transaction.push_buffer(ANN, [Buffered(turn.id, NOW)])
        await transaction.update_units([turn.model_copy(update={"summary": "in short"})])
    claim = await tables.claim("w", NOW, 60)
    assert claim.command == open_one
    await tables.put_off(claim, later(60), "the model is away", NOW)
    await tables.close()

    await downgrade(engine, "0001")
    assert await described(engine) == first
    async with engine.connect() as connection:
        rows = await connection.execute(text("SELECT state FROM commands ORDER BY ordinal"))
        assert [row.state for row in rows] == ["applied", "planned", "skipped"]
    again = await open_tables(database_url)
    assert await again.find([turn.id]) == {turn.id: turn}
    assert (await again.claim("w", NOW, 60)).command == open_one
    await again.close()


async def write_as_the_first_version(engine, turn, done, open_one, thread) -> None:
    """Insert a row of each table that the second version changes, without its columns."""
    news = {"summary", "spans", "closed", "sessions_since", "similarities"}
    journal = {"edits", "note", "attempts", "not_before"}
    rows = [
        (units, unit_row(turn)),
        (threads, thread_row(ANN, thread)),
        (commands, command_row(done, "applied") | {"finished_at": later(5), "plan": {"engine": "x"}}),
        (commands, command_row(open_one, "planned")),
        *(
            (
                namespaces,
                {"namespace": name, "position": 1, "seq": 0, "recurrence_version": 0, "lane_fence": 3},
            )
            for name in (ANN, BOB)
        ),
    ]
    async with engine.begin() as connection:
        for table, row in rows:
            old = {name: value for name, value in row.items() if name not in news | journal}
            await connection.execute(table.insert().values(old))


async def test_an_upgrade_keeps_what_is_there(database_url):
    tables, turn = await open_tables(database_url), a_turn()
    await insert(tables, turn)
    again = await open_tables(database_url)
    assert await again.find([turn.id]) == {turn.id: turn}
    await tables.close()
    await again.close()


async def test_processes_that_start_at_once_migrate_once(database_url):
    opened = await asyncio.gather(*(open_tables(database_url) for _ in range(4)))
    await insert(opened[0], a_turn())
    for tables in opened:
        await tables.close()


async def test_a_newer_schema_is_refused(database_url, engine):
    await upgrade(engine)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(Misconfigured, match="newer Lamina"):
        await open_tables(database_url)
