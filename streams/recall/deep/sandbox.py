"""The port to what runs a model's programs: never this interpreter (`lamina.sinks.sandbox`).

A program pauses at every function that it did not define itself, and goes on with what the host answers. So
the host alone decides what a program may do, and each question's namespace is closed over by it.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Fault = Literal["TypeError", "ValueError", "RuntimeError"]
"""What a refused call raises in the program, which may catch it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use."""

    seconds: float
    """Of execution; time in which it waits for an answer of the host does not count."""
    memory_bytes: int
    calls: int
    """Of the host, names it asks for included."""
    output_characters: int
    """What it prints beyond them is dropped, and the reader is told."""
    program_characters: int = 50_000
    depth: int = 200
    """Of its own calls within each other."""


@dataclass(frozen=True, slots=True)
class Call:
    """A program waits for the answer to a call. The arguments are whatever it passed: judge them."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """A program has ended, by itself or by a limit."""

    printed: str
    cut: bool = False
    """Whether it printed more."""
    error: str | None = None
    """What ended it before its last line, as a traceback or a sentence."""
    lost: bool = False
    """Whether the variables of the session went with it."""


Pause = Call | Ended


class Session(Protocol):
    """The programs of one question, one after the other. Variables outlive a program, as in a REPL.

    Nothing that a program does raises here: it ends the program.
    """

    async def run(self, program: str) -> Pause:
        """Begin a program, and return where it first waits or ends.

        Raises:
            SandboxBusy: no process can be had now.
        """

    async def give(self, value: Any) -> Pause:
        """Answer the call that the program waits for with JSON types."""

    async def refuse(self, fault: Fault, words: str) -> Pause:
        """Answer it with an exception."""

    async def abandon(self, why: str | None = None) -> Ended:
        """End the program where it stands, and return what it printed; `why` becomes the error."""


class Sandbox(Protocol):
    """Runs programs under the limits that it was opened with."""

    def session(self, functions: Sequence[str]) -> AbstractAsyncContextManager[Session]:
        """Give a question its session; at its end whatever still runs is stopped.

        Args:
            functions: the names that a program may call; any other is a NameError there.

        Raises:
            SandboxBusy: too many questions are under way.
        """

    async def close(self) -> None:
        """Stop every process."""
