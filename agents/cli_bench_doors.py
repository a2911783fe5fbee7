"""The doors of the benchmarks of answers: the embedder, and the chat models that read and judge."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from lamina.agents.folders import folders_of
from lamina.agents.outside import open_embedder
from lamina.bench.asking import BenchAsk
from lamina.bench.qa import Judge
from lamina.bench.qa_reader import EXTRACTIVE, by_model
from lamina.bench.qa_ways import Desk, Programs
from lamina.sinks.prometheus import PrometheusMetrics
from lamina.streams.errors import Misconfigured
from lamina.streams.ports import Embedder
from lamina.streams.settings import Settings

NO_JUDGE = "none"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for beside the settings."""

    budget: int
    judge: str
    extractive: bool
    deep: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """What a benchmark of answers is wired to."""

    embedder: Embedder
    desk: Desk
    judge: Judge | None
    models: Sequence[BenchAsk]


@asynccontextmanager
async def opened(settings: Settings, wanted: Wanted) -> AsyncIterator[Opened]:
    """Open the embedder, and what reads and judges, where a chat model is configured.

    Raises:
        Misconfigured: a judge is wanted and no chat model is configured, or a door does not open.
    """
    if wanted.judge not in {"", NO_JUDGE} and not settings.llm_model:
        raise Misconfigured(f"--judge {wanted.judge} needs a chat model's endpoint: set LAMINA_LLM_MODEL too")
    async with AsyncExitStack() as stack:
        embedder = await open_embedder(settings, folders_of(settings).cache, PrometheusMetrics())
        stack.push_async_callback(embedder.close)
        asks: dict[str, BenchAsk] = {}
        judging = "" if wanted.judge == NO_JUDGE else wanted.judge or settings.llm_model
        for name in sorted({judging, settings.llm_model} - {""}):
            asks[name] = await _asking(settings.model_copy(update={"llm_model": name}), stack)
        reading = settings.llm_model
        desk = Desk(
            by_model(asks[reading], reading, settings.llm_calls_at_once)
            if reading and not wanted.extractive
            else EXTRACTIVE,
            wanted.budget,
            await _programs(asks[reading], settings, stack) if wanted.deep else None,
        )
        judge = Judge(judging, asks[judging]) if judging else None
        yield Opened(embedder, desk, judge, tuple(asks.values()))


async def _asking(settings: Settings, stack: AsyncExitStack) -> BenchAsk:
    # The openai package takes 0.7 s to import, which only who configures a model shall wait for.
    from lamina.sinks.llm_openai import open_openai_model  # noqa: PLC0415

    model = open_openai_model(settings, PrometheusMetrics())
    stack.push_async_callback(model.close)
    return BenchAsk(model, settings.llm_calls_at_once)


async def _programs(ask: BenchAsk, settings: Settings, stack: AsyncExitStack) -> Programs:
    from lamina.sinks.sandbox import open_sandbox  # noqa: PLC0415  # as for the model

    sandbox = await open_sandbox(settings)
    stack.push_async_callback(sandbox.close)
    return Programs(ask, sandbox, settings)
