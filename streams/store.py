"""Links of a newly remembered turn: to the turn before it, and to its nearest neighbours (All-Mem §3.2).

Computed once, on first insert, against earlier units; the batch it arrived in is included, so the links do
not depend on where a batch began.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

from lamina.streams.codec import Vector
from lamina.streams.ports import Hit
from lamina.streams.records import Link, Unit
from lamina.streams.vector_table import DECIMALS, VectorTable


def temporal_link(unit: Unit, after: UUID | None) -> list[Link]:
    """Link a turn to the latest kept turn before it in its session (All-Mem: E_τ)."""
    if after is None:
        return []
    return [Link(namespace=unit.namespace, source=unit.id, target=after, type="temporal")]


def semantic_links(unit: Unit, found: Iterable[Hit], batch: Iterable[Hit], cap: int) -> list[Link]:
    """Link a unit to its nearest earlier neighbours (All-Mem: E_σ, out-degree cap d_σ).

    Args:
        unit: the new unit.
        found: neighbours from the vector store.
        batch: neighbours that arrived earlier in the same batch, not yet in the store.
        cap: the out-degree cap; ties go to the smaller id.
    """
    best = {hit.id: round(hit.score, DECIMALS) for hit in (*found, *batch) if hit.id != unit.id}
    ranked = sorted(best.items(), key=lambda item: (-item[1], str(item[0])))[:cap]
    return [
        Link(namespace=unit.namespace, source=unit.id, target=target, type="semantic", weight=weight)
        for target, weight in ranked
        if weight > 0
    ]


def neighbours_in_batch(batch: Sequence[tuple[Unit, Vector]], cap: int) -> list[list[Hit]]:
    """Return, for each unit of a batch, its nearest earlier units of the same namespace in that batch."""
    tables: dict[str, VectorTable] = {}
    found: list[list[Hit]] = []
    for unit, vector in batch:
        table = tables.setdefault(unit.namespace, VectorTable(len(vector)))
        found.append([Hit(key, score) for key, score in table.nearest(vector, cap)])
        table.put(unit.id, vector)
    return found
