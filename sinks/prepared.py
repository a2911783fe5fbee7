"""The statements that every recall runs, built once; what is asked for is one parameter, however much it is.

To build and compile `IN (…)` anew for 60 ids costs three times what SQLite takes to find them. SQLite reads
the ids from JSON, PostgreSQL from arrays.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import (
    BigInteger,
    Boolean,
    Executable,
    Text,
    Uuid,
    any_,
    bindparam,
    func,
    or_,
    select,
    text,
    tuple_,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import ARRAY

from lamina.sinks.column_types import Id
from lamina.sinks.rows import UNIT_COLUMNS
from lamina.sinks.schema import IS_TURN, links, units
from lamina.streams.namespace import Namespace
from lamina.streams.records import LinkType

Given = tuple[Executable, Mapping[str, Any]]
"""A statement and its values."""

_HERE = units.c.namespace == bindparam("namespace")
# `IS true` hides from SQLite that it could walk through the namespace instead.
_HERE_ONLY = _HERE.is_(True)
_LISTED = func.json_each(bindparam("asked", type_=Text)).table_valued("value").alias("asked")
_PLACES = (
    func.unnest(
        bindparam("sessions", type_=ARRAY(BigInteger)), bindparam("ordinals", type_=ARRAY(BigInteger))
    )
    .table_valued("session", "ordinal")
    .render_derived()
)
_PLACE = tuple_(units.c.session_key, units.c.ordinal)

_UNITS_ON_SQLITE = select(*UNIT_COLUMNS).where(
    units.c.id.in_(select(type_coerce(_LISTED.c.value, Id))), _HERE_ONLY
)
_UNITS_ON_POSTGRES = select(*UNIT_COLUMNS).where(
    units.c.id == any_(bindparam("asked", type_=ARRAY(Uuid))), _HERE
)
# SQLite takes the tables of a CROSS JOIN in their order. Left to choose, without statistics, it would walk
# through every turn of the namespace, or of all of them.
_TURNS_ON_SQLITE = text(
    f"SELECT {', '.join(f'units.{column.name}' for column in UNIT_COLUMNS)} "  # noqa: S608  # names of ours
    "FROM json_each(:asked) AS asked CROSS JOIN units "
    "WHERE units.kind = 'turn' "
    "AND units.session_key = json_extract(asked.value, '$[0]') "
    "AND units.ordinal = json_extract(asked.value, '$[1]') "
    "AND (units.namespace = :namespace) IS true"
)
_TURNS_ON_POSTGRES = select(*UNIT_COLUMNS).where(
    IS_TURN, _PLACE.in_(select(_PLACES.c.session, _PLACES.c.ordinal)), _HERE
)
_LINKING = (
    select(*UNIT_COLUMNS, links.c.target.label("target"))
    .join(links, links.c.source == units.c.id)
    .where(
        links.c.type == bindparam("type", type_=Text),
        links.c.namespace == bindparam("namespace"),
        or_(units.c.valid_to.is_not(None), bindparam("ended", type_=Boolean).is_(False)),
    )
)
_LINKING_ON_SQLITE = _LINKING.where(links.c.target.in_(select(type_coerce(_LISTED.c.value, Id))), _HERE_ONLY)
_LINKING_ON_POSTGRES = _LINKING.where(links.c.target == any_(bindparam("asked", type_=ARRAY(Uuid))), _HERE)


def units_among(namespace: Namespace, ids: Collection[UUID], *, postgres: bool) -> Given:
    """Return what selects the `UNIT_COLUMNS` of the namespace's units among the ids."""
    if postgres:
        return _UNITS_ON_POSTGRES, {"asked": list(ids), "namespace": namespace}
    listed = orjson.dumps([each.hex for each in ids]).decode()
    return _UNITS_ON_SQLITE, {"asked": listed, "namespace": namespace}


def linking_to(
    namespace: Namespace, ids: Collection[UUID], type_: LinkType, *, ended: bool, postgres: bool
) -> Given:
    """Return what selects the `UNIT_COLUMNS` of what links to the ids, and `target`, the id it links to."""
    given = {"namespace": namespace, "type": type_, "ended": ended}
    if postgres:
        return _LINKING_ON_POSTGRES, {**given, "asked": list(ids)}
    return _LINKING_ON_SQLITE, {**given, "asked": orjson.dumps([each.hex for each in ids]).decode()}


def turns_among(namespace: Namespace, places: Sequence[tuple[int, int]], *, postgres: bool) -> Given:
    """Return what selects the `UNIT_COLUMNS` of the namespace's turns at (session key, ordinal) places."""
    if postgres:
        sessions, ordinals = [key for key, _ in places], [ordinal for _, ordinal in places]
        return _TURNS_ON_POSTGRES, {"sessions": sessions, "ordinals": ordinals, "namespace": namespace}
    return _TURNS_ON_SQLITE, {"asked": orjson.dumps(places).decode(), "namespace": namespace}
