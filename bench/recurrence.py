"""Promotions and merges over θ_sim and θ_count on LoCoMo (RecMem app. C, here with our embedder).

Exchanges are formed, gated and embedded once, exactly as the pipeline does, and the counting is replayed for
every pair of thresholds.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table

from lamina.bench.conversation import Conversation
from lamina.bench.locomo import load_locomo
from lamina.sinks.in_memory import FixedClock, InMemoryMetrics, InMemoryStore
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.tables import open_tables
from lamina.streams.conversations import DialogueTurn
from lamina.streams.count import CountPolicy, RecurrenceState
from lamina.streams.identity import turn_id_from_message
from lamina.streams.namespace import Namespace, namespace_of
from lamina.streams.placement import arrive
from lamina.streams.ports import Embedder
from lamina.streams.records import Placement, Turn
from lamina.streams.recurrence import Exchange, RecurrenceRows
from lamina.streams.settings import Settings
from lamina.streams.steps.embed import embed
from lamina.streams.steps.gate import gate
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.remember import exchange_of

THETA_SIM = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8)
THETA_COUNT = (3, 4, 5, 6)
BATCH = 64

_NOTHING = RecurrenceRows((), ())


@dataclass(frozen=True, slots=True)
class Row:
    """What one pair of thresholds leads to, over all conversations."""

    theta_sim: float
    theta_count: int
    salience: bool
    conversations: int
    exchanges: int
    """Counted exchanges: pairs of which the gate kept a turn, and salient turns that answer nothing."""
    promoted: int
    """Clusters promoted by recurrence."""
    opened: int
    """Threads opened by salience."""
    merged: int
    """Exchanges that joined a known thread."""
    commands: int
    """Consolidation commands: what an LLM would be called for, debounced."""
    covered: float
    """Share of exchanges that end in some thread."""


async def recurrence_table(data: Path, embedder: Embedder, settings: Settings) -> list[Row]:
    """Count every conversation of a folder under every pair of thresholds, with and without salience.

    Raises:
        Misconfigured: the folder holds no LoCoMo conversation.
    """
    spoken = {each.id: await _exchanges(each, embedder, settings) for each in load_locomo(data)}
    return [
        _count(spoken, CountPolicy.of(settings), theta_sim, theta_count, salience=salience)
        for salience in (False, True)
        for theta_count in THETA_COUNT
        for theta_sim in THETA_SIM
    ]


async def _exchanges(conversation: Conversation, embedder: Embedder, settings: Settings) -> list[Exchange]:
    """Return a conversation's exchanges in order, as gate and embed hand them to count."""
    placements = [_placed(turn, namespace_of("bench", conversation.id)) for turn in conversation.turns]
    with TemporaryDirectory() as folder:
        tables = await open_tables(f"sqlite+aiosqlite:///{folder}/tables.db")
        metrics, store = InMemoryMetrics(), InMemoryStore(embedder.dimension)
        clock = FixedClock(conversation.turns[0].said_at)
        ports = Ports(settings, tables, store, embedder, ExtractiveEngine(), clock, metrics)
        exchanges: list[Exchange] = []
        try:
            for start in range(0, len(placements), BATCH):
                clock.set(placements[start].said_at)
                judged = await gate(placements[start : start + BATCH], ports)
                embedded = await embed(judged.forwarded, ports)
                found = (exchange_of(each, ports) for each in embedded)
                exchanges += [each for each in found if each is not None]
        finally:
            await tables.close()
    return exchanges


def _placed(turn: DialogueTurn, namespace: Namespace) -> Placement:
    said = Turn(content=turn.text, name=turn.speaker, timestamp=turn.said_at, run_id=turn.session)
    identity = turn_id_from_message(namespace, turn.id)
    return arrive(namespace, said, fallback_id=identity, received_at=turn.said_at)


def _count(
    spoken: dict[str, list[Exchange]],
    base: CountPolicy,
    theta_sim: float,
    theta_count: int,
    *,
    salience: bool,
) -> Row:
    policy = replace(base, theta_sim=theta_sim, theta_count=theta_count)
    outcomes: list[str] = []
    commands = members = 0
    for name, exchanges in spoken.items():
        dimension = len(exchanges[0].vector) if exchanges and exchanges[0].vector is not None else 1
        state = RecurrenceState(namespace_of("bench", name), _NOTHING, policy, dimension)
        for position, exchange in enumerate(exchanges, start=1):
            seen = exchange if salience else replace(exchange, salience=None)
            outcomes.append(state.observe(seen, position=position, now=seen.said_at).outcome)
        if exchanges:
            state.ripen(position=len(exchanges), now=exchanges[-1].said_at + 2 * policy.merge_wait)
        delta = state.take()
        commands += len(delta.commands)
        members += sum(each.thread is not None for each in delta.exchanges.values())
    return Row(
        theta_sim=theta_sim,
        theta_count=theta_count,
        salience=salience,
        conversations=len(spoken),
        exchanges=len(outcomes),
        promoted=outcomes.count("promotes"),
        opened=outcomes.count("opens"),
        merged=outcomes.count("merges"),
        commands=commands,
        covered=members / max(1, len(outcomes)),
    )


def as_table(rows: Sequence[Row], embedder: str) -> Table:
    """Lay the rows out for a terminal."""
    title = f"{rows[0].conversations} LoCoMo conversations, {rows[0].exchanges} exchanges, {embedder}"
    table = Table(title=title, title_justify="left")
    for heading in ("θ_sim", "θ_count", "salience", "promoted", "opened", "merged", "commands", "covered"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            f"{row.theta_sim:.2f}",
            str(row.theta_count),
            "on" if row.salience else "off",
            str(row.promoted),
            str(row.opened),
            str(row.merged),
            str(row.commands),
            f"{row.covered:.1%}",
        )
    return table


def as_json(rows: Sequence[Row], embedder: str) -> dict[str, Any]:
    """Return the rows as plain data."""
    return {"embedder": embedder, "rows": [asdict(row) for row in rows]}
