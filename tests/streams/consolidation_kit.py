"""What the tests of consolidation share: ports on a real SQLite file, turns, a scripted engine."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lamina.sinks.in_memory import FixedClock, HashEmbedder, InMemoryMetrics, InMemoryStore
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.tables import SqlTables, open_tables
from lamina.streams import flow
from lamina.streams.engine import Cluster
from lamina.streams.facts import replaces
from lamina.streams.identity import turn_id_from_message
from lamina.streams.namespace import Namespace, namespace_of
from lamina.streams.placement import arrive
from lamina.streams.records import EpisodeDraft, Kind, Placement, Plan, Turn, Unit
from lamina.streams.settings import Settings
from lamina.streams.steps.carry_out import carry_out
from lamina.streams.steps.outcome import Outcome
from lamina.streams.steps.ports import Ports

ADA, BEN = namespace_of("acme", "ada"), namespace_of("acme", "ben")
NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
BEES, HONEY = "I keep bees behind the old barn", "Bees need flowers all summer long"
JEANS, DENIM = "My jeans are torn at both knees", "Denim can be mended with patches"

Says = Callable[[Cluster], Plan]


class ScriptedEngine(ExtractiveEngine):
    """An engine that gives the scripted plans in turn, the last one for ever, or raises what stands there."""

    name = "scripted"

    def __init__(self, *says: Says | Exception) -> None:
        self.says = list(says)
        self.seen: list[Cluster] = []

    async def consolidate(self, claim, cluster, related) -> Plan:
        self.seen.append(cluster)
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(said, Exception):
            raise said
        return said(cluster)


def nothing(_: Cluster) -> Plan:
    """Decline."""
    return Plan(engine="scripted", note="small talk")


def one_episode(cluster: Cluster) -> Plan:
    """Put everything in one episode."""
    return Plan(engine="scripted", episodes=(episode((*cluster.told, *cluster.turns)),))


def episode(turns: Sequence[Unit]) -> EpisodeDraft:
    """Return an episode that quotes its turns."""
    once = {turn.id: turn for turn in turns}
    return EpisodeDraft(
        text=" ".join(dict.fromkeys(turn.text for turn in once.values())), evidence=tuple(once)
    )


@asynccontextmanager
async def opened(folder: Path, engine: Any, **settings: Any) -> AsyncIterator[Any]:
    """Ports over a new SQLite file in a folder; the gate admits all."""
    given = {"theta_count": 2, "merge_size": 2, "gate_enabled": False, "topology": False} | settings
    tables = await open_tables(f"sqlite+aiosqlite:///{folder / 'tables.db'}")
    store, embedder = InMemoryStore(HashEmbedder.dimension), HashEmbedder()
    try:
        yield Ports(Settings(**given), tables, store, embedder, engine, FixedClock(NOW), InMemoryMetrics())
    finally:
        await tables.close()


def said(*texts: str, start: int = 0, namespace: Namespace = ADA) -> list[Placement]:
    """A user and an assistant in turn, a minute apart."""
    placements = []
    for number, text in enumerate(texts, start=start):
        role = "user" if number % 2 == 0 else "assistant"
        turn = Turn(role=role, content=text, message_id=str(number), run_id="one")
        turn = turn.model_copy(update={"timestamp": NOW + timedelta(minutes=number)})
        identity = turn_id_from_message(namespace, str(number))
        placements.append(arrive(namespace, turn, fallback_id=identity, received_at=NOW))
    return placements


async def run(ports: Ports, *texts: str, start: int = 0, namespace: Namespace = ADA) -> None:
    """Take turns all the way."""
    await flow.run(said(*texts, start=start, namespace=namespace), ports, replaces, batch_size=2)


async def claimed(ports: Ports) -> list[Outcome]:
    """Carry out what can be carried out now; return how each command ended."""
    ended = []
    while claim := await ports.tables.claim("test", ports.clock.now(), 60):
        ended.append(await carry_out(claim, ports, replaces))
    return ended


async def states(ports: Ports) -> dict[str, int]:
    """Return the commands by state."""
    return {state: count for state, count in (await ports.tables.tally()).commands.items() if count}


async def visible(ports: Ports, kind: Kind, namespace: Namespace = ADA) -> list[Unit]:
    """Return the visible units of a kind."""
    return await ports.tables.visible_units(namespace, [kind])


async def recurrence(ports: Ports, namespace: Namespace = ADA):
    """Return the recurrence rows."""
    async with ports.tables.transaction([namespace]) as tx:
        return await tx.recurrence(namespace)


def with_tables(ports: Ports, tables: Any) -> Ports:
    """Return the ports over other tables."""
    return replace(ports, tables=tables)


class Crash(Exception):
    """The process ends here."""


class CrashingTables:
    """Tables whose transactions fail at the n-th write, before it is done, as a crash there would look."""

    WRITES = frozenset(
        {
            "finish_command",
            "insert_units",
            "update_units",
            "insert_links",
            "record_changes",
            "save_recurrence",
            "set_status",
            "push_buffer",
            "issue_commands",
            "claim_buffer",
            "mark_indexed",
        }
    )

    def __init__(self, tables: SqlTables, at: int) -> None:
        self._tables = tables
        self.left = at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)

    @asynccontextmanager
    async def transaction(self, namespaces):
        async with self._tables.transaction(namespaces) as tx:
            yield _CrashingTransaction(tx, self)
            self.strike()  # before the commit

    def strike(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Crash


class _CrashingTransaction:
    def __init__(self, tx: Any, owner: CrashingTables) -> None:
        self._tx = tx
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        if name in CrashingTables.WRITES:
            self._owner.strike()
        return getattr(self._tx, name)
