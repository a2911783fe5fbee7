"""What every part of a transaction shares: its connection, its locks, and the counters they guard."""

from collections.abc import Iterable

from sqlalchemy import update

from lamina.sinks.database import Statements
from lamina.sinks.schema import namespaces
from lamina.streams.namespace import Namespace


class Locked:
    """One transaction, whose namespaces are locked."""

    def __init__(self, sql: Statements, locked: Iterable[Namespace]) -> None:
        self._sql = sql
        self._locked = frozenset(locked)

    def _check(self, namespace: Namespace) -> None:
        """Refuse to write for a namespace that is not locked.

        Raises:
            ValueError: a mistake of ours.
        """
        if namespace not in self._locked:
            raise ValueError(f"the transaction does not hold the lock of {namespace}")

    async def _raise_counter(self, namespace: Namespace, counter: str, by: int) -> int:
        """Add to a counter of a locked namespace and return its new value."""
        self._check(namespace)
        column = namespaces.c[counter]
        statement = (
            update(namespaces)
            .where(namespaces.c.namespace == namespace)
            .values({counter: column + by})
            .returning(column)
        )
        return int(await self._sql.scalar(statement))
