"""Ranges of namespaces: everything, a tenant, or one."""

from typing import Any

from sqlalchemy import Column, ColumnElement, and_


def under(namespace: Column[Any], prefix: str) -> ColumnElement[bool]:
    """Return the range of namespaces with a prefix, which an index serves as it need not serve LIKE.

    The range of everything is a range too: it keeps SQLite's planner at the index meant for the question.

    Args:
        namespace: the column.
        prefix: `tenant/`, one whole namespace (`acme/ann` is not `acme/anna`), or empty for everything.
    """
    if not prefix:
        return namespace >= ""
    if not prefix.endswith("/"):
        return namespace == prefix
    return and_(namespace >= prefix, namespace < prefix[:-1] + chr(ord(prefix[-1]) + 1))
