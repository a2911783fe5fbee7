"""The schema's version, brought up to this build's by Alembic; no `alembic.ini` is needed."""

from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncEngine

from lamina.sinks import migrations
from lamina.sinks.tables_faults import translated
from lamina.streams.errors import Misconfigured

_LOCK = 0x6C616D696E61
"""PostgreSQL's advisory lock of migrations: the bytes of `lamina`."""


async def upgrade(engine: AsyncEngine) -> None:
    """Migrate to the newest version, in one transaction; of processes that start at once, one does it.

    Alembic keeps its state in module globals: one process migrates one database at a time.

    Args:
        engine: for SQLite one whose transactions begin with BEGIN IMMEDIATE (`database.sqlite_migrator`).

    Raises:
        TablesUnavailable: the database does not answer now.
        Misconfigured: the schema is newer than this build.
    """
    await _migrate(engine, command.upgrade, "head")


async def downgrade(engine: AsyncEngine, revision: str) -> None:
    """Take the schema back to an older version, `base` for none: what it held that is gone then is lost."""
    await _migrate(engine, command.downgrade, revision)


async def _migrate(engine: AsyncEngine, step: Callable[[Config, str], None], revision: str) -> None:
    config = Config()
    folder = Path(migrations.__path__[0])
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")

    def run(connection: Connection) -> None:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        config.attributes["connection"] = connection
        step(config, revision)

    try:
        with translated():
            async with engine.begin() as connection:
                await connection.run_sync(run)
    except CommandError as exc:
        raise Misconfigured(f"the tables were made by a newer Lamina: {exc}; upgrade this one") from exc
