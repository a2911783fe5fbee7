"""A memory for each test."""

import pytest

from lamina.sinks.tables import open_tables

from .recall_kit import Memory


@pytest.fixture
async def memory(tmp_path):
    tables = await open_tables(f"sqlite+aiosqlite:///{tmp_path / 't.db'}")
    yield Memory(tables)
    await tables.close()
