"""Both Metrics ports take exactly what the catalogue states."""

import pytest

from lamina.sinks.in_memory import InMemoryMetrics
from lamina.sinks.prometheus import PrometheusMetrics
from lamina.streams.metrics import CATALOGUE, LAG, MERGES, STEP_SECONDS, TURNS, Metric


@pytest.fixture(params=[InMemoryMetrics, PrometheusMetrics])
def metrics(request):
    return request.param()


def record(metrics, metric, **labels):
    {"counter": metrics.count, "histogram": metrics.observe, "gauge": metrics.set}[metric.kind](
        metric, 1.0, **labels
    )


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda m: m.name)
def test_every_metric_takes_its_own_labels_and_no_others(metrics, metric):
    labels = dict.fromkeys(metric.labels, "x")
    record(metrics, metric, **labels)

    with pytest.raises(ValueError):
        record(metrics, metric, **labels, user="ana")
    if labels:
        with pytest.raises(ValueError):
            record(metrics, metric)
        with pytest.raises(ValueError):
            record(metrics, metric, **{f"{name}x": "x" for name in labels})


def test_a_metric_outside_the_catalogue_is_refused(metrics):
    with pytest.raises(ValueError, match="lamina_other_total"):
        metrics.count(Metric("lamina_other_total", "counter", "Not in the catalogue."))


def test_a_metric_is_measured_by_its_own_kind_only(metrics):
    with pytest.raises(ValueError, match="is no gauge"):
        metrics.set(MERGES, 1)
    with pytest.raises(ValueError, match="is no counter"):
        metrics.count(LAG, 1, step="gate")
    with pytest.raises(ValueError, match="is no histogram"):
        metrics.observe(LAG, 1, step="gate")


def test_a_counter_never_shrinks(metrics):
    with pytest.raises(ValueError):
        metrics.count(MERGES, -1)


def test_the_exposition_holds_every_metric_under_its_own_name():
    metrics = PrometheusMetrics()
    for metric in CATALOGUE:
        record(metrics, metric, **dict.fromkeys(metric.labels, "x"))

    body, content_type = metrics.exposition()

    assert content_type.startswith("text/plain")
    lines = body.decode().splitlines()
    for metric in CATALOGUE:
        sample = f"{metric.name}_count" if metric.kind == "histogram" else metric.name
        assert any(line.startswith((f"{sample} ", f"{sample}{{")) for line in lines), metric.name


def test_values_and_buckets_are_exposed():
    metrics = PrometheusMetrics()
    metrics.count(TURNS, 2, step="gate", outcome="admitted")
    metrics.count(TURNS, step="gate", outcome="admitted")
    metrics.set(LAG, 5, step="gate")
    metrics.observe(STEP_SECONDS, 0.002, step="gate")

    body = metrics.exposition()[0].decode()

    assert 'lamina_turns_total{outcome="admitted",step="gate"} 3.0' in body
    assert 'lamina_lag_records{step="gate"} 5.0' in body
    assert 'lamina_step_seconds_bucket{le="0.001",step="gate"} 0.0' in body
    assert 'lamina_step_seconds_bucket{le="0.0025",step="gate"} 1.0' in body


def test_two_processes_worth_of_metrics_live_in_one_interpreter():
    PrometheusMetrics().count(MERGES)

    assert b"lamina_merges_total 0.0" in PrometheusMetrics().exposition()[0]


def test_in_memory_values_can_be_read():
    metrics = InMemoryMetrics()
    metrics.count(TURNS, 2, step="gate", outcome="admitted")
    metrics.set(LAG, 5, step="gate")
    metrics.observe(STEP_SECONDS, 0.5, step="gate")
    metrics.observe(STEP_SECONDS, 0.25, step="gate")

    assert metrics.value(TURNS, step="gate", outcome="admitted") == 2
    assert metrics.value(TURNS, step="gate", outcome="gated") == 0
    assert metrics.value(LAG, step="gate") == 5
    assert metrics.observations(STEP_SECONDS, step="gate") == [0.5, 0.25]
