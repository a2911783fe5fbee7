"""The door to `pydantic-monty`: programs that a model wrote, in a child process of an interpreter in Rust.

Monty knows no files, no network, no environment and no modules but its own; what it asks of the host is
answered here, and only the functions of `deep` are. Its own limits end a program from within (time, memory,
depth), and a program that they do not reach is killed with its process. A process serves one question and is
then replaced, so nothing passes from one namespace to another.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from pydantic_monty import (
    AsyncFunctionSnapshot,
    AsyncFutureSnapshot,
    AsyncMonty,
    AsyncMontySession,
    AsyncNameLookupSnapshot,
    AsyncSnapshot,
    MontyComplete,
    MontyError,
    MontyRuntimeError,
    MontySyntaxError,
    OSPolicy,
    ResourceLimits,
)

from lamina.streams.errors import Misconfigured, SandboxBusy
from lamina.streams.recall.deep.sandbox import Call, Ended, Fault, Limits, Pause
from lamina.streams.settings import Settings

BUSY_SECONDS = 5.0
"""After which a question may be sent again."""
_GRACE_SECONDS = 1.0
"""What a program has beyond its time to end by itself."""
_LONGEST_ERROR = 2000
_BYTES_PER_MB = 1024 * 1024
_POLICY: OSPolicy = {"sleep": "zero"}


async def open_sandbox(settings: Settings) -> "MontySandbox":
    """Start the pool; the first process is started by the first question.

    Raises:
        Misconfigured: the interpreter is not installed.
    """
    limits = Limits(
        seconds=settings.deep_program_seconds,
        memory_bytes=settings.deep_memory_mb * _BYTES_PER_MB,
        calls=settings.deep_program_calls,
        output_characters=settings.deep_output_characters,
    )
    return await MontySandbox.open(limits, settings.deep_at_once)


class MontySandbox:
    """A `Sandbox` over a pool of processes. Made by `open`."""

    def __init__(self, pool: AsyncMonty, limits: Limits, at_once: int) -> None:
        self._pool = pool
        self._limits = limits
        self._free = at_once

    @classmethod
    async def open(cls, limits: Limits, at_once: int) -> "MontySandbox":
        """Open a pool.

        Args:
            limits: of every program.
            at_once: most sessions at the same time.

        Raises:
            Misconfigured: the interpreter is not installed.
        """
        pool = AsyncMonty(
            min_processes=0,
            max_processes=at_once,
            max_checkouts_per_worker=1,
            checkout_timeout=BUSY_SECONDS,
            request_timeout=limits.seconds + 2 * _GRACE_SECONDS,
            feed_duration_limit_grace=_GRACE_SECONDS,
        )
        try:
            await pool.__aenter__()
            async with pool.checkout():
                pass  # a process starts: better known now than at the first question
        except (OSError, RuntimeError, MontyError) as exc:
            await pool.__aexit__(None, None, None)
            raise Misconfigured(
                f"no program of `deep` can be run ({exc}): install pydantic-monty, or unset MONTY_BIN"
            ) from exc
        return cls(pool, limits, at_once)

    @asynccontextmanager
    async def session(self, functions: Sequence[str]) -> AsyncIterator["_Session"]:
        """Give a question its session; at its end its process is stopped.

        Raises:
            SandboxBusy: as many questions as are allowed are under way.
        """
        if self._free == 0:
            raise SandboxBusy(
                "as many questions are being read with `deep` as LAMINA_DEEP_AT_ONCE allows",
                retry_after=BUSY_SECONDS,
            )
        self._free -= 1
        session = _Session(self._pool, self._limits, frozenset(functions))
        try:
            yield session
        finally:
            try:
                await session.close()
            finally:
                self._free += 1

    async def close(self) -> None:
        """Stop every process."""
        await self._pool.__aexit__(None, None, None)


class _Session:
    """The programs of one question, in a process of its own."""

    def __init__(self, pool: AsyncMonty, limits: Limits, functions: Collection[str]) -> None:
        self._pool = pool
        self._limits = limits
        self._stubs = {name: _stub(name) for name in functions}
        self._process: AsyncExitStack | None = None
        self._session: AsyncMontySession | None = None
        self._waiting: AsyncFunctionSnapshot | None = None
        self._calls = 0
        self._output = _Output(limits.output_characters)

    async def run(self, program: str) -> Pause:
        """Begin a program, and return where it first waits or ends.

        Raises:
            SandboxBusy: no process can be had now.
        """
        self._output = _Output(self._limits.output_characters)
        self._calls = 0
        if len(program) > self._limits.program_characters:
            return Ended(
                "", error=f"The program is longer than {self._limits.program_characters} characters."
            )
        session = await self._checked_out()
        source = program.encode("utf-8", "replace").decode()
        return await self._go_on(session.feed_start(source, print_callback=self._output))

    async def give(self, value: Any) -> Pause:
        """Answer the call that the program waits for."""
        return await self._go_on(self._paused().resume({"return_value": value}))

    async def refuse(self, fault: Fault, words: str) -> Pause:
        """Answer it with an exception."""
        return await self._go_on(self._paused().resume({"exc_type": fault, "message": words}))

    async def abandon(self, why: str | None = None) -> Ended:
        """End the program where it stands; its process goes, and the variables with it."""
        await self.close()
        return self._output.ended(why, lost=True)

    async def close(self) -> None:
        """Stop the process, whatever it does."""
        process, self._process, self._session = self._process, None, None
        self._waiting = None
        if process is not None:
            await process.aclose()

    async def _checked_out(self) -> AsyncMontySession:
        if self._session is None:
            limits: ResourceLimits = {
                "max_feed_duration_secs": self._limits.seconds,
                "max_memory": self._limits.memory_bytes,
                "max_recursion_depth": self._limits.depth,
                "max_total_sleep_secs": 0.0,
                # ours counts anew with each program, the pool's over all of a process
                "max_suspensions": 1_000_000,
            }
            process = AsyncExitStack()
            try:
                self._session = await process.enter_async_context(
                    self._pool.checkout(limits=limits, os_policy=_POLICY)
                )
            except (TimeoutError, OSError, RuntimeError, MontyError) as exc:
                raise SandboxBusy(
                    f"no process can be had for a program: {exc}", retry_after=BUSY_SECONDS
                ) from exc
            self._process = process
        return self._session

    def _paused(self) -> AsyncFunctionSnapshot:
        if self._waiting is None:
            raise RuntimeError("no program waits for an answer")
        waiting, self._waiting = self._waiting, None
        return waiting

    async def _go_on(self, work: Awaitable[AsyncSnapshot]) -> Pause:
        """Go on to the next call of one of the functions, or to the end."""
        try:
            snapshot = await work
            while not isinstance(snapshot, MontyComplete):
                self._calls += 1
                if self._calls > self._limits.calls:
                    return await self.abandon(f"The program made more than {self._limits.calls} calls.")
                if isinstance(snapshot, AsyncFunctionSnapshot) and self._is_ours(snapshot):
                    self._waiting = snapshot
                    return Call(snapshot.function_name, snapshot.args, snapshot.kwargs)
                if isinstance(snapshot, AsyncFutureSnapshot):
                    return await self.abandon("The program waits for something that never comes.")
                snapshot = await self._turned_down(snapshot)
        except MontyError as exc:
            return await self._failed(exc)
        except RuntimeError as exc:  # the pool's own: the process is gone
            return await self.abandon(str(exc))
        return self._output.ended(None)

    def _is_ours(self, snapshot: AsyncFunctionSnapshot) -> bool:
        return (
            not snapshot.is_os_function
            and snapshot.object_id is None
            and snapshot.function_name in self._stubs
        )

    async def _turned_down(self, snapshot: AsyncFunctionSnapshot | AsyncNameLookupSnapshot) -> AsyncSnapshot:
        """Answer what is not a call of one of the functions: names, files, modules."""
        if isinstance(snapshot, AsyncNameLookupSnapshot):
            stub = self._stubs.get(snapshot.variable_name) if snapshot.object_id is None else None
            return await (snapshot.resume() if stub is None else snapshot.resume(value=stub))
        if snapshot.is_os_function:
            return await snapshot.resume_not_handled()
        words = f"name '{snapshot.function_name}' is not defined"
        return await snapshot.resume({"exc_type": "NameError", "message": words})

    async def _failed(self, exc: MontyError) -> Ended:
        """End a program that raised or met a limit. After a limit nothing is sure of the process."""
        error = await asyncio.to_thread(_told, exc)
        if isinstance(exc, MontySyntaxError | MontyRuntimeError) and not isinstance(
            exc.exception(), TimeoutError | MemoryError
        ):
            return self._output.ended(error)
        return await self.abandon(error)


class _Output:
    """Takes what is printed, up to a number of characters."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._texts: list[str] = []
        self._cut = False

    def __call__(self, _: str, text: str) -> None:
        """Take one piece."""
        self._cut = self._cut or len(text) > self._left
        if self._left:
            self._texts.append(text[: self._left])
            self._left -= len(self._texts[-1])

    def ended(self, error: str | None, *, lost: bool = False) -> Ended:
        """Return the end of the program that printed it."""
        return Ended("".join(self._texts), self._cut, error, lost)


def _stub(name: str) -> Callable[[], None]:
    """Return what stands for a function where a program passes it on: monty sends the name alone."""

    def stub() -> None: ...

    stub.__name__ = name
    return stub


def _told(exc: MontyError) -> str:
    """Return an error as its author sees it, its middle left out where it is long."""
    text = str(exc)
    if isinstance(exc, MontySyntaxError | MontyRuntimeError):
        text = exc.display("traceback")
    half = _LONGEST_ERROR // 2
    return text if len(text) <= _LONGEST_ERROR else f"{text[:half]} … {text[-half:]}"
