"""The generated pages of `docs/` say what the code says."""

from pathlib import Path

import pytest

from lamina.agents.reference import pages, write
from lamina.sinks.dead_letters import DeadLetters, Source
from lamina.sinks.environment import PREFIX
from lamina.sinks.in_memory import InMemoryMetrics, InMemoryPublisher
from lamina.streams.metrics import CATALOGUE
from lamina.streams.settings import Settings
from lamina.streams.topics import TOPICS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_generated_page_is_up_to_date(name):
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name], "run `make reference`"


def test_writing_the_pages_writes_just_these(tmp_path):
    write(tmp_path)
    assert {file.name: file.read_text(encoding="utf-8") for file in tmp_path.iterdir()} == pages()


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_is_described(name):
    assert Settings.model_fields[name].description
    assert f"| `{PREFIX}{name.upper()}` |" in pages()["settings.md"]


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_every_topic_is_described_with_every_field_of_its_record(topic):
    page = pages()["topics.md"]
    assert f"| `{topic.name}` |" in page
    assert topic.written_by
    assert topic.read_by
    if topic.record is None:
        return
    _, _, section = page.partition(f"\n## {topic.record.__name__}\n")
    for field in topic.record.model_fields:
        assert f"| `{field}` |" in section.partition("\n## ")[0]


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda metric: metric.name)
def test_every_metric_is_described(metric):
    assert metric.help.endswith(".")
    assert f"| `{metric.name}` | {metric.kind} |" in pages()["metrics.md"]


def test_no_cell_breaks_its_table():
    for page in pages().values():
        rows = [line for line in page.splitlines() if line.startswith("|")]
        assert all(line.endswith(" |") for line in rows)
        assert not any(line.strip() and line.startswith((" ", "\t")) for line in page.splitlines())


async def test_every_header_of_a_dead_letter_is_described():
    publisher = InMemoryPublisher()
    source = Source("lamina.turns", 0, 7, b"acme/ann", None, [("traceparent", b"00")])
    await DeadLetters(publisher, InMemoryMetrics()).bury(source, step="gate", reason="malformed", detail="x")
    page = pages()["topics.md"]
    for name in publisher.records[0].headers:
        known = "source-header-" if name.startswith("source-header-") else name
        assert f"`{known}`" in page
