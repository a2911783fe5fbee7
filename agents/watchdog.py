"""The watchdog: a process whose event loop makes no progress ends, and is started again.

It watches the loop alone, not acks: an outage of a dependency must not crash-loop a worker.
"""

import asyncio
import contextlib
import faulthandler
import logging
import os
import threading
import time
from collections.abc import AsyncIterator

log = logging.getLogger(__name__)

EXIT_STUCK = 70
"""Exit code of a process that ended itself because its loop was stuck."""


@contextlib.asynccontextmanager
async def watched(longest_seconds: float) -> AsyncIterator[None]:
    """End the process, with the stacks of its threads on stderr, when the loop is blocked for too long.

    Args:
        longest_seconds: how long the loop may go without a turn; 0 watches nothing.
    """
    if not longest_seconds:
        yield
        return
    beat = time.monotonic()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(longest_seconds / 4):
            if time.monotonic() - beat > longest_seconds:
                log.critical("the event loop made no progress for %.0f s: ending", longest_seconds)
                faulthandler.dump_traceback(all_threads=True)
                os._exit(EXIT_STUCK)

    async def heart() -> None:
        nonlocal beat
        while True:
            beat = time.monotonic()
            await asyncio.sleep(longest_seconds / 8)

    beating = asyncio.create_task(heart())
    threading.Thread(target=watch, name="watchdog", daemon=True).start()
    try:
        yield
    finally:
        done.set()
        beating.cancel()
