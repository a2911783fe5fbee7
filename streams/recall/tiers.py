"""Recall from three tiers (RecMem §3.5): exchanges, episodes and facts, each with its own budget.

The question's vector is compared with every tier by cosine. The raw layer answers in exchanges: a found
turn brings the turn it answers, or its reply, since either alone often says nothing. The paper's budgets are
k_sub = 10, k_epi = 5, k_sem = 10. A caller who wants more results than the budgets give gets the next
best of the tiers that have some. A tier without a budget is not asked at all: the paper's ablations (§4.3).
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from lamina.streams.codec import Vector
from lamina.streams.namespace import Namespace
from lamina.streams.placement import reply_closes
from lamina.streams.ports import Hit, Tables, VectorStore
from lamina.streams.recall.found import TIERS, Filters, Found, Stage, Tier, in_time, known, rank
from lamina.streams.recall.options import Tiers
from lamina.streams.records import Kind, Status, Unit

TURNS_PER_EXCHANGE = 3
"""Turns asked for per exchange: two may fold into one, and a few may just have been archived."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much each tier may give, in exchanges, episodes and facts."""

    exchanges: int = 10
    episodes: int = 5
    facts: int = 10

    def with_options(self, options: Tiers) -> "Budget":
        """Return the budget with what a request asks for instead; 0 leaves a tier out (RecMem §4.3)."""
        asked = {name: value for name, value in options if value is not None}
        return replace(self, **asked)

    def of(self, tier: Tier) -> int:
        """Return the tier's share."""
        return {"subconscious": self.exchanges, "episodic": self.episodes, "semantic": self.facts}[tier]


async def tiers(
    question: Vector,
    namespace: Namespace,
    store: VectorStore,
    tables: Tables,
    *,
    budget: Budget,
    filters: Filters,
    top_k: int | None = None,
    stage: Stage = nullcontext,
) -> list[Found]:
    """Find what a namespace remembers about a question, best first; ties by tier, then id.

    Only what the tables show as visible is returned: a point that the store still holds for an archived,
    forgotten or foreign unit is dropped.

    Args:
        question: shape (dimension,), unit length.
        namespace: the only one that is read.
        store: where neighbours are searched.
        tables: where their rows and evidence are read.
        budget: what each tier may give.
        filters: what a result must satisfy; the other turn of an exchange only has to satisfy `as_of`.
        top_k: the number of results; None: all that the budget allows.
        stage: wraps the search of the store and the loading of rows.

    Raises:
        StoreUnavailable: the store does not answer.
        TablesUnavailable: the tables do not answer.
    """
    asked: dict[Tier, int] = {
        tier: max(budget.of(tier), top_k or 0)
        for kind, tier in TIERS.items()
        if kind in filters.kinds and budget.of(tier) > 0
    }
    if not asked:
        return []
    queries = [
        filters.query(
            question,
            namespace,
            _kinds(tier, filters),
            limit * TURNS_PER_EXCHANGE if tier == "subconscious" else limit,
        )
        for tier, limit in asked.items()
    ]
    with stage("search"):
        hits = dict(zip(asked, await store.search(queries), strict=True))
    with stage("load"):
        units = await tables.units(namespace, {hit.id for found in hits.values() for hit in found})
        reader = _Reader(namespace, tables, filters.as_of)
        shown = {tier: _shown(hits[tier], units, tier, filters) for tier in asked}
        found = {
            tier: await reader.derived(tier, shown[tier])
            if tier != "subconscious"
            # An exchange has two turns at most: so many hold the exchanges asked for.
            else await reader.exchanges(tier, shown[tier][: 2 * asked[tier]])
            for tier in asked
        }
    taken = [one for tier in asked for one in found[tier][: budget.of(tier)]]
    if top_k is not None and len(taken) < top_k:
        rest = (one for tier in asked for one in found[tier][budget.of(tier) :])
        taken += sorted(rest, key=rank)[: top_k - len(taken)]
    return sorted(taken, key=rank)[:top_k]


def _kinds(tier: Tier, filters: Filters) -> tuple[Kind, ...]:
    """Return the wanted kinds of a tier. An abstract stands where the facts did that it put away (ours)."""
    return tuple(kind for kind, of in TIERS.items() if of == tier and kind in filters.kinds)


def _shown(
    hits: Sequence[Hit], units: dict[UUID, Unit], tier: Tier, filters: Filters
) -> list[tuple[Unit, float]]:
    """Keep the hits whose row is visible, of the tier's kinds, and known at `as_of`."""
    return [
        (unit, hit.score)
        for hit in hits
        if (unit := units.get(hit.id)) is not None
        and unit.visible
        and unit.kind in _kinds(tier, filters)
        and known(unit, filters.as_of)
    ]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns found rows into results with their evidence."""

    namespace: Namespace
    tables: Tables
    as_of: datetime | None

    async def derived(self, tier: Tier, shown: Sequence[tuple[Unit, float]]) -> list[Found]:
        """Join episodes or facts with their turns; one that rests on a turn after `as_of` is left out."""
        wanted = {turn for unit, _ in shown for turn in unit.evidence}
        turns = await self.tables.units(self.namespace, wanted) if wanted else {}
        found = [
            Found(
                unit,
                score,
                tier,
                in_time(turns[turn] for turn in unit.evidence if turn in turns),
                {"cosine": score},
            )
            for unit, score in shown
        ]
        return [one for one in found if all(known(turn, self.as_of) for turn in one.turns)]

    async def exchanges(self, tier: Tier, shown: Sequence[tuple[Unit, float]]) -> list[Found]:
        """Fold turns into their exchanges; an exchange ranks by its best turn."""
        around = await self._around([unit for unit, _ in shown])
        found: dict[UUID, Found] = {}
        for unit, score in shown:
            turns = self._exchange_of(unit, around)
            key = turns[-1].id
            best = found.get(key)
            if best is None:
                found[key] = Found(unit, score, tier, turns, {"cosine": score})
            elif (-score, unit.id) < (-best.score, best.unit.id):
                found[key] = replace(best, unit=unit, score=score, why={"cosine": score})
        return sorted(found.values(), key=rank)

    async def _around(self, turns: Sequence[Unit]) -> dict[tuple[str, int], Unit]:
        """Return the turns by place, with those next to them, gated ones too: they were said."""
        around = {(turn.session, turn.ordinal): turn for turn in turns}
        missing = {
            place
            for turn in turns
            for step in (-1, 1)
            if turn.ordinal + step >= 0 and (place := (turn.session, turn.ordinal + step)) not in around
        }
        if missing:
            around |= await self.tables.turns_at(self.namespace, missing)
        return {
            place: turn
            for place, turn in around.items()
            if turn.status is not Status.FAILED and known(turn, self.as_of)
        }

    def _exchange_of(self, turn: Unit, around: dict[tuple[str, int], Unit]) -> tuple[Unit, ...]:
        """Return the turn with the one it answers, else with its reply, else alone."""
        before = around.get((turn.session, turn.ordinal - 1))
        if before is not None and reply_closes(before, turn):
            return (before, turn)
        after = around.get((turn.session, turn.ordinal + 1))
        if after is not None and reply_closes(turn, after):
            return (turn, after)
        return (turn,)
