"""The topic table: public API, documented in `docs/topics.md` and checked in a test.

The key of every topic is the namespace. Partition counts are stated here once; start-up refuses a broker
whose topics have others.
"""

from dataclasses import dataclass

from lamina.streams.records import Admitted, Change, Command, Embedded, Record, Turn

MAX_CONTENT_BYTES = 256 * 1024
"""Largest UTF-8 content that a door accepts."""

DOOR_RECORD_BYTES = 2 * 1024 * 1024
"""Largest record on `turns`: JSON may write a byte of content as six, and metadata comes on top."""

INTERNAL_RECORD_BYTES = 2 * DOOR_RECORD_BYTES
"""Largest record on the other topics: an admitted turn carries its previous turn too."""


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic: its name without prefix, its record, who writes and reads it."""

    name: str
    record: type[Record] | None
    """None where the value is arbitrary bytes (`dead-letters`)."""
    written_by: str
    read_by: str
    partitions: int
    retention_hours: int
    max_record_bytes: int = INTERNAL_RECORD_BYTES


TURNS = Topic("turns", Turn, "clients, HTTP", "gate", 8, 168, DOOR_RECORD_BYTES)
GATED = Topic("gated", Admitted, "gate", "audit, replay", 8, 720)
ADMITTED = Topic("admitted", Admitted, "gate", "embed", 8, 168)
EMBEDDED = Topic("embedded", Embedded, "embed", "remember", 8, 168)
CONSOLIDATION = Topic("consolidation", Command, "remember, operators", "intake", 8, 168)
CHANGES = Topic("changes", Change, "outbox relay", "users' agents, webhooks", 8, 168)
DEAD_LETTERS = Topic("dead-letters", None, "guard", "redrive", 1, 720, INTERNAL_RECORD_BYTES + 64 * 1024)
"""Takes the largest record of any topic, and the headers that say what became of it."""

TOPICS: tuple[Topic, ...] = (TURNS, GATED, ADMITTED, EMBEDDED, CONSOLIDATION, CHANGES, DEAD_LETTERS)
"""Every topic, in the order in which a turn meets them."""


def full_name(topic: Topic, prefix: str) -> str:
    """Return the topic's name on the broker: `prefix.name`."""
    return f"{prefix}.{topic.name}"
