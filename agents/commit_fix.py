"""Never commit past an event that is still in flight (faust-streaming #606, open in 0.15.3).

With out-of-order acks the consumer may commit the offset after an event that nobody has finished: killed
then, the worker loses it. The fix keeps acked offsets above the oldest unfinished event back.
"""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from faust.transport.consumer import Consumer

from lamina.streams.errors import Misconfigured

PROVED_ON = "0.15.3"
"""The release the fix was measured on; another one must be looked at before it is trusted."""

NewOffset = Callable[[Any, Any], int | None]

RELEASED: NewOffset = Consumer._new_offset  # noqa: SLF001  # the method that is fixed


def apply_commit_fix() -> None:
    """Install the fix, before an app starts; again has no effect.

    Raises:
        Misconfigured: another release of faust-streaming is installed.
    """
    found = version("faust-streaming")
    if found != PROVED_ON:
        raise Misconfigured(
            f"faust-streaming {found} is installed, the commit fix is proved on {PROVED_ON}: "
            f"install faust-streaming=={PROVED_ON}"
        )
    if Consumer._new_offset is RELEASED:  # noqa: SLF001  # the method that is fixed
        Consumer._new_offset = fixed(RELEASED)  # noqa: SLF001  # the method that is fixed


def fixed(released: NewOffset) -> NewOffset:
    """Return `Consumer._new_offset` that sees only offsets below the oldest event in flight."""

    def new_offset(consumer: Any, tp: Any) -> int | None:
        acked: list[int] = consumer._acked[tp]  # noqa: SLF001  # a method of the consumer
        if not acked:
            return None
        unfinished = [m.offset for m in list(consumer._unacked_messages) if m.tp == tp and not m.acked]  # noqa: SLF001
        if not unfinished:
            return released(consumer, tp)
        floor = min(unfinished)
        held = [offset for offset in acked if offset >= floor]
        acked[:] = [offset for offset in acked if offset < floor]
        try:
            return released(consumer, tp) if acked else None
        finally:
            acked.extend(held)

    return new_offset
