"""`lamina demo`: the sample conversation through the whole embedded system, and three questions about it."""

import asyncio
from dataclasses import dataclass
from importlib.resources import files
from time import perf_counter

import orjson
from rich.console import Console
from rich.table import Table

from lamina.agents.cli_common import progress_on
from lamina.agents.embedded import embedded
from lamina.agents.process import Running, unless_ended
from lamina.query.client import Client
from lamina.sinks.prometheus import PrometheusMetrics
from lamina.streams.codec import encode
from lamina.streams.conversations import read_conversation
from lamina.streams.metrics import MERGES, PROMOTIONS, TURNS
from lamina.streams.namespace import Namespace, namespace_of
from lamina.streams.ports import Outgoing, Tally
from lamina.streams.records import Status, Turn
from lamina.streams.settings import Settings
from lamina.streams.topics import TURNS as TURNS_TOPIC

USER = "nora"
LONGEST_WAIT_SECONDS = 120.0
POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Sample:
    """The project's own conversation and the questions that the demo asks."""

    turns: tuple[Turn, ...]
    questions: tuple[str, ...]


def sample() -> Sample:
    """Read the sample conversation from the package."""
    data = files("lamina.bench") / "data"
    turns = read_conversation((data / "sample_conversation.jsonl").read_bytes()).turns
    questions = orjson.loads((data / "sample_questions.json").read_bytes())
    return Sample(turns, tuple(each["question"] for each in questions))


async def demo(settings: Settings, console: Console) -> bool:
    """Run the demo; True when every turn ended well and every answer rests on evidence."""
    told = sample()
    console.print("Starting the broker, the store and the pipeline …")
    started = perf_counter()
    async with embedded(settings) as running, unless_ended(running.ending):
        console.print(f"Up in {perf_counter() - started:.1f} s at {running.url}\n")
        namespace = namespace_of(settings.tenant, USER)
        begun = perf_counter()
        await _publish(told.turns, namespace, running, console)
        tally = await _settled(len(told.turns), namespace, running, console)
        _report(told.turns, tally, running.outside.metrics, perf_counter() - begun, console)
        answered = [await _ask(question, running, console) for question in told.questions]
    return all(answered) and not tally.turns.get("failed")


async def _publish(turns: tuple[Turn, ...], namespace: Namespace, running: Running, console: Console) -> None:
    with progress_on(console) as progress:
        task = progress.add_task("published to the turns topic", total=len(turns))
        for start in range(0, len(turns), 16):
            part = turns[start : start + 16]
            await running.outside.publisher.publish(
                [Outgoing(TURNS_TOPIC, namespace, encode(turn)) for turn in part]
            )
            progress.advance(task, len(part))


async def _settled(total: int, namespace: Namespace, running: Running, console: Console) -> Tally:
    """Wait until every turn is in a terminal state and every command is carried out."""
    with progress_on(console) as progress:
        task = progress.add_task("in a terminal state        ", total=total)
        async with asyncio.timeout(LONGEST_WAIT_SECONDS):
            while True:
                tally = await running.outside.ports.tables.tally(namespace)
                done = sum(count for status, count in tally.turns.items() if Status(status).terminal)
                progress.update(task, completed=done)
                if done == total and not tally.open_commands and not tally.index_waiting:
                    return tally
                await asyncio.sleep(POLL_SECONDS)


def _report(
    turns: tuple[Turn, ...], tally: Tally, metrics: PrometheusMetrics, seconds: float, console: Console
) -> None:
    remembered = tally.turns.get("remembered", 0) + tally.turns.get("consolidated", 0)
    promoted = sum(metrics.value(PROMOTIONS, reason=reason) for reason in ("recurrence", "salience"))
    table = Table(title="What happened", title_justify="left", show_header=False)
    rows: list[tuple[str, float, str]] = [
        ("turns in", len(turns), ""),
        ("gated", tally.turns.get("gated", 0), "filler, kept for replay"),
        ("embedded", metrics.value(TURNS, step="embed", outcome="embedded"), "turns or exchanges"),
        (
            "remembered",
            remembered,
            f"of them {tally.turns.get('consolidated', 0)} support an episode or fact",
        ),
        ("promoted", promoted, "clusters that recur or matter"),
        ("merged", metrics.value(MERGES), "exchanges into known threads"),
        ("episodes", tally.derived.get("episode", 0), "visible"),
        ("facts", tally.derived.get("fact", 0), "current"),
    ]
    for name, count, note in rows:
        table.add_row(name, f"{count:.0f}", f"[dim]{note}[/]")
    table.add_row("time", f"{seconds:.2f} s", f"[dim]{len(turns) / seconds:.0f} turns/s[/]")
    console.print(table)


async def _ask(question: str, running: Running, console: Console) -> bool:
    async with Client(running.url or "") as client:
        answer = await client.answer(question, USER)
    console.print(f"\n[bold]{question}[/]", highlight=False)
    console.print(f"  {answer.answer}", markup=False, highlight=False)
    for said in answer.evidence:
        line = f"    rests on: {said.said_at:%d %B %Y} · {said.speaker}: {said.text}"
        console.print(line, markup=False, highlight=False, style="dim")
    return answer.grounded
