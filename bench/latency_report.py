"""The report of `lamina bench latency`: times by strategy, namespace and stage, with what they mean."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from lamina.bench.latency import Taken

TARGETS = {200: (10.0, 25.0), 20_000: (20.0, 40.0)}
"""The p50 and p99 that are promised with one client, in milliseconds, by units of the namespace."""
SHARE = 0.6
"""The promised rate of ten clients, as a share of the embedder's own at batch 1."""

DEFINITIONS = {
    "p50_ms, p99_ms, mean_ms": "from the request's first byte written to the response's last byte read, the "
    "question's embedding included; every question is asked once and the service keeps no vectors of "
    "questions; ten results a request, namespaces in drawn order",
    "requests_per_second": "all requests of the row by the time from the first one's begin to the last one's "
    "end; of ten clients each sends its next request when its last one was answered",
    "embedder_per_second": "questions a second that the embedder takes at batch 1: the same questions one "
    "after another, one caller, in a process that does nothing else",
    "stages": 'p50 in milliseconds of what the service says of itself (`include: ["timings"]`); `http` is '
    "the rest: client, socket, server, and checking the request's API key and body",
    "/health/live": "a request that touches nothing: what client, socket and server cost by themselves",
    "first questions": "the service starts anew, so the first question to a namespace finds nothing of it at "
    "hand; with fewer requests than namespaces every question is such a one",
    "machine": "client, service and store share it",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of requests in figures; times in milliseconds."""

    strategy: str
    namespace_units: int
    clients: int
    n: int
    p50_ms: float
    p99_ms: float
    mean_ms: float
    requests_per_second: float
    of_embedder: float
    """`requests_per_second` as a share of the embedder's own rate at batch 1."""
    stages: dict[str, float]

    def json(self) -> dict[str, Any]:
        """Return the row with its figures rounded."""
        return {
            key: round(value, 3) if isinstance(value, float) else value for key, value in asdict(self).items()
        }


@dataclass(frozen=True, slots=True)
class Report:
    """Every row, and what it was measured with."""

    taken: tuple[Taken, ...]
    units: int
    embedder: str
    embedder_per_second: float
    store: str
    machine: str

    def rows(self) -> list[Row]:
        """Return the rows in figures, in the order in which they were measured."""
        return [row_of(taken, self.embedder_per_second) for taken in self.taken]

    def json(self) -> dict[str, Any]:
        """Return everything under the names of `DEFINITIONS`."""
        return {
            "benchmark": "latency",
            "units": self.units,
            "embedder": self.embedder,
            "embedder_per_second": round(self.embedder_per_second, 1),
            "store": self.store,
            "machine": self.machine,
            "definitions": DEFINITIONS,
            "rows": [row.json() for row in self.rows()],
        }

    def tables(self) -> RenderableType:
        """Return the report for a terminal."""
        title = f"{self.units:,} turns, {self.embedder}, {self.store}, {self.machine}"
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
        stages = _stages(self.rows())
        numbers = ("units", "clients", "n", "p50 ms", "p99 ms", "mean ms", "req/s", "of embedder", *stages)
        for place, heading in enumerate(("strategy", *numbers)):
            table.add_column(heading, justify="right" if place else "left")
        for row in self.rows():
            table.add_row(*_cells(row, stages))
        rate = f"the embedder alone, batch 1: {self.embedder_per_second:.0f} questions/s"
        promised = [
            f"promised with {units:,} units, one client: p50 ≤ {p50:g} ms, p99 ≤ {p99:g} ms"
            for units, (p50, p99) in TARGETS.items()
        ]
        promised.append(f"promised with ten clients: ≥ {SHARE:g} of the embedder alone")
        return Group(table, rate, *promised, *(f"{name}: {says}" for name, says in DEFINITIONS.items()))


def row_of(taken: Taken, embedder_per_second: float) -> Row:
    """Return the figures of at least one request."""
    times = np.array(taken.seconds) * 1000
    stages = {name: float(np.percentile(each, 50)) for name, each in taken.stages.items()}
    if taken.stages:
        rest = times - np.sum(list(taken.stages.values()), axis=0)
        stages["http"] = float(np.percentile(rest, 50))
    return Row(
        strategy=taken.strategy,
        namespace_units=taken.units,
        clients=taken.clients,
        n=len(times),
        p50_ms=float(np.percentile(times, 50)),
        p99_ms=float(np.percentile(times, 99)),
        mean_ms=float(times.mean()),
        requests_per_second=taken.rate,
        of_embedder=taken.rate / embedder_per_second,
        stages={name: round(value, 3) for name, value in stages.items()},
    )


def _stages(rows: Sequence[Row]) -> list[str]:
    """Return every stage of any row once, the rest last."""
    names = dict.fromkeys(name for row in rows for name in row.stages if name != "http")
    return [*names, "http"]


def _cells(row: Row, stages: Sequence[str]) -> list[str]:
    times = (row.p50_ms, row.p99_ms, row.mean_ms)
    return [
        row.strategy,
        f"{row.namespace_units:,}" if row.namespace_units else "",
        str(row.clients),
        str(row.n),
        *(f"{time:.2f}" for time in times),
        f"{row.requests_per_second:.0f}",
        f"{row.of_embedder:.2f}" if row.stages else "",
        *(f"{row.stages[name]:.2f}" if name in row.stages else "" for name in stages),
    ]
