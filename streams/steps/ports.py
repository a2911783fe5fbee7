"""What every step is given."""

from dataclasses import dataclass

from lamina.streams.engine import Engine
from lamina.streams.ports import Clock, Embedder, Metrics, Tables, VectorStore
from lamina.streams.settings import Settings


@dataclass(frozen=True, slots=True)
class Ports:
    """The outside, as the steps see it, and the settings they obey."""

    settings: Settings
    tables: Tables
    store: VectorStore
    embedder: Embedder
    engine: Engine
    clock: Clock
    metrics: Metrics
