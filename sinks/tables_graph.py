"""The part of the tables that reads links, and a namespace as a graph."""

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import Column, or_, select

from lamina.sinks.database import Opened, chunks
from lamina.sinks.prepared import linking_to
from lamina.sinks.rows import link_of, unit_of
from lamina.sinks.schema import links, units
from lamina.streams.namespace import Namespace
from lamina.streams.records import Link, LinkType, Status, Unit
from lamina.streams.recoverability import Graph

_KEPT = frozenset({Status.REMEMBERED, Status.CONSOLIDATED})


class GraphTables(Opened):
    """Committed links."""

    async def links_of(self, namespace: Namespace, unit: UUID) -> list[Link]:
        """Return the links from and to a unit, ordered by source, target and type."""
        statement = (
            select(links)
            .where(or_(links.c.source == unit, links.c.target == unit), links.c.namespace == namespace)
            .order_by(links.c.source, links.c.target, links.c.type)
        )
        async with self._database.reading() as sql:
            return [link_of(row) for row in await sql.rows(statement)]

    async def links_from(
        self, namespace: Namespace, units: Collection[UUID], types: Collection[LinkType] = ()
    ) -> list[Link]:
        """Return the links that leave the units (of these types, or all), by source, target and type."""
        return await self._links(links.c.source, namespace, units, types)

    async def links_to(
        self, namespace: Namespace, units: Collection[UUID], types: Collection[LinkType] = ()
    ) -> list[Link]:
        """Return the links that enter the units (of these types, or all), by source, target and type."""
        return await self._links(links.c.target, namespace, units, types)

    async def linking_to(
        self, namespace: Namespace, units: Collection[UUID], type_: LinkType, *, ended: bool = False
    ) -> list[tuple[UUID, Unit]]:
        """Return, for each link of a type that enters one of the units, that one's id and the unit it leaves.

        Ordered by source, then target; `ended` leaves out what has no end (`valid_to`).
        """
        async with self._database.reading() as sql:
            rows = await sql.given(*linking_to(namespace, units, type_, ended=ended, postgres=sql.postgres))
        found = [(UUID(int=row.target.int), unit_of(row)) for row in rows]
        return sorted(found, key=lambda pair: (pair[1].id, pair[0]))

    async def graph(self, namespace: Namespace) -> Graph:
        """Return the units of a namespace and the links that leave them.

        The two are read one after the other: a link may end at a unit that was written in between.
        """
        known = select(units.c.id, units.c.visible, units.c.kind, units.c.status).where(
            units.c.namespace == namespace
        )
        leaving = (
            select(links.c.source, links.c.target, links.c.type)
            .join(units, units.c.id == links.c.source)
            .where(units.c.namespace == namespace)
        )
        async with self._database.reading() as sql:
            edges = [(row.source, row.target, row.type) for row in await sql.rows(leaving)]
            nodes = await sql.rows(known)
        return Graph(
            {row.id: row.visible for row in nodes},
            {row.id: row.kind for row in nodes},
            tuple(sorted(edges)),
            frozenset(row.id for row in nodes if row.kind == "turn" and row.status not in _KEPT),
        )

    async def _links(
        self, end: Column[UUID], namespace: Namespace, ids: Collection[UUID], types: Collection[LinkType]
    ) -> list[Link]:
        found: list[Link] = []
        async with self._database.reading() as sql:
            for some in chunks(ids):
                statement = select(links).where(end.in_(some), links.c.namespace == namespace)
                if types:
                    statement = statement.where(links.c.type.in_(sorted(types)))
                found += [link_of(row) for row in await sql.rows(statement)]
        return sorted(found, key=lambda link: (link.source.int, link.target.int, link.type))
