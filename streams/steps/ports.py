"""What every step is given."""

from dataclasses import dataclass

from lamina.streams.ports import Clock, Consolidator, Embedder, Metrics, Tables, VectorStore
from lamina.streams.settings import Settings


@dataclass(frozen=True, slots=True)
class Ports:
    """The outside, as the steps see it, and the settings they obey."""

    settings: Settings
    tables: Tables
    store: VectorStore
    embedder: Embedder
    engine: Consolidator
    clock: Clock
    metrics: Metrics
