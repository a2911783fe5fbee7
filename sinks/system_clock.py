"""The real clock."""

from datetime import UTC, datetime


class SystemClock:
    """Clock port over the machine's time."""

    def now(self) -> datetime:
        """Return the current time, zone-aware, UTC."""
        return datetime.now(UTC)
