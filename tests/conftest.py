"""Fixtures that every test may ask for."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import platformdirs
import pytest

from lamina.sinks.tables import SqlTables, open_tables
from lamina.sinks.weights import ensure_weights

from . import postgres
from .openai_server import openai_host, openai_server

__all__ = ["openai_host", "openai_server"]  # fixtures are found where they are named


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


@pytest.fixture(scope="session")
def weights_cache() -> Path:
    """The user's own cache folder with the weights in it: they are fetched once, not once a run."""
    chosen = os.environ.get("LAMINA_CACHE_DIR")
    cache = Path(chosen) if chosen else platformdirs.user_cache_path("lamina")
    ensure_weights(cache)
    return cache
