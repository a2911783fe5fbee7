"""What became of what was found: facts that hold no longer, and what holds in their place.

A fact that another ended is archived with `valid_to`, and a version link leads to it from each that came
after (`lamina.streams.consolidation`). Whoever reads the turn or the fact alone would take it for true. Ours.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from lamina.streams.namespace import Namespace
from lamina.streams.ports import Tables
from lamina.streams.recall.conflicts import since
from lamina.streams.recall.found import Found, known
from lamina.streams.records import Unit


@dataclass(frozen=True, slots=True)
class Ended:
    """A memory that holds no longer."""

    unit: Unit
    until: datetime
    now: Unit | None
    """What holds in its place; None where nothing is linked to it."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of found memories beyond their rows, at one time."""

    as_of: datetime | None = None
    """The time; None: now."""
    ended: Mapping[UUID, Ended] = field(default_factory=dict)
    """Memories that hold no longer, by id."""
    stated: Mapping[UUID, tuple[Ended, ...]] = field(default_factory=dict)
    """Facts that hold no longer, by the turns that stated them, in the order in which they ended."""
    held: Mapping[UUID, tuple[Unit, ...]] = field(default_factory=dict)
    """Facts that held at `as_of` and have been archived since, by the turns that stated them: no strategy
    that searches what is visible now can find them."""


UNKNOWN = Standing()
"""Nothing was asked: every memory stands as its row says."""


async def standing(
    found: Sequence[Found], namespace: Namespace, tables: Tables, as_of: datetime | None
) -> Standing:
    """Look up which found memories, and which facts that found turns state, hold no longer, or held then.

    At `as_of` a fact holds if what ended it was said, or holds, only from later on. One that was said
    again after it was ended has not ended: Lisbon, Porto, Lisbon.

    Args:
        found: what a strategy gave.
        namespace: whose.
        tables: read twice at most, whatever was found, and once where nothing has ended.
        as_of: the time that the question is asked for; None: now.

    Raises:
        TablesUnavailable: the tables do not answer.
    """
    turns = {turn.id for one in found for turn in (*one.turns, one.unit) if turn.kind == "turn"}
    stating = await tables.linking_to(namespace, turns, "evidence", ended=True) if turns else []
    facts = [(turn, unit) for turn, unit in stating if unit.kind == "fact"]
    over = {one.unit.id: one.unit for one in found if one.unit.valid_to is not None}
    over |= {fact.id: fact for _, fact in facts}
    if not over:
        return Standing(as_of)
    newer: dict[UUID, list[Unit]] = {key: [] for key in over}
    for key, unit in await tables.linking_to(namespace, over, "version"):
        newer[key].append(unit)
    ended = {key: one for key, unit in over.items() if (one := _ended(unit, newer[key], as_of)) is not None}
    stated: dict[UUID, list[Ended]] = {}
    held: dict[UUID, list[Unit]] = {}
    for turn, fact in facts:
        if fact.id in ended:
            stated.setdefault(turn, []).append(ended[fact.id])
        elif as_of is not None and known(fact, as_of):
            held.setdefault(turn, []).append(fact)
    return Standing(
        as_of,
        ended,
        {turn: tuple(sorted(each, key=_order)) for turn, each in stated.items()},
        {turn: tuple(sorted(each, key=lambda fact: str(fact.id))) for turn, each in held.items()},
    )


def _ended(unit: Unit, later: Collection[Unit], as_of: datetime | None) -> Ended | None:
    """Return how a memory ended by the given time; None where it holds."""
    assert unit.valid_to is not None  # noqa: S101 - what has no end is not asked about
    told = [each for each in later if known(each, as_of)]
    if not told:
        gone = not later and (as_of is None or unit.valid_to <= as_of)
        return Ended(unit, unit.valid_to, None) if gone else None
    now = max(told, key=lambda each: (as_of is None and each.visible, since(each), str(each.id)))
    if unit.object and (now.object or "").casefold() == unit.object.casefold():
        return None
    after = [since(each) for each in told if since(each) > since(unit)]
    return Ended(unit, unit.valid_to if as_of is None else min(after, default=unit.valid_to), now)


def _order(one: Ended) -> tuple[datetime, str]:
    return one.until, str(one.unit.id)
