"""Never commit past an event that is still in flight (faust-streaming #606, open in 0.15.3).

With out-of-order acks the consumer may commit the offset after an event that nobody has finished: killed
then, the worker loses it. `apply_commit_fix` keeps acked offsets above the oldest unfinished event back.
"""

from importlib.metadata import version
from typing import Any

from faust.transport.consumer import Consumer

from lamina.streams.errors import Misconfigured

FIXED_VERSION = "0.15.3"
"""The release this was measured on; another one must be looked at before it is trusted."""


def apply_commit_fix() -> None:
    """Install the fix once per process, before an app starts.

    Raises:
        Misconfigured: another release of faust-streaming is installed.
    """
    found = version("faust-streaming")
    if found != FIXED_VERSION:
        raise Misconfigured(
            f"faust-streaming {found} is installed, the commit fix is proved on {FIXED_VERSION}: "
            f"install faust-streaming=={FIXED_VERSION}"
        )
    if getattr(Consumer._new_offset, "holds_back", False):  # noqa: SLF001  # the method that is fixed
        return
    original = Consumer._new_offset  # noqa: SLF001  # the method that is fixed

    def new_offset(self: Any, tp: Any) -> int | None:
        acked: list[int] = self._acked[tp]
        if not acked:
            return None
        unfinished = [m.offset for m in list(self._unacked_messages) if m.tp == tp and not m.acked]
        if not unfinished:
            return original(self, tp)
        floor = min(unfinished)
        held = [offset for offset in acked if offset >= floor]
        acked[:] = [offset for offset in acked if offset < floor]
        try:
            return original(self, tp) if acked else None
        finally:
            acked.extend(held)

    new_offset.holds_back = True  # type: ignore[attr-defined]  # marks the fix as installed
    Consumer._new_offset = new_offset  # noqa: SLF001  # the method that is fixed
