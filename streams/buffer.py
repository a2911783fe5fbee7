"""The topology buffer: new units that topology has not looked at (All-Mem §3.2)."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Buffered:
    """A new unit that topology has not looked at, and its neighbours when it was written (All-Mem §3.2)."""

    unit: UUID
    neighbours: tuple[UUID, ...]
    pushed_at: datetime
