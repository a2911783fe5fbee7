"""What building memory costs: units, commands, edits, calls, tokens and seconds, mode beside mode.

Every conversation is played into a fresh SQLite file and a fresh store, one after another. Where no model is
configured, `lamina.bench.rehearsal` stands in for one: calls and tokens are counted, quality is not.
"""

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Literal

from rich.progress import Progress

from lamina.bench.construction_figures import Figures, figures_of
from lamina.bench.construction_report import Report
from lamina.bench.conversation import Conversation
from lamina.bench.counted import CountedModel
from lamina.bench.faithful import Described, Extracted
from lamina.bench.locomo import load_locomo
from lamina.bench.modes import Mode
from lamina.bench.rehearsal import RehearsalModel
from lamina.bench.replay import Take, namespace_for, placements_of, replay
from lamina.sinks.in_memory import FixedClock, InMemoryMetrics, InMemoryStore
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.llm_prompted import PromptedEngine
from lamina.sinks.qdrant_edge import open_edge
from lamina.sinks.replies import asking
from lamina.sinks.tables import open_tables
from lamina.streams.identity import turn_id_from_message
from lamina.streams.llm import LanguageModel
from lamina.streams.ports import Embedder, VectorStore
from lamina.streams.records import Placement
from lamina.streams.settings import Settings
from lamina.streams.steps.embed import embed
from lamina.streams.steps.gate import gate
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.remember import RecurrenceCache, remember

StoreName = Literal["edge", "memory"]


@dataclass(frozen=True, slots=True)
class Rig:
    """What every mode is measured with."""

    settings: Settings
    embedder: Embedder
    """One for all modes: what one mode embedded, the next takes from its cache."""
    model: LanguageModel
    store: StoreName
    """`edge`: Qdrant Edge in its own process, as the embedded system has it; `memory`: none."""


async def build(data: Path, modes: Sequence[Mode], rig: Rig, tokenizer: str, progress: Progress) -> Report:
    """Build the memory of every conversation of a folder in every mode.

    Args:
        data: folder of LoCoMo's JSON files.
        modes: in this order.
        rig: with what.
        tokenizer: the name of what counts the tokens of a rehearsal.
        progress: gets a bar of turns for each mode.

    Raises:
        Misconfigured: the folder holds no LoCoMo conversation.
        ModelUnavailable: the configured model did not answer, again and again.
    """
    conversations = load_locomo(data)
    figures: dict[str, dict[str, Figures]] = {}
    for mode in modes:
        bar = progress.add_task(mode.name, total=sum(len(each.turns) for each in conversations))
        figures[mode.name] = {
            each.id: await construct(each, mode, rig, lambda turns: progress.advance(bar, turns))  # noqa: B023
            for each in conversations
        }
    rehearsed = isinstance(rig.model, RehearsalModel)
    return Report(
        figures=figures,
        tokenizer=tokenizer if rehearsed else f"the server of {rig.model.name}",
        model=rig.model.name,
        embedder=rig.embedder.name,
        store=rig.store,
        machine=machine(),
        turns={
            turn_id_from_message(namespace_for(each), turn.id): f"{each.id}/{turn.id}"
            for each in conversations
            for turn in each.turns
        },
    )


async def construct(
    conversation: Conversation, mode: Mode, rig: Rig, told: Callable[[int], None] = lambda _: None
) -> Figures:
    """Build the memory of one conversation in one mode and return what it took.

    Args:
        conversation: all of its turns are played, in order.
        mode: how.
        rig: with what.
        told: of the number of turns of each batch that was taken.

    Raises:
        ModelUnavailable: the configured model did not answer, again and again.
    """
    settings = mode.settings(rig.settings)
    placements = placements_of(conversation)
    clock, metrics, model = FixedClock(placements[0].said_at), InMemoryMetrics(), CountedModel(rig.model)
    with TemporaryDirectory(prefix="lamina-bench-", ignore_cleanup_errors=True) as folder:
        tables = await open_tables(f"sqlite+aiosqlite:///{folder}/tables.db")
        try:
            store = await _open_store(rig, Path(folder))
            try:
                asks = asking(model, tables, clock, metrics, settings)
                engine = (
                    ExtractiveEngine()
                    if mode.writer == "rules"
                    else PromptedEngine(asks, model.name, settings.episodic)
                )
                ports = Ports(settings, tables, store, rig.embedder, engine, clock, metrics)
                begun = perf_counter()
                await replay(placements, _intake(mode, ports, model), ports, clock, told)
                seconds = perf_counter() - begun
                return await figures_of(namespace_for(conversation), tables, metrics, model.bill, seconds)
            finally:
                await store.close()
        finally:
            await tables.close()


async def _open_store(rig: Rig, folder: Path) -> VectorStore:
    if rig.store == "memory":
        return InMemoryStore(rig.embedder.dimension)
    return await open_edge(folder, rig.embedder.name, rig.embedder.dimension)


def _intake(mode: Mode, ports: Ports, model: CountedModel) -> Take:
    if mode.intake == "described":
        return Described(ports, model)
    if mode.intake == "extracted":
        return Extracted(ports, model)
    cache = RecurrenceCache(ports.settings.recurrence_cache_exchanges)

    async def take(batch: Sequence[Placement]) -> None:
        judged = await gate(batch, ports)
        if judged.forwarded:
            await remember(await embed(judged.forwarded, ports), ports, cache)

    return take


def machine() -> str:
    """Return what the run was made on: cores in reach, processor, system and Python."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"
