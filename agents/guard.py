"""The guard: the one place that decides what a fault costs.

An exception that leaves a Faust agent acks its event: the turn is lost, with `take` the whole batch. So
every loop hands its batch to `Guard.run`, which never raises:

- `Transient`: wait and try again, without limit; nothing is acked, the partition waits, lag shows it;
- `Rejected`: the record goes to the dead letters with its original bytes, then it is acked;
- unknown: the batch is halved until the culprit is alone; it is tried `unknown_fault_attempts` times, counted
  in the tables across restarts, and then dead-lettered, so poison cannot crash-loop a worker;
- `Fatal`: the process stops; nothing is acked, a restart begins again here.
"""

import asyncio
import hashlib
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type
from tenacity.wait import wait_base, wait_exponential_jitter

from lamina.sinks.dead_letters import DeadLetters, Source
from lamina.streams.errors import Fatal, Rejected, Transient
from lamina.streams.metrics import BATCH_SIZE, RETRIES, STEP_SECONDS, TURNS
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Metrics, Tables
from lamina.streams.settings import Settings

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step(Generic[T]):
    """A step as the guard sees it.

    `decode` turns a Kafka message into an item or raises `Rejected`; `handle` processes items and may be
    called again with any part of them; `turn_of` names the turn of an item, to set its status when it is
    dead-lettered.
    """

    name: str
    decode: Callable[[Any], T]
    handle: Callable[[Sequence[T]], Awaitable[None]]
    turn_of: Callable[[T], tuple[Namespace, UUID] | None]


class _AskedDelay(wait_base):
    """Wait as long as the dependency asked, else exponentially with jitter."""

    def __init__(self, longest: float) -> None:
        self._backoff = wait_exponential_jitter(multiplier=0.1, max=longest, jitter=0.1)

    def __call__(self, retry_state: RetryCallState) -> float:
        fault = retry_state.outcome.exception() if retry_state.outcome else None
        asked = fault.retry_after if isinstance(fault, Transient) else None
        return self._backoff(retry_state) if asked is None else asked


class Guard:
    """Runs steps so that no record is lost and none can block the others for ever."""

    def __init__(
        self,
        *,
        dead_letters: DeadLetters,
        tables: Tables,
        metrics: Metrics,
        settings: Settings,
        stop: Callable[[Fatal], None],
    ) -> None:
        """Wire the guard; `stop` must begin the end of the process and return."""
        self._dead_letters = dead_letters
        self._tables = tables
        self._metrics = metrics
        self._settings = settings
        self._stop = stop

    async def run(self, step: Step[T], events: Sequence[Any]) -> None:
        """Process a batch of Faust events to the end: every one is handled or dead-lettered, then acked."""
        self._metrics.observe(BATCH_SIZE, len(events), step=step.name)
        started = time.perf_counter()
        decoded = [pair for event in events for pair in await self._decoded(step, event)]
        if decoded:
            await self._process(step, decoded)
        self._metrics.observe(STEP_SECONDS, time.perf_counter() - started, step=step.name)

    async def attempt(self, name: str, call: Callable[[], Awaitable[None]]) -> Exception | None:
        """Call until it succeeds or fails for good; return the fault it failed with.

        Transient faults are retried without limit; a fatal one stops the process and never returns.
        """
        try:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception_type(Transient),
                wait=_AskedDelay(self._settings.retry_max_seconds),
                before_sleep=lambda state: self._note_retry(name, state),
                reraise=True,
            ):
                with attempt:
                    await call()
        except Fatal as fault:
            log.critical("%s: stopping: %s", name, fault)
            self._stop(fault)
            await asyncio.Event().wait()  # nothing more is taken or acked; shutdown cancels this
        except Exception as fault:  # noqa: BLE001  # the guard is where unknown faults end
            return fault
        return None

    async def is_poison(self, source: str, fault: Exception) -> bool:
        """Count one more failure of a lone record; True when it has had its tries."""
        if isinstance(fault, Rejected):
            return True
        detail = "".join(traceback.format_exception(fault))[-4000:]
        log.error("%s: unknown fault: %s", source, detail)
        tries = 0

        async def count() -> None:
            nonlocal tries
            tries = await self._tables.count_fault(source, detail)

        await self.attempt("guard", count)
        return tries >= self._settings.unknown_fault_attempts

    async def _decoded(self, step: Step[T], event: Any) -> list[tuple[Any, T]]:
        """Return the event and its item; nothing where it went to the dead letters."""
        while True:
            try:
                return [(event, step.decode(event.message))]
            except Exception as fault:  # noqa: BLE001  # the guard is where unknown faults end
                if await self.is_poison(_source_of(event.message), fault):
                    await self._bury(step, event, None, fault)
                    return []

    async def _process(self, step: Step[T], decoded: Sequence[tuple[Any, T]]) -> None:
        waiting = [list(decoded)]
        while waiting:
            chunk = waiting.pop()
            items = [item for _, item in chunk]
            fault = await self.attempt(step.name, lambda items=items: step.handle(items))  # type: ignore[misc]
            if fault is None:
                for event, _ in chunk:
                    event.ack()
            elif len(chunk) > 1:
                half = len(chunk) // 2
                waiting += [chunk[half:], chunk[:half]]
            elif await self.is_poison(_source_of(chunk[0][0].message), fault):
                event, item = chunk[0]
                await self._bury(step, event, item, fault)
            else:
                waiting.append(chunk)

    async def _bury(self, step: Step[T], event: Any, item: T | None, fault: Exception) -> None:
        """Dead-letter one record, awaited, and only then ack it."""
        message = event.message
        source = Source(
            message.topic,
            message.partition,
            message.offset,
            message.key,
            message.value,
            tuple(dict(message.headers or ()).items()),
        )
        reason = fault.reason if isinstance(fault, Rejected) else "unknown"

        async def write() -> None:
            await self._dead_letters.bury(source, step=step.name, reason=reason, detail=str(fault))
            turn = step.turn_of(item) if item is not None else None
            if turn is not None:
                await self._tables.fail_turn(*turn, f"{step.name}: {reason}: {fault}"[:500])

        failed = await self.attempt(step.name, write)
        if failed is not None:  # a bug of ours, not of the record: stop before it is lost
            self._stop(Fatal(f"a dead letter could not be written: {failed}"))
            await asyncio.Event().wait()
        self._metrics.count(TURNS, step=step.name, outcome="dead_letter")
        event.ack()

    def _note_retry(self, name: str, state: RetryCallState) -> None:
        fault = state.outcome.exception() if state.outcome else None
        reason = fault.reason if isinstance(fault, Transient) else "unknown"
        self._metrics.count(RETRIES, step=name, reason=reason)
        log.warning("%s: %s; next try in %.1f s", name, fault, state.upcoming_sleep)


def _source_of(message: Any) -> str:
    digest = hashlib.sha256(message.value or b"").hexdigest()[:16]
    return f"{message.topic}/{message.partition}/{message.offset}/{digest}"
