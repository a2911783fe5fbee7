"""The commit never passes an event in flight (faust-streaming #606)."""

from collections import defaultdict
from types import SimpleNamespace

import pytest
from faust.transport.consumer import Consumer
from faust.types import TP
from intervaltree import IntervalTree

from lamina.agents import commit_fix
from lamina.agents.commit_fix import apply_commit_fix, fixed
from lamina.streams.errors import Misconfigured

TP0 = TP("turns", 0)


def a_consumer(*, acked: list[int], in_flight: list[int], committed: int | None) -> SimpleNamespace:
    """The state of a Faust consumer that decides what is committed."""
    return SimpleNamespace(
        _acked={TP0: list(acked)},
        _acked_index={TP0: set(acked)},
        _committed_offset=defaultdict(lambda: None, {TP0: committed}),
        _gap=defaultdict(IntervalTree),
        _unacked_messages=[SimpleNamespace(tp=TP0, offset=each, acked=False) for each in in_flight],
    )


@pytest.fixture
def released(monkeypatch):
    """Faust's own decision, as released."""
    monkeypatch.setattr(Consumer, "_new_offset", commit_fix.RELEASED)
    return commit_fix.RELEASED


@pytest.mark.parametrize(
    ("acked", "in_flight", "committed"),
    [
        pytest.param([1, 2, 3], [0], None, id="nothing committed yet, the first event is slow"),
        pytest.param([6, 7], [5], 5, id="the event right after the commit is slow"),
        pytest.param([2, 3], [0, 1], None, id="two slow events at the start"),
    ],
)
def test_faust_as_released_loses_the_event_in_flight_and_the_fix_keeps_it(
    released, acked, in_flight, committed
) -> None:
    consumer = a_consumer(acked=acked, in_flight=in_flight, committed=committed)
    assert released(consumer, TP0) > min(in_flight), "released Faust commits past the event in flight"
    consumer = a_consumer(acked=acked, in_flight=in_flight, committed=committed)
    assert fixed(released)(consumer, TP0) is None
    assert sorted(consumer._acked[TP0]) == acked, "what was held back is committed later"


def test_what_is_finished_below_the_event_in_flight_is_committed(released) -> None:
    consumer = a_consumer(acked=[0, 1, 3, 4], in_flight=[2], committed=None)
    assert fixed(released)(consumer, TP0) == 2
    assert consumer._acked[TP0] == [3, 4]


def test_the_fix_is_installed_once_and_refuses_a_release_it_was_not_proved_on(monkeypatch) -> None:
    apply_commit_fix()
    installed = Consumer._new_offset
    apply_commit_fix()
    assert Consumer._new_offset is installed is not commit_fix.RELEASED
    monkeypatch.setattr(commit_fix, "version", lambda _: "0.16.0")
    with pytest.raises(Misconfigured, match=r"faust-streaming==0\.15\.3"):
        apply_commit_fix()
