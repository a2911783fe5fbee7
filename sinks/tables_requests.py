"""The part of the tables that knows what callers sent: their requests, and the marks of what was accepted."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, select

from lamina.sinks.database import Opened, Statements, chunks
from lamina.sinks.rows import request_of, request_row
from lamina.sinks.schema import marks, requests
from lamina.sinks.tables_locked import Locked
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Request


class RequestTables(Opened):
    """Requests and marks of any namespace."""

    async def record_request(self, request: Request) -> Request:
        """Insert the request, or return the one that has its id already."""
        async with self._database.writing() as sql:
            return await _record(sql, request)

    async def request(self, request_id: UUID) -> Request | None:
        """Return a request by id."""
        return (await self.requests([request_id])).get(request_id)

    async def requests(self, ids: Collection[UUID]) -> dict[UUID, Request]:
        """Return the requests that exist among the ids."""
        async with self._database.reading() as sql:
            return await _requests(sql, ids)

    async def mark(self, namespace: Namespace, ids: Collection[UUID], at: datetime) -> None:
        """Insert marks; one that exists already is left as it is."""
        async with self._database.writing() as sql:
            await _mark(sql, namespace, ids, at)

    async def marked(self, ids: Collection[UUID]) -> set[UUID]:
        """Return those of the ids that are marked."""
        found: set[UUID] = set()
        async with self._database.reading() as sql:
            for some in chunks(ids):
                found |= {row.id for row in await sql.rows(select(marks.c.id).where(marks.c.id.in_(some)))}
        return found

    async def unmark(self, ids: Collection[UUID]) -> None:
        """Delete marks; those that do not exist are ignored."""
        async with self._database.writing() as sql:
            for some in chunks(ids):
                await sql.run(delete(marks).where(marks.c.id.in_(some)))

    async def drop_marks(self, before: datetime, limit: int) -> int:
        """Delete the oldest marks that were made before a time, at most so many; return how many."""
        oldest = select(marks.c.id).where(marks.c.at < before).order_by(marks.c.at).limit(limit)
        async with self._database.writing() as sql:
            return await sql.run(delete(marks).where(marks.c.id.in_(oldest)))


class RequestRows(Locked):
    """The same, in a transaction."""

    async def record_request(self, request: Request) -> Request:
        """Insert the request, or return the one that has its id already."""
        return await _record(self._sql, request)

    async def mark(self, namespace: Namespace, ids: Collection[UUID], at: datetime) -> None:
        """Insert marks; one that exists already is left as it is."""
        await _mark(self._sql, namespace, ids, at)


async def _record(sql: Statements, request: Request) -> Request:
    new = sql.insert(requests).on_conflict_do_nothing().returning(requests.c.id)
    if await sql.rows(new, [request_row(request)]):
        return request
    return (await _requests(sql, [request.id]))[request.id]


async def _requests(sql: Statements, ids: Collection[UUID]) -> dict[UUID, Request]:
    found: dict[UUID, Request] = {}
    for some in chunks(ids):
        rows = await sql.rows(select(requests).where(requests.c.id.in_(some)))
        found |= {row.id: request_of(row) for row in rows}
    return found


async def _mark(sql: Statements, namespace: Namespace, ids: Collection[UUID], at: datetime) -> None:
    rows = [{"id": one, "namespace": namespace, "at": at} for one in ids]
    await sql.run(sql.insert(marks).on_conflict_do_nothing(), rows)
