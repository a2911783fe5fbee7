"""One recall on behalf of a route: the question embedded, the strategy run, its stages timed."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from time import perf_counter

from lamina.query.errors import Refused
from lamina.query.models import Said
from lamina.query.service import Service
from lamina.streams.metrics import RECALL_SECONDS
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Metrics
from lamina.streams.recall.found import Asked, Filters, Found, Sources
from lamina.streams.recall.options import Options, Strategy
from lamina.streams.recall.strategies import recall
from lamina.streams.recall.tiers import Budget
from lamina.streams.records import Unit

MILLISECONDS = 1000.0


async def find(
    question: str,
    namespace: Namespace,
    service: Service,
    watch: "Stopwatch",
    *,
    filters: Filters,
    top_k: int | None = None,
    options: Options | None = None,
) -> list[Found]:
    """Find what a namespace remembers about a question, by the strategy that the watch was made for.

    Args:
        question: in natural language.
        namespace: the only one that is read.
        service: the ports and the budgets of `tiers`.
        watch: times the stages, and reports them when the recall is done.
        filters: what every result satisfies.
        top_k: most results; None: as many as the strategy gives.
        options: of the strategies; None: their defaults.

    Raises:
        StoreUnavailable, TablesUnavailable, EmbedderUnavailable: a dependency does not answer.
    """
    settings = service.settings
    with watch.stage("embed"):
        vectors = await service.embedder.embed_question(question)
    found = await recall(
        watch.strategy,
        Asked(question, vectors.dense, namespace, service.clock.now(), filters, top_k, vectors.tokens),
        Sources(service.store, service.tables, service.embedder, watch.stage),
        budget=Budget(settings.k_sub, settings.k_epi, settings.k_sem),
        options=options or Options(),
    )
    watch.report()
    return found


class Stopwatch:
    """Times the stages of one recall, for the metrics and for a caller who asked."""

    def __init__(self, strategy: Strategy, metrics: Metrics) -> None:
        self.strategy = strategy
        self._metrics = metrics
        self._seconds: dict[str, float] = {}

    @property
    def timings(self) -> dict[str, float]:
        """Milliseconds by stage."""
        return {name: round(seconds * MILLISECONDS, 3) for name, seconds in self._seconds.items()}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage; one that is entered again adds up."""
        begun = perf_counter()
        yield
        self._seconds[name] = self._seconds.get(name, 0.0) + perf_counter() - begun

    def report(self) -> None:
        """Observe each stage once, however often the strategy came back to it."""
        for name, seconds in self._seconds.items():
            self._metrics.observe(RECALL_SECONDS, seconds, strategy=self.strategy, stage=name)


def check_top_k(top_k: int, service: Service) -> None:
    """Refuse more results than the settings allow.

    Raises:
        Refused: 422.
    """
    most = service.settings.top_k_max
    if top_k > most:
        raise Refused(422, "invalid_request", f"top_k: allowed are 1 to {most}, not {top_k}", field="top_k")


def utc(moment: datetime | None) -> datetime | None:
    """Return a moment in UTC; one without a zone is read as UTC."""
    if moment is None:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def said(turn: Unit) -> Said:
    """Return a turn as a response shows it as evidence."""
    return Said(id=turn.id, speaker=turn.speaker, text=turn.text, said_at=turn.said_at)
