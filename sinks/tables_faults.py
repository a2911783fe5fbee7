"""What the database's errors mean, said once: wait, or call an operator. All others are mistakes of ours."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg  # type: ignore[import-untyped]  # it ships no types
from sqlalchemy import exc as sa

from lamina.streams.errors import Misconfigured, TablesUnavailable

_SQLITE_WAIT = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_PROTOCOL,
    }
)
_SQLITE_OPERATOR = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_NOTADB,
    }
)
_POSTGRES_WAIT = ("08", "25006", "25P03", "40", "53", "55P03", "57", "58")
"""Lost connection, read-only (a failover), idle timeout, serialization and deadlock, out of resources,
lock timeout, shutdown or cancellation, and errors of the system below."""
_POSTGRES_OPERATOR = ("28", "3D000", "42501")
"""Wrong credentials, no such database, no right to."""


@contextmanager
def translated() -> Iterator[None]:
    """Raise Lamina's faults in place of the database's.

    Raises:
        TablesUnavailable: it refused, timed out, is locked or gave up this transaction: try again.
        Misconfigured: it cannot be used as configured: an operator must act.
    """
    try:
        yield
    except (sa.SQLAlchemyError, asyncpg.PostgresError, OSError) as exc:
        if _says_wait(exc):
            raise TablesUnavailable(f"the database does not answer now: {_sentence(exc)}") from exc
        if _says_operator(exc):
            raise Misconfigured(
                f"the database cannot be used: {_sentence(exc)}; check LAMINA_DATABASE"
            ) from exc
        raise


def _says_wait(exc: BaseException) -> bool:
    if isinstance(exc, (OSError, sa.TimeoutError)):  # refused or reset; no connection of the pool is free
        return True
    if isinstance(exc, sa.DBAPIError) and exc.connection_invalidated:
        return True
    return _sqlite_code(exc) in _SQLITE_WAIT or _sql_state(exc).startswith(_POSTGRES_WAIT)


def _says_operator(exc: BaseException) -> bool:
    return _sqlite_code(exc) in _SQLITE_OPERATOR or _sql_state(exc).startswith(_POSTGRES_OPERATOR)


def _sqlite_code(exc: BaseException) -> int | None:
    """Return SQLite's primary result code."""
    orig = exc.orig if isinstance(exc, sa.DBAPIError) else exc
    code = getattr(orig, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def _sql_state(exc: BaseException) -> str:
    """Return PostgreSQL's five-letter state; empty for other errors. A refused connection comes unwrapped."""
    orig = exc.orig if isinstance(exc, sa.DBAPIError) else exc
    return getattr(orig, "sqlstate", None) or ""


def _sentence(exc: BaseException) -> str:
    """Return the driver's words without SQLAlchemy's, which would repeat statement and parameters."""
    return str(getattr(exc, "orig", None) or exc) or type(exc).__name__
