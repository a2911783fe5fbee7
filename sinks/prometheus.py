"""Metrics port over prometheus_client, built from the catalogue and nothing else."""

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from lamina.streams.metrics import CATALOGUE, Metric


class PrometheusMetrics:
    """Every metric of the catalogue in a registry of its own; safe to use from any thread.

    A metric that is not in the catalogue, another kind of metric than the method measures, or labels other
    than the catalogue's raise ValueError: such a call is a mistake in the code, not a state of the world.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._counters = {
            m: Counter(m.name, m.help, m.labels, registry=self._registry)
            for m in CATALOGUE
            if m.kind == "counter"
        }
        self._gauges = {
            m: Gauge(m.name, m.help, m.labels, registry=self._registry)
            for m in CATALOGUE
            if m.kind == "gauge"
        }
        self._histograms = {
            m: Histogram(m.name, m.help, m.labels, registry=self._registry, buckets=m.buckets)
            for m in CATALOGUE
            if m.kind == "histogram"
        }

    def count(self, metric: Metric, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        counter = self._counters.get(metric)
        if counter is None:
            raise ValueError(f"{metric.name} is no counter of the catalogue")
        (counter.labels(**labels) if labels else counter).inc(amount)

    def observe(self, metric: Metric, value: float, **labels: str) -> None:
        """Add a value to a histogram."""
        histogram = self._histograms.get(metric)
        if histogram is None:
            raise ValueError(f"{metric.name} is no histogram of the catalogue")
        (histogram.labels(**labels) if labels else histogram).observe(value)

    def set(self, metric: Metric, value: float, **labels: str) -> None:
        """Set a gauge."""
        gauge = self._gauges.get(metric)
        if gauge is None:
            raise ValueError(f"{metric.name} is no gauge of the catalogue")
        (gauge.labels(**labels) if labels else gauge).set(value)

    def value(self, metric: Metric, **labels: str) -> float:
        """Return a counter's total or a gauge's value; 0 when it was never touched."""
        return self._registry.get_sample_value(metric.name, labels) or 0.0

    def exposition(self) -> tuple[bytes, str]:
        """Return what `/metrics` answers: the text exposition and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
