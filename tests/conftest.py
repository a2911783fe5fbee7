"""Fixtures that every test may ask for."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from lamina.sinks.tables import SqlTables, open_tables

from . import postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    """One PostgreSQL server for the whole run; skips where none is installed."""
    programs = postgres.installed()
    if programs is None:
        pytest.skip(postgres.HOW_TO)
    with postgres.running(programs) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
async def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, once of each engine."""
    if request.param == "sqlite":
        return f"sqlite+aiosqlite:///{tmp_path / 'tables.db'}"
    return await request.getfixturevalue("postgres_server").new_database()


@pytest.fixture
async def tables(database_url: str) -> AsyncIterator[SqlTables]:
    """Empty tables, once on each engine."""
    opened = await open_tables(database_url)
    yield opened
    await opened.close()
