"""θ_sim from a namespace's own similarities: bounded, in order, and only when asked for."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

import numpy as np
import pytest

from lamina.streams import theta
from lamina.streams.count import CountPolicy, RecurrenceState
from lamina.streams.namespace import namespace_of
from lamina.streams.recurrence import Exchange, RecurrenceRows
from lamina.streams.settings import Settings
from lamina.streams.vector_table import unit_length

NAMESPACE = namespace_of("acme", "ada")
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
DIMENSION = 64


def after(*cosines: float) -> tuple[int, ...]:
    counts: tuple[int, ...] = ()
    for cosine in cosines:
        counts = theta.counted(counts, cosine)
    return counts


def test_until_enough_was_seen_it_is_the_fixed_one() -> None:
    assert theta.theta_sim(()) == theta.START
    assert theta.theta_sim(after(*[0.8] * (theta.LEAST - 1))) == theta.START
    assert theta.theta_sim(after(*[0.8] * theta.LEAST)) > theta.START


def test_it_is_the_quantile_of_what_was_seen() -> None:
    cosines = np.random.default_rng(1).uniform(0.5, 0.9, 2000)
    assert theta.theta_sim(after(*cosines)) == pytest.approx(np.quantile(cosines, theta.QUANTILE), abs=0.01)


@pytest.mark.parametrize(
    ("cosine", "bound"), [(-0.2, theta.LOWEST), (0.0, theta.LOWEST), (1.0, theta.HIGHEST)]
)
def test_it_stays_within_its_bounds(cosine: float, bound: float) -> None:
    assert theta.theta_sim(after(*[cosine] * 100)) == bound


def test_more_similar_talk_raises_it() -> None:
    found = [theta.theta_sim(after(*np.full(100, level))) for level in (0.5, 0.6, 0.7, 0.8, 0.95)]
    assert all(low <= high for low, high in pairwise(found))
    assert found[0] == theta.LOWEST < found[-1] == theta.HIGHEST


def exchanges(count: int, spread: float) -> list[Exchange]:
    """Exchanges around one direction; the smaller the spread, the more similar."""
    random = np.random.default_rng(4)
    made = []
    for number in range(count):
        vector = unit_length((np.eye(DIMENSION)[0] + spread * random.standard_normal(DIMENSION)).astype("f4"))
        at = START + timedelta(hours=number)
        made.append(Exchange(UUID(int=number + 1), (UUID(int=number + 1),), at, at, vector, None))
    return made


def a_state(theta_sim: object, rows: RecurrenceRows = RecurrenceRows((), ())) -> RecurrenceState:  # noqa: B008
    policy = CountPolicy.of(Settings.model_validate({"theta_sim": theta_sim}))
    return RecurrenceState(NAMESPACE, rows, policy, DIMENSION)


def observe(state: RecurrenceState, some: list[Exchange]) -> list[str]:
    return [state.observe(each, position=n, now=each.said_at).outcome for n, each in enumerate(some)]


@pytest.mark.parametrize(("spread", "adapted"), [(0.05, theta.HIGHEST), (3.0, theta.LOWEST)])
def test_a_namespace_gets_its_own(spread: float, adapted: float) -> None:
    state = a_state("adaptive")
    observe(state, exchanges(100, spread))
    assert state.theta_sim == adapted


def test_a_fixed_one_never_moves_and_counts_nothing() -> None:
    state = a_state(0.6)
    observe(state, exchanges(100, 0.05))
    assert state.theta_sim == 0.6
    assert state.take().similarities is None


@pytest.mark.parametrize("cut", [1, 49, 50, 77])
def test_a_state_rebuilt_from_its_rows_goes_on_with_the_same(cut: int) -> None:
    some = exchanges(120, 0.25)
    whole = a_state("adaptive")
    expected = observe(whole, some)
    before = a_state("adaptive")
    outcomes = observe(before, some[:cut])
    delta = before.take()
    live = tuple(each for each in delta.exchanges.values() if each.state != "claimed")
    rows = RecurrenceRows(live, tuple(delta.threads.values()), delta.similarities or ())
    rest = a_state("adaptive", rows)
    assert outcomes + observe(rest, some[cut:]) == expected
    assert rest.theta_sim == whole.theta_sim != theta.START
