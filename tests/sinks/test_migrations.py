"""The migrations build what the metadata says, take it down again, and do so once."""

import asyncio

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from lamina.sinks.database import sqlite_writer
from lamina.sinks.migrate import downgrade, upgrade
from lamina.sinks.schema import metadata
from lamina.sinks.tables import open_tables
from lamina.streams.errors import Misconfigured

from .tables_kit import a_turn, insert


@pytest.fixture
async def engine(database_url):
    sqlite = database_url.startswith("sqlite")
    made = sqlite_writer(database_url) if sqlite else create_async_engine(database_url)
    yield made
    await made.dispose()


async def described(engine: AsyncEngine) -> list[str]:
    """What the database itself says of its tables and indexes."""
    sqlite = """
        SELECT sql FROM sqlite_master
        WHERE sql IS NOT NULL AND name NOT LIKE 'alembic%' AND name NOT LIKE 'sqlite%'
    """
    postgres = """
        SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'
        UNION ALL
        SELECT concat_ws(' ', table_name, column_name, data_type, collation_name, is_nullable, column_default)
        FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'
    """
    async with engine.connect() as connection:
        rows = await connection.execute(text(sqlite if engine.dialect.name == "sqlite" else postgres))
        return sorted(" ".join(row[0].split()) for row in rows)


async def test_the_migrated_schema_is_that_of_the_metadata(engine):
    await upgrade(engine)
    async with engine.connect() as connection:
        differences = await connection.run_sync(
            lambda sync: compare_metadata(MigrationContext.configure(sync, {"compare_type": True}), metadata)
        )
    assert differences == []
    migrated = await described(engine)

    await downgrade(engine, "base")
    assert await described(engine) == []
    async with engine.connect() as connection:
        assert await connection.run_sync(lambda sync: inspect(sync).get_table_names()) == ["alembic_version"]

    async with engine.begin() as connection:
        await connection.run_sync(metadata.create_all)
    assert await described(engine) == migrated  # predicates of indexes too, which Alembic does not compare


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
