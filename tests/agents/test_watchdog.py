"""A stuck event loop ends the process; a busy or waiting one does not."""

import asyncio
import subprocess
import sys

from lamina.agents.watchdog import EXIT_STUCK, watched

STUCK = """
import asyncio, time
from lamina.agents.watchdog import watched

async def main():
    async with watched(0.4):
        await asyncio.sleep(0.1)
        time.sleep(30)

asyncio.run(main())
"""


def test_a_loop_that_is_stuck_ends_its_process_and_shows_where() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", STUCK], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == EXIT_STUCK
    assert "made no progress" in done.stderr
    assert "in main" in done.stderr


async def test_a_loop_that_waits_for_a_dependency_is_left_alone() -> None:
    async with watched(0.2):
        await asyncio.sleep(0.6)
