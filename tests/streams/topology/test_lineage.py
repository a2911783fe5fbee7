"""Which ancestors a new version is linked to."""

from uuid import UUID

from lamina.streams.records import Link
from lamina.streams.topology.lineage import ancestors

from .bank_kit import NAMESPACE


def links(*pairs, kind="version"):
    return [Link(namespace=NAMESPACE, source=UUID(int=a), target=UUID(int=b), type=kind) for a, b in pairs]


def found(units, known, **fields):
    return [unit.int for unit in ancestors([UUID(int=each) for each in units], known, **fields)]


def test_all_ancestors_once_the_later_before_the_earlier():
    known = links((5, 4), (5, 3), (4, 3), (3, 1), (3, 2), (4, 1))
    assert found([5], known) == [5, 4, 3, 1, 2]
    assert found([5, 9], known) == [5, 9, 4, 3, 1, 2]
    assert found([], known) == []


def test_only_version_links_count():
    assert found([2], links((2, 1), kind="semantic")) == [2]


def test_a_long_history_is_sampled_and_the_newest_are_kept():
    chain = links(*((number, number - 1) for number in range(2, 102)))
    taken = found([101], chain, most=10)
    assert taken[:6] == [101, 100, 99, 98, 97, 96]
    assert len(taken) == 11
    assert taken[6:] == sorted(taken[6:], reverse=True)
    assert taken[-1] < 25


def test_a_cycle_ends():
    assert found([3], links((3, 2), (2, 1), (1, 2))) == [3, 1, 2]
