"""Facts that cannot both hold: the same subject and relation, one value at a time, two values at once.

Consolidation ends a fact when a newer one of the same subject and relation comes. What it does not settle
stays visible twice: a name spelled in two ways, two facts that an engine wrote for two threads. A reader who
is shown both must be told. Ours; no paper states it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations

from lamina.streams.facts import replaces
from lamina.streams.records import Unit
from lamina.streams.words import tokens

_ALWAYS = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Facts of one subject and relation that exclude each other, the one that began first in front."""

    subject: str
    relation: str
    facts: tuple[Unit, ...]


def conflicts(facts: Iterable[Unit], *, single: Callable[[str], bool] = replaces) -> tuple[Conflict, ...]:
    """Return the conflicts among facts, in the order of subject and relation.

    Units of other kinds are ignored. Two facts disagree where their times overlap, half-open from
    `valid_from` (else `said_at`) to `valid_to`, and neither object says the other's in more words
    ("Lisbon", "Lisbon in Portugal"). Of several facts with one object the first stands for all.

    Args:
        facts: in any order; each is taken to hold in all of its time.
        single: whether a relation holds one value at a time.
    """
    grouped: dict[tuple[str, str], list[Unit]] = {}
    for fact in facts:
        if fact.kind == "fact" and fact.subject and fact.relation and fact.object and single(fact.relation):
            grouped.setdefault((fact.subject.casefold(), fact.relation.casefold()), []).append(fact)
    found = []
    for _, group in sorted(grouped.items()):
        group.sort(key=lambda fact: (since(fact), str(fact.id)))
        against = {fact.id for pair in combinations(group, 2) if _disagree(*pair) for fact in pair}
        first: dict[frozenset[str], Unit] = {}
        for fact in group:
            if fact.id in against:
                first.setdefault(_words(fact), fact)
        if first:
            one = next(iter(first.values()))
            found.append(Conflict(one.subject or "", one.relation or "", tuple(first.values())))
    return tuple(found)


def since(fact: Unit) -> datetime:
    """Return when a fact began to hold: as it says, else when it was said."""
    return fact.valid_from or fact.said_at


def _disagree(one: Unit, other: Unit) -> bool:
    mine, theirs = _words(one), _words(other)
    if mine <= theirs or theirs <= mine:
        return False
    return since(one) < (other.valid_to or _ALWAYS) and since(other) < (one.valid_to or _ALWAYS)


def _words(fact: Unit) -> frozenset[str]:
    what = fact.object or ""
    return frozenset(tokens(what)) or frozenset({what.casefold()})
