"""What a pipeline left in its tables, in a form by which two runs can be compared."""

import sqlite3
from pathlib import Path

UNITS = """
    SELECT id, kind, session, ordinal, position, role, speaker, text, keywords, entities, topic, salience,
           subject, relation, object, evidence, said_at, occurred_from, occurred_to, valid_from, valid_to,
           visible, version, engine, status, score, reason
    FROM units ORDER BY id
"""
LINKS = "SELECT source, target, type FROM links ORDER BY source, target, type"
WEIGHTS = "SELECT source || target, weight FROM links WHERE type = 'semantic'"
COMMANDS = "SELECT id, namespace, state, plan FROM commands ORDER BY id"
EXCHANGES = "SELECT id, state, thread, command FROM recurrence ORDER BY id"


def dump(database: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return units, links, commands and exchanges, without what the wall clock decided."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        queries = {"units": UNITS, "links": LINKS, "commands": COMMANDS, "exchanges": EXCHANGES}
        return {name: connection.execute(query).fetchall() for name, query in queries.items()}


def weights(database: Path) -> dict[str, float]:
    """Return the weights of semantic links; batch and store compute the same cosine in their own order."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        return dict(connection.execute(WEIGHTS).fetchall())


def differences(
    left: dict[str, list[tuple[object, ...]]], right: dict[str, list[tuple[object, ...]]]
) -> list[str]:
    """Return the rows that only one of two dumps holds."""
    return [
        f"{name}: only {side}: {row}"
        for name in left
        for side, mine, other in (("left", left, right), ("right", right, left))
        for row in sorted(set(mine[name]) - set(other[name]), key=str)
    ]
