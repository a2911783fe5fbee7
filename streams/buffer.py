"""The topology buffer: new units that topology has not looked at, and when it looks (All-Mem §3.2).

Ids and neighbour ids wait per namespace until enough sessions began, enough ids wait, or nothing was added
for a while. All-Mem looks every three sessions; the bound on ids and the idle time are ours.
`lamina.streams.steps.buffer` reads and writes the rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from lamina.streams.identity import topology_id
from lamina.streams.namespace import Namespace
from lamina.streams.records import Command
from lamina.streams.settings import Settings

Due = Literal["sessions", "buffer_full", "buffer_idle"]
"""Why topology looks now."""


@dataclass(frozen=True, slots=True)
class Buffered:
    """A new unit that topology has not looked at (All-Mem §3.2).

    The paper's record names its neighbours too: here they are the targets of its semantic links, which later
    edits keep pointed at visible units.
    """

    unit: UUID
    pushed_at: datetime


def due(waiting: int, sessions: int, settings: Settings) -> Due | None:
    """Tell whether topology looks at a namespace's buffer now, and why; never at an empty one.

    Args:
        waiting: units in the buffer that no command has claimed.
        sessions: sessions that began since topology last looked.
        settings: `topology_buffer` and `topology_sessions`.
    """
    if not waiting:
        return None
    if sessions >= settings.topology_sessions:
        return "sessions"
    if waiting >= settings.topology_buffer:
        return "buffer_full"
    return None


def topology_command(
    namespace: Namespace, rows: Sequence[Buffered], reason: Due, *, position: int, now: datetime
) -> Command:
    """Return the command that looks at these units, in the order in which they were buffered."""
    units = tuple(row.unit for row in rows)
    return Command(
        id=topology_id(namespace, units),
        namespace=namespace,
        kind="topology",
        units=units,
        reason=reason,
        position=position,
        issued_at=now,
    )
