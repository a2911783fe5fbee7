"""Recurrence decides: RecMem's running example, merge-first, the debounce, salience."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

import numpy as np
import pytest

from lamina.streams.count import CountPolicy, RecurrenceState
from lamina.streams.namespace import namespace_of
from lamina.streams.recurrence import Exchange, RecurrenceRows
from lamina.streams.vector_table import VectorTable, unit_length

NAMESPACE = namespace_of("acme", "ada")
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
ROOT = UUID(int=7)
EMPTY = RecurrenceRows((), ())


def a_policy(**changes) -> CountPolicy:
    given = {
        "theta_sim": 0.7,
        "theta_count": 3,
        "merge_size": 2,
        "merge_idle": timedelta(minutes=15),
        "merge_wait": timedelta(hours=1),
    }
    return CountPolicy(**given | changes)


def an_exchange(name: str, direction, minute: int = 0, salience: str | None = None) -> Exchange:
    turns = (uuid5(ROOT, name + "/user"), uuid5(ROOT, name + "/assistant"))
    said_at = START + timedelta(minutes=minute)
    vector = unit_length(np.asarray(direction, dtype=np.float32))
    return Exchange(uuid5(ROOT, name), turns, said_at, said_at, vector, salience)


def a_state(policy: CountPolicy, rows: RecurrenceRows = EMPTY) -> RecurrenceState:
    return RecurrenceState(NAMESPACE, rows, policy, 3)


def observe(state: RecurrenceState, *exchanges: Exchange):
    return [state.observe(each, position=n, now=each.said_at) for n, each in enumerate(exchanges, start=1)]


CAKE, CAKE_AGAIN, JEANS = [1, 0.1, 0], [1, 0.3, 0], [0, 0, 1]


def test_recmem_running_example_promotes_on_the_third_turn() -> None:
    """RecMem app. B, θ_count = 2, the unit itself counted: cake, jeans, cake again."""
    state = a_state(a_policy(theta_count=2))
    cake, jeans, again = (
        an_exchange("cake", CAKE),
        an_exchange("jeans", JEANS, 1),
        an_exchange("cake again", CAKE_AGAIN, 2),
    )
    first, second, third = observe(state, cake, jeans, again)
    assert (first.outcome, len(first.similar)) == ("stays", 1)
    assert (second.outcome, len(second.similar)) == ("stays", 1)
    assert third.outcome == "promotes"
    assert {key for key, _ in third.similar} == {cake.id, again.id}
    (command,) = state.take().commands
    assert (command.kind, command.reason) == ("promote", "recurrence")
    assert command.exchanges == (cake.id, again.id)
    assert command.evidence == (*cake.turns, *again.turns)


def test_recurrence_then_merge_first_by_hand() -> None:
    """RecMem eq. 5 and 6 with θ_sim = .7, θ_count = 3, in the plane.

        exchange  vector          cosines                       R_i, itself included
        a         (1, 0)
        b         (.8, .6)        a .8                          2 < 3: stays
        c         (.6, .8)        a .6, b .96                   2 < 3: stays
        d         (.75, .6614)    a .75, b .9969, c .9791       4 ≥ 3: promotes a, b, c, d
        e         (.3, .9539)     a .3; centroid .7734 ≥ .7     merges (eq. 6)
        f         (0, 1)          centroid < .7                 stays

    The centroid of a to d is (3.15, 2.0614)/3.7646 = (.8367, .5476), so e's cosine is .251 + .5224; with e
    it is (3.45, 3.0153)/4.5819, and f's .6581.
    """
    state = a_state(a_policy(merge_size=9))
    a, b, c, d, e, f = (
        an_exchange(name, [x, y, 0], n)
        for n, (name, x, y) in enumerate(
            [
                ("a", 1, 0),
                ("b", 0.8, 0.6),
                ("c", 0.6, 0.8),
                ("d", 0.75, 0.6614),
                ("e", 0.3, 0.9539),
                ("f", 0, 1),
            ]
        )
    )
    decided = observe(state, a, b, c, d, e, f)
    assert [each.outcome for each in decided] == ["stays", "stays", "stays", "promotes", "merges", "stays"]
    assert [len(each.similar) for each in decided[:4]] == [1, 2, 2, 4]
    cosines = dict(decided[3].similar)
    assert [cosines[each.id] for each in (a, b, c)] == pytest.approx([0.75, 0.9969, 0.9791], abs=1e-3)
    assert decided[4].similar[0][1] == pytest.approx(0.7734, abs=1e-3)


def test_with_a_count_of_one_every_exchange_is_consolidated_at_once() -> None:
    """Without recurrence: |R_i| counts i itself, so one is enough; the second cake merges (eq. 6)."""
    state = a_state(a_policy(theta_count=1, merge_size=1))
    decided = observe(
        state,
        an_exchange("cake", CAKE),
        an_exchange("jeans", JEANS, 1),
        an_exchange("cake again", CAKE_AGAIN, 2),
    )
    assert [each.outcome for each in decided] == ["promotes", "promotes", "merges"]
    assert [command.kind for command in state.take().commands] == ["promote", "promote", "merge"]


def test_a_promoted_cluster_takes_later_similar_exchanges_without_waiting_for_its_episode() -> None:
    state = a_state(a_policy(theta_count=2, merge_size=2))
    decisions = observe(state, *(an_exchange(f"cake {n}", CAKE, n) for n in range(4)))
    assert [each.outcome for each in decisions] == ["stays", "promotes", "merges", "merges"]
    promote, merge = state.take().commands
    assert (merge.kind, merge.reason, merge.thread) == ("merge", "merge_full", promote.thread)
    assert len(merge.exchanges) == 2


def test_a_quiet_thread_merges_what_waits_when_event_time_has_passed() -> None:
    state = a_state(a_policy(theta_count=2, merge_size=9))
    observe(state, an_exchange("a", CAKE), an_exchange("b", CAKE, 1), an_exchange("c", CAKE, 2))
    assert [each.kind for each in state.take().commands] == ["promote"]
    observe(state, an_exchange("jeans", JEANS, 61))
    assert state.take().commands == []
    observe(state, an_exchange("jeans again", [0, 1, 0], 62))
    assert [each.reason for each in state.take().commands] == ["merge_idle"]


def test_what_matters_waits_less_long_in_a_known_thread() -> None:
    state = a_state(a_policy(theta_count=2, merge_size=9))
    observe(
        state, an_exchange("a", CAKE), an_exchange("b", CAKE, 1), an_exchange("c", CAKE, 2, salience="safety")
    )
    assert [each.kind for each in state.take().commands] == ["promote"]
    observe(state, an_exchange("jeans", JEANS, 17))
    assert [(each.kind, each.reason) for each in state.take().commands] == [("merge", "merge_idle")]


def test_wall_clock_silence_merges_what_waits() -> None:
    state = a_state(a_policy(theta_count=2, merge_size=9))
    observe(state, an_exchange("a", CAKE), an_exchange("b", CAKE, 1), an_exchange("c", CAKE, 2))
    state.take()
    state.ripen(position=3, now=START + timedelta(minutes=62))
    assert state.take().commands == []
    state.ripen(position=3, now=START + timedelta(minutes=63))
    assert [each.reason for each in state.take().commands] == ["merge_idle"]


def test_a_salient_exchange_is_promoted_without_recurring_once_it_is_quiet() -> None:
    state = a_state(a_policy())
    (decision,) = observe(state, an_exchange("allergy", CAKE, salience="safety"))
    assert decision.outcome == "opens"
    assert state.take().commands == []
    observe(state, an_exchange("jeans", JEANS, 20))
    (command,) = state.take().commands
    assert (command.kind, command.reason) == ("promote", "salience")


def test_an_exchange_is_claimed_once() -> None:
    state = a_state(a_policy(theta_count=2, merge_size=1))
    observe(state, *(an_exchange(f"cake {n}", CAKE, n) for n in range(6)))
    claimed = [key for command in state.take().commands for key in command.exchanges]
    assert len(claimed) == len(set(claimed)) == 6


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_state_rebuilt_from_its_rows_decides_as_the_one_that_never_stopped(cut: int) -> None:
    other, near_other = [0, 1, 0], [0.1, 1, 0]
    directions = [CAKE, JEANS, CAKE_AGAIN, CAKE, other, JEANS, near_other, CAKE, JEANS, CAKE, JEANS, CAKE]
    exchanges = [an_exchange(str(n), direction, 3 * n) for n, direction in enumerate(directions)]
    policy = a_policy(theta_count=2, merge_size=3)
    whole = a_state(policy)
    expected = [each.outcome for each in observe(whole, *exchanges)]
    before = a_state(policy)
    outcomes = [each.outcome for each in observe(before, *exchanges[:cut])]
    delta = before.take()
    live = tuple(each for each in delta.exchanges.values() if each.state != "claimed")
    after = a_state(policy, RecurrenceRows(live, tuple(delta.threads.values())))
    rest = enumerate(exchanges[cut:], cut + 1)
    outcomes += [after.observe(each, position=n, now=each.said_at).outcome for n, each in rest]
    assert outcomes == expected
    assert [c.id for c in (*delta.commands, *after.take().commands)] == [c.id for c in whole.take().commands]


def test_a_vector_table_forgets_what_is_dropped_and_breaks_ties_by_id() -> None:
    table = VectorTable(2)
    keys = [UUID(int=n) for n in (3, 1, 2)]
    for key in keys:
        table.put(key, np.array([1, 0], dtype=np.float32))
    table.drop(UUID(int=3))
    assert table.nearest(np.array([1, 0], dtype=np.float32), 5) == [(UUID(int=1), 1.0), (UUID(int=2), 1.0)]
    assert len(table) == 2
