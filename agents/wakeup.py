"""A flag that one task sets and another waits for, with a longest wait."""

import asyncio


class Wakeup:
    """Set from anywhere in the loop, awaited by one task; several sets before a wait count as one."""

    def __init__(self, longest_seconds: float) -> None:
        self._event = asyncio.Event()
        self._longest = longest_seconds

    def set(self) -> None:
        """Wake the waiting task."""
        self._event.set()

    async def wait(self) -> None:
        """Return when set, or after the longest wait."""
        try:
            async with asyncio.timeout(self._longest):
                await self._event.wait()
        except TimeoutError:
            return
        finally:
            self._event.clear()
