"""Promotions and merges over θ_sim and θ_count on LoCoMo (RecMem app. C, here with our embedder).

Exchanges are formed, gated and embedded once, exactly as the pipeline does, and the counting is replayed for
every pair of thresholds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import orjson
from rich.table import Table

from lamina.streams.codec import Vector
from lamina.streams.conversations import LocomoTurn, locomo_turns
from lamina.streams.count import CountPolicy, RecurrenceState
from lamina.streams.gate import GatePolicy, judge
from lamina.streams.namespace import Namespace, namespace_of
from lamina.streams.placement import reply_closes
from lamina.streams.ports import Embedder
from lamina.streams.records import Unit
from lamina.streams.recurrence import Exchange, RecurrenceRows
from lamina.streams.salience import salience_of
from lamina.streams.settings import Settings

THETA_SIM = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8)
THETA_COUNT = (3, 4, 5, 6)

_ROOT = UUID(int=0)
_NOTHING = RecurrenceRows((), ())


@dataclass(frozen=True, slots=True)
class Row:
    """What one pair of thresholds leads to, over all conversations."""

    theta_sim: float
    theta_count: int
    salience: bool
    conversations: int
    exchanges: int
    """Counted exchanges: at least one of their two turns passed the gate."""
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
        ValueError: the folder holds no LoCoMo conversation.
    """
    raw = {file.stem: orjson.loads(file.read_bytes()) for file in _files(data)}
    spoken = {name: await _exchanges(name, each, embedder, settings) for name, each in raw.items()}
    return [
        _count(spoken, CountPolicy.of(settings), theta_sim, theta_count, salience=salience)
        for salience in (False, True)
        for theta_count in THETA_COUNT
        for theta_sim in THETA_SIM
    ]


def _files(data: Path) -> list[Path]:
    files = sorted(data.glob("*.json"))
    if not files:
        raise ValueError(f"no LoCoMo conversation (*.json) in {data}")
    return files


async def _exchanges(
    name: str, raw: dict[str, Any], embedder: Embedder, settings: Settings
) -> list[Exchange]:
    """Return a conversation's exchanges in order, as gate and embed would hand them to count."""
    namespace = namespace_of("bench", name)
    units = _units(list(locomo_turns(raw)), namespace)
    policy = GatePolicy.of(settings)
    kept = {
        unit.id: judge(unit.text, [each.text for each in before], policy).keep
        for unit, before in _with_history(units, settings.gate_window - 1)
    }
    closed = [
        (previous, unit)
        for previous, unit in pairwise(units)
        if previous.session == unit.session
        and reply_closes(previous, unit)
        and (kept[unit.id] or kept[previous.id])
    ]
    vectors = await embedder.embed_turns([(previous.spoken, unit.spoken) for previous, unit in closed])
    return [
        _exchange(previous, unit, vector)
        for (previous, unit), vector in zip(closed, vectors.exchange, strict=True)
    ]


def _exchange(previous: Unit, unit: Unit, vector: Vector) -> Exchange:
    salience = salience_of(unit.text) or salience_of(previous.text)
    return Exchange(unit.id, (previous.id, unit.id), unit.said_at, unit.said_at, vector, salience)


def _units(turns: Sequence[LocomoTurn], namespace: Namespace) -> list[Unit]:
    ordinals: dict[str, int] = {}
    units = []
    for position, turn in enumerate(turns, start=1):
        ordinal = ordinals.setdefault(turn.session, 0)
        ordinals[turn.session] += 1
        units.append(
            Unit(
                id=uuid5(_ROOT, f"{namespace}/{turn.id}"),
                namespace=namespace,
                kind="turn",
                session=turn.session,
                ordinal=ordinal,
                position=position,
                speaker=turn.speaker,
                text=turn.text,
                said_at=turn.said_at,
                recorded_at=turn.said_at,
            )
        )
    return units


def _with_history(units: Sequence[Unit], window: int) -> Iterator[tuple[Unit, list[Unit]]]:
    for index, unit in enumerate(units):
        before = units[max(0, index - min(window, unit.ordinal)) : index]
        yield unit, list(before)


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
            last = exchanges[-1].said_at + 2 * policy.merge_idle
            state.ripen(last, position=len(exchanges), now=last)
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
