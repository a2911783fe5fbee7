"""Memory's work beside a chat: bounded, never in its way, not undone by a client that hangs up."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lamina.query.errors import Refused
from lamina.streams.errors import LaminaError

LONGEST_SECONDS = 60.0
"""After that an attempt is given up; the next request makes another."""

MOST_UNDER_WAY = 1000

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What came of it: a value, or a fault in one sentence."""

    value: T | None = None
    fault: str | None = None


class Background:
    """Tasks that outlive the request which began them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, work: Coroutine[Any, Any, T], note: Callable[[bool], None]) -> asyncio.Future[Outcome[T]]:
        """Begin work; what is returned never raises, and is awaited, if at all, behind `asyncio.shield`.

        Args:
            work: what to do.
            note: told at its end whether it was done.
        """
        if len(self._tasks) >= MOST_UNDER_WAY:
            work.close()
            declined: asyncio.Future[Outcome[T]] = asyncio.get_running_loop().create_future()
            declined.set_result(Outcome(fault="memory is too far behind"))
            note(False)
            return declined
        task = asyncio.create_task(outcome_of(work, LONGEST_SECONDS))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda done: note(not done.cancelled() and done.result().fault is None))
        return task


async def outcome_of(work: Awaitable[T], seconds: float) -> Outcome[T]:
    """Wait for work at most so long; a chat goes on whatever memory meets."""
    try:
        async with asyncio.timeout(seconds):
            return Outcome(await work)
    except TimeoutError:
        return Outcome(fault=f"memory did not answer within {seconds:g} s")
    except Refused as exc:
        return Outcome(fault=exc.sentence)
    except LaminaError as exc:
        return Outcome(fault=str(exc))
    except Exception:  # noqa: BLE001  # a chat must not fail because memory does; the log has the details
        _LOG.exception("memory met a fault it does not know beside a chat")
        return Outcome(fault="memory met a fault it does not know")
