"""Tie a command's life to its parent's: `python -P -m lamina.sinks.tether PARENT_PID -- command …`.

Runs between fork and exec of a child process. On Linux it asks the kernel to kill this process when the
parent ends, whatever ended it, and then becomes the command, which keeps the pid and the request. A
`preexec_fn` could do the same, but is unsafe in a process with threads. Elsewhere it only becomes the
command.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_ARGUMENTS_BEFORE_COMMAND = 3

NOT_STARTED = 127
"""Exit code when the command cannot be executed, as in a shell."""

ORPHANED = 126
"""Exit code when the parent was gone before the tie was made."""


def main() -> int:
    """Tie, check that the parent is still the parent, and become the command; returns only on failure."""
    if len(sys.argv) <= _ARGUMENTS_BEFORE_COMMAND or sys.argv[2] != "--":
        sys.stderr.write("usage: python -P -m lamina.sinks.tether PARENT_PID -- command …\n")
        return NOT_STARTED
    parent, command = int(sys.argv[1]), sys.argv[3:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # The parent ended between its fork and our request: nobody would ever end this command.
        return ORPHANED
    # Python ignores these two, and exec would hand that on to a command that does not expect it.
    for name in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(name, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 (no shell is wanted, and the arguments are our own)
    except OSError as exc:
        sys.stderr.write(f"cannot run {command[0]}: {exc.strerror}\n")
    return NOT_STARTED


if __name__ == "__main__":
    sys.exit(main())
