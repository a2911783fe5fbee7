"""Column types that give back exactly what was put in, on SQLite and on PostgreSQL alike."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import BigInteger, Dialect, Integer, Text, Uuid
from sqlalchemy.types import TypeDecorator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_ESCAPE = "\ue000"
_NUL = "\x00"


class Moment(TypeDecorator[datetime]):
    """A zone-aware time, stored as whole microseconds since 1970 and returned in UTC.

    PostgreSQL would keep microseconds and SQLite has no time at all; a number is exact on both, and
    sorts as time does. A zone-less time is a mistake of the caller: ValueError.
    """

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Return the microseconds since 1970."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value.isoformat()} has no time zone")
        return (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Return the time in UTC."""
        return None if value is None else moment_of(value)


class Verbatim(TypeDecorator[str]):
    r"""Text as people send it, U+0000 included.

    PostgreSQL refuses U+0000 in text, and a turn that holds one was accepted all the same. It is stored
    as U+E000 and `0`, and U+E000 itself (a private-use character that text hardly ever holds) twice.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Return the text without U+0000."""
        if value is None or (_NUL not in value and _ESCAPE not in value):
            return value
        return value.replace(_ESCAPE, _ESCAPE * 2).replace(_NUL, _ESCAPE + "0")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Return the text as it was."""
        return None if value is None else verbatim_of(value)


def moment_of(microseconds: int) -> datetime:
    """Return the time that `Moment` stored, in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)


def verbatim_of(stored: str) -> str:
    """Return the text that `Verbatim` stored."""
    if _ESCAPE not in stored:
        return stored
    # Between two escaped escapes only escaped NULs can stand: splitting first keeps them apart.
    return _ESCAPE.join(part.replace(_ESCAPE + "0", _NUL) for part in stored.split(_ESCAPE * 2))


class Json(TypeDecorator[Any]):
    """JSON as text: it is never searched, and text keeps U+0000 (escaped) and the order of keys."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Return the JSON; tuples become arrays and UUIDs strings."""
        return None if value is None else orjson.dumps(value).decode()

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002
        """Return what the JSON says."""
        return None if value is None else orjson.loads(value)


class Id(TypeDecorator[UUID]):
    """A UUID, always of the standard library's class: orjson refuses the subclass that asyncpg gives."""

    impl = Uuid
    cache_ok = True

    def process_result_value(self, value: UUID | None, dialect: Dialect) -> UUID | None:  # noqa: ARG002
        """Return a plain UUID."""
        return value if value is None or type(value) is UUID else UUID(int=value.int)


NamespaceKey = Text().with_variant(Text(collation="C"), "postgresql")
"""Namespaces sort by code point on both engines: prefix ranges and keyset pages depend on it."""

Ascending = BigInteger().with_variant(Integer(), "sqlite")
"""A number the database counts up. SQLite counts only columns declared INTEGER (64 bits there too)."""
