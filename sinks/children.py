"""Child processes that never outlive us: the embedded broker and the embedded store.

A child runs in its own session, so Ctrl-C in our terminal reaches only us and we end it in our own order.
If we are killed without a chance to do so, `lamina.sinks.tether` has the kernel kill it (Linux); elsewhere,
and after any surprise, the pid file is how the next start finds it.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import orjson

from lamina.streams.errors import Misconfigured

_LOG_KEPT_BYTES = 1024 * 1024
_TAIL_BYTES = 4096
_TAIL_LINES = 12
_POLL_SECONDS = 0.05
_GRACE_SECONDS = 5.0


class ChildEnded(Misconfigured):
    """A child ended by itself before it was ready; the message holds the last lines of its log.

    `code` is its exit code, negative for a signal; `tail` is what it wrote last.
    """

    def __init__(self, message: str, *, code: int, tail: str) -> None:
        super().__init__(message)
        self.code = code
        self.tail = tail


@dataclass(frozen=True, slots=True)
class _Record:
    """The pid file's content: the child and who started it, each by pid and start time."""

    pid: int
    started: str
    parent: int
    parent_started: str


class Child:
    """A running child of this process. Made by `start_child`."""

    def __init__(self, process: Process, name: str, pid_file: Path, log_path: Path, log_start: int) -> None:
        self.name = name
        self.pid = process.pid
        self._process = process
        self._pid_file = pid_file
        self._log_path = log_path
        self._log_start = log_start

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.returncode is None

    async def wait(self) -> int:
        """Wait for the end of the process and return its exit code, negative for a signal."""
        return await self._process.wait()

    async def stop(self, within_seconds: float = _GRACE_SECONDS) -> None:
        """End the child: ask (SIGTERM), wait up to `within_seconds`, then force (SIGKILL).

        Returns when the process is gone; does nothing when it is gone already.
        """
        try:
            if self.alive:
                self._signal(signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._process.wait(), within_seconds)
        finally:
            # Also when we are cancelled meanwhile: a child must not be left behind.
            if self.alive:
                self._signal(signal.SIGKILL)
        await self._process.wait()
        self._pid_file.unlink(missing_ok=True)

    async def ready(self, probe: Callable[[], Awaitable[bool]], within_seconds: float) -> None:
        """Wait until `probe` says True. On failure the child is stopped.

        Raises:
            ChildEnded: the child ended before that.
            Misconfigured: `within_seconds` passed.
        """
        try:
            async with asyncio.timeout(within_seconds):
                while self.alive and not await probe():  # noqa: ASYNC110 (no event tells of another process)
                    await asyncio.sleep(_POLL_SECONDS)
            if self.alive:
                return
        except TimeoutError as exc:
            await self.stop()
            raise Misconfigured(
                f"the {self.name} did not answer within {within_seconds:g} s; {self._last_words()}"
            ) from exc
        except BaseException:
            await self.stop()
            raise
        code = await self.wait()
        await self.stop()
        raise ChildEnded(
            f"the {self.name} ended at its start with exit code {code}; {self._last_words()}",
            code=code,
            tail=self.log_tail(),
        )

    def log_tail(self) -> str:
        """Return the last lines that this child wrote to its log."""
        try:
            with self._log_path.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(self._log_start, size - _TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(lines[-_TAIL_LINES:])

    def _last_words(self) -> str:
        return f"the end of its log {self._log_path}:\n{self.log_tail()}"

    def _signal(self, number: signal.Signals) -> None:
        # The child leads its own group, so this reaches what it started itself, too.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)


async def start_child(
    argv: Sequence[str],
    *,
    name: str,
    data_dir: Path,
    log_path: Path,
    env: Mapping[str, str] | None = None,
) -> Child:
    """Start a command as a child that ends with us, after ending a leftover of an earlier run.

    Call it from a loop in the main thread: Linux ends the child when the *thread* that started it ends.

    Args:
        argv: the command and its arguments.
        name: what it is, in messages and as the pid file's name (`data_dir/run/NAME.pid`).
        data_dir: the folder that only one running Lamina may use.
        log_path: where its output goes, appended; a log beyond 1 MiB is set aside as `.1` first.
        env: its whole environment; None: ours.

    Raises:
        Misconfigured: a live Lamina runs this child in `data_dir` already, or a folder is not writable.
    """
    pid_file = data_dir / "run" / f"{name}.pid"
    await end_leftover(pid_file)
    command = [sys.executable, "-P", "-m", "lamina.sinks.tether", str(os.getpid()), "--", *argv]
    try:
        with _open_log(pid_file, log_path) as log:
            log_start = log.tell()
            process = await asyncio.create_subprocess_exec(
                *command, stdin=DEVNULL, stdout=log, stderr=log, start_new_session=True, env=env
            )
    except OSError as exc:
        raise Misconfigured(f"cannot start the {name} with data folder {data_dir}: {exc}") from exc
    child = Child(process, name, pid_file, log_path, log_start)
    try:
        await _write_record(pid_file, process.pid)
    except BaseException as exc:
        await child.stop()
        if isinstance(exc, OSError):
            raise Misconfigured(f"cannot write {pid_file}: {exc}") from exc
        raise
    return child


async def end_leftover(pid_file: Path) -> None:
    """End the process that a pid file names, if it is still the same process and nobody owns it.

    A pid that was given to another process since is not touched. Without a readable pid file, does nothing.

    Raises:
        Misconfigured: the process belongs to a Lamina that is alive, this one included, or does not end.
    """
    record = _read_record(pid_file)
    if record is None or await identity(record.pid) != record.started:
        return
    if await identity(record.parent) == record.parent_started:
        raise Misconfigured(
            f"a running Lamina (process {record.parent}) uses {pid_file.parent.parent}: "
            "stop it, or set LAMINA_DATA_DIR to another folder"
        )
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(record.pid, number)
        except ProcessLookupError:
            return
        except PermissionError as exc:
            raise Misconfigured(
                f"process {record.pid} of an earlier run belongs to another user: end it"
            ) from exc
        deadline = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < deadline:
            if await identity(record.pid) != record.started:
                return
            await asyncio.sleep(_POLL_SECONDS)
    raise Misconfigured(f"process {record.pid} of an earlier run does not end: end it by hand")


async def identity(pid: int) -> str | None:
    """Return what tells this process from any other that has or will have its pid; None when none runs."""
    return await asyncio.to_thread(_linux_identity if sys.platform == "linux" else _posix_identity, pid)


def _linux_identity(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # The second field is the command in brackets and may hold anything, brackets and spaces included.
    fields = stat[stat.rindex(")") + 2 :].split()
    state, started = fields[0], fields[19]
    return None if state in "ZX" else f"{boot}:{started}"


def _posix_identity(pid: int) -> str | None:
    answer = subprocess.run(  # noqa: S603 (a fixed command and a number)
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()


def _open_log(pid_file: Path, log_path: Path) -> BinaryIO:
    """Make the folders of both files and open the log to append, a fresh one when it has grown too long."""
    pid_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    log_path.parent.mkdir(parents=True, exist_ok=True)
    if log_path.exists() and log_path.stat().st_size > _LOG_KEPT_BYTES:
        log_path.replace(log_path.with_name(f"{log_path.name}.1"))
    log = log_path.open("ab")
    log.seek(0, os.SEEK_END)
    return log


def _read_record(pid_file: Path) -> _Record | None:
    try:
        return _Record(**orjson.loads(pid_file.read_bytes()))
    except (OSError, orjson.JSONDecodeError, TypeError):
        return None


async def _write_record(pid_file: Path, pid: int) -> None:
    record = _Record(pid, await identity(pid) or "", os.getpid(), await identity(os.getpid()) or "")
    fresh = pid_file.with_suffix(".pid.new")
    fresh.write_bytes(orjson.dumps(asdict(record)))
    fresh.replace(pid_file)
