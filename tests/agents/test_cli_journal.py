"""`lamina journal`, `undo` and `verify` on a real SQLite folder that the flow and hand-made edits filled."""

import asyncio
import base64
import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from uuid import UUID, uuid5

import pytest
from typer.testing import CliRunner

from lamina.agents.cli import app
from lamina.sinks.in_memory import FixedClock, HashEmbedder, InMemoryMetrics, InMemoryStore
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.tables import open_tables
from lamina.streams import flow
from lamina.streams.facts import replaces
from lamina.streams.identity import turn_id_from_message
from lamina.streams.journal import Call
from lamina.streams.llm import Completion
from lamina.streams.namespace import namespace_of
from lamina.streams.placement import arrive
from lamina.streams.records import Command, Edit, Link, Turn, Unit
from lamina.streams.settings import Settings
from lamina.streams.steps.ports import Ports

NORA = namespace_of("local", "nora")
START = datetime(2026, 4, 1, 10, 0, tzinfo=UTC)
HOSTILE = "</div><script>steal()</script><img src=x onerror=steal()> \x1b[2Jgone"
SAID = (
    "Where should I order a birthday cake for my sister Mia? Mia is allergic to peanuts.",
    "Ask a bakery that takes birthday cake orders and say the birthday cake is for Mia.",
    "I will order the birthday cake for my sister Mia at SweetLeaf, with her name on the cake.",
    "A birthday cake from SweetLeaf for Mia: order the birthday cake with her name on it.",
    f"My birthday cake note for Mia: {HOSTILE}",
    "The birthday cake for Mia is noted.",
)


@dataclass
class Memory:
    """A data folder and what is in it."""

    data: Path
    turns: list[UUID]
    commands: dict[str, UUID] = field(default_factory=dict)
    units: dict[str, Unit] = field(default_factory=dict)


def placements():
    for number, text in enumerate(SAID):
        turn = Turn(
            role="assistant" if number % 2 else "user",
            content=text,
            message_id=str(number),
            timestamp=START + timedelta(minutes=number),
            run_id="cake",
        )
        key = turn_id_from_message(NORA, turn.message_id)
        yield arrive(NORA, turn, fallback_id=key, received_at=turn.timestamp)


async def make(data: Path) -> Memory:
    """A conversation through the whole flow, then four topology commands by hand."""
    arrived = list(placements())
    tables = await open_tables(f"sqlite+aiosqlite:///{data / 'lamina.db'}")
    try:
        settings = Settings(theta_count=2, theta_sim=0.4, gate_enabled=False, topology=False)
        clock = FixedClock(START)
        outside = (InMemoryStore(), HashEmbedder(), ExtractiveEngine(), clock, InMemoryMetrics())
        await flow.run(arrived, Ports(settings, tables, *outside), replaces)
        memory = Memory(data, [each.id for each in arrived])
        first = (await tables.journal())[-1].command
        memory.commands["promote"] = first.id
        await by_hand(memory, tables)
    finally:
        await tables.close()
    return memory


def a_fact(memory: Memory, name: str, text: str, **fields) -> Unit:
    place = 4 if name == "old" else 0
    common = {"namespace": NORA, "kind": "fact", "session": "cake", "said_at": START, "recorded_at": START}
    evidence = {"evidence": (memory.turns[place],), "subject": "Mia", "relation": "likes", "engine": "test"}
    unit = Unit(id=uuid5(NORA_SPACE, name), text=text, **common | evidence | fields)
    memory.units[name] = unit
    return unit


NORA_SPACE = UUID(int=7)


async def by_hand(memory: Memory, tables) -> None:
    """A merge of two facts, an update that rests on it, an edit that was skipped, a command that waits."""
    one, two = a_fact(memory, "one", "Mia likes cake."), a_fact(memory, "two", "Mia is fond of cake.")
    old = a_fact(memory, "old", f"Mia likes jeans. {HOSTILE}")
    async with tables.transaction([NORA]) as tx:
        await tx.insert_units([one, two, old])
        await tx.insert_links(
            [link(unit.id, turn, "evidence") for unit in (one, two, old) for turn in unit.evidence]
        )
    both = a_fact(memory, "both", "Mia likes cake a lot.", version=2)
    merge = Edit(
        operator="merge",
        targets=(one.id, two.id),
        outcome="executed",
        reason=f"both say what Mia likes {HOSTILE}",
        confidence=0.95,
        created=(both.id,),
        before=(one, two),
        added=tuple(link(both.id, each.id, "version") for each in (one, two)),
    )
    skipped = Edit(operator="split", targets=(old.id,), outcome="skipped", reason="stale", confidence=0.91)
    gone = [each.model_copy(update={"visible": False}) for each in (one, two)]
    await carried_out(memory, tables, "merge", [merge, skipped], inserted=[both], updated=gone, paid=True)
    update = Edit(
        operator="update",
        targets=(both.id, old.id),
        outcome="executed",
        reason="newer",
        confidence=0.92,
        before=(both, old),
        added=(link(both.id, old.id, "version"),),
    )
    fresh = both.model_copy(update={"text": "Mia likes cake a lot, not jeans.", "version": 3})
    gone = [old.model_copy(update={"visible": False}), fresh]
    await carried_out(memory, tables, "update", [update], updated=gone)
    waiting = await planned(memory, tables, "waiting")
    claim = await tables.claim("test", START, 60)
    assert claim.command == waiting
    await tables.put_off(claim, START + timedelta(hours=1), "the tenant's budget is spent", START)


def link(source: UUID, target: UUID, kind: str) -> Link:
    return Link(namespace=NORA, source=source, target=target, type=kind)


async def planned(memory: Memory, tables, name: str) -> Command:
    number = len(memory.commands)
    command = Command(
        id=uuid5(NORA_SPACE, f"command {name}"),
        namespace=NORA,
        kind="topology",
        reason="sessions",
        position=100 + number,
        issued_at=START + timedelta(minutes=10 + number),
    )
    memory.commands[name] = command.id
    async with tables.transaction([NORA]) as tx:
        await tx.issue_commands([command])
    await tables.admit_commands([command])
    return command


async def carried_out(memory, tables, name, edits, *, inserted=(), updated=(), paid=False) -> None:
    command = await planned(memory, tables, name)
    claim = await tables.claim("test", START, 60)
    assert claim.command == command
    if paid:
        call = Call(command.id, NORA, "diagnose", 0, 3, "small-model", 900)
        await tables.begin_call(call, None, START)
        await tables.end_call(call, Completion('{"merges": []}', "small-model", 700, 42, 2, 1.5), START)
    async with tables.transaction([NORA]) as tx:
        await tx.insert_units(inserted)
        await tx.update_units(updated)
        await tx.insert_links([each for edit in edits for each in edit.added])
        assert await tx.finish_command(claim, "applied", None, edits=edits, note=None)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Memory:
    return asyncio.run(make(tmp_path_factory.mktemp("made")))


@pytest.fixture
def memory(made, tmp_path) -> Memory:
    """A copy of the folder, for a test of its own."""
    shutil.copytree(made.data, tmp_path / "data")
    return Memory(tmp_path / "data", made.turns, made.commands, made.units)


@dataclass
class Outcome:
    code: int
    output: str

    @property
    def lines(self) -> list[str]:
        return self.output.splitlines()


@pytest.fixture
def lamina(monkeypatch, memory):
    for name in [name for name in os.environ if name.startswith("LAMINA_")]:
        monkeypatch.delenv(name)

    def run(*words: object, answer: str | None = None) -> Outcome:
        arguments = [*map(str, words), "--data-dir", str(memory.data)]
        result = CliRunner().invoke(app, arguments, input=answer)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Outcome(result.exit_code, result.output)

    return run


def units_of(memory: Memory) -> dict[UUID, Unit]:
    async def read():
        tables = await open_tables(f"sqlite+aiosqlite:///{memory.data / 'lamina.db'}")
        try:
            return await tables.find([unit.id for unit in memory.units.values()])
        finally:
            await tables.close()

    return asyncio.run(read())


def visible(memory: Memory) -> set[str]:
    rows = units_of(memory)
    return {name for name, unit in memory.units.items() if rows[unit.id].visible}


# journal


def test_the_journal_says_newest_first_what_was_done(lamina, memory):
    listed = lamina("journal")
    assert listed.code == 0, listed.output
    ids = [line.split()[0] for line in listed.lines if not line.startswith(" ")]
    newest = [str(memory.commands[name]) for name in ("waiting", "update", "merge")]
    assert ids[:3] == newest
    assert ids[-1] == str(memory.commands["promote"])
    assert "waiting until 2026-04-01T11:00:00Z: the tenant's budget is spent" in listed.output
    assert "merged 2 → 1 at 0.95; 1 skipped" in listed.output
    assert "1 call, 742 tokens" in listed.output
    assert "updated 1, archived 1 at 0.92" in listed.output
    assert re.search(r"episode v1, \d facts from \d exchanges", listed.output)


def test_the_journal_is_narrowed_by_user_state_and_number(lamina, memory):
    assert lamina("journal", "--limit", 1).lines[0].startswith(str(memory.commands["waiting"]))
    assert lamina("journal", "--state", "waiting").output.count("local/nora") == 1
    assert lamina("journal", "--user", "nora").output == lamina("journal").output
    assert lamina("journal", "--user", "nor").output == "no commands\n", "a user's name is no prefix"
    assert lamina("journal", "--tenant", "other").output == "no commands\n"


def test_a_command_is_explained_with_sources_results_calls_and_what_depends_on_it(lamina, memory):
    told = lamina("journal", memory.commands["merge"], "--replies")
    assert told.code == 0, told.output
    for part in (
        "diagnose 0  prompt v3  small-model  700 + 42 tokens  1.5 s  2 attempts",
        '{"merges": []}',
        "edit 0: merge, executed, confidence 0.95",
        "Mia likes cake.",
        "Mia is fond of cake.",
        "edit 1: split, skipped, confidence 0.91",
        "birthday cake for my sister Mia?",
        "applied",
    ):
        assert part in told.output
    depends = told.lines[told.lines.index("later edits that depend on it") + 1]
    assert str(memory.commands["update"]) in depends
    assert '{"merges": []}' not in lamina("journal", memory.commands["merge"]).output


def test_what_would_steer_a_terminal_is_spelled_out(lamina, memory):
    told = lamina("journal", memory.commands["merge"])
    assert "\x1b" not in told.output
    assert "\\x1b[2Jgone" in told.output


def test_the_journal_is_json_on_request(lamina, memory):
    listed = json.loads(lamina("journal", "--json").output)
    assert listed[2]["command"]["id"] == str(memory.commands["merge"])
    told = json.loads(lamina("journal", memory.commands["merge"], "--json").output)
    assert told["edits"][0]["confidence"] == 0.95
    assert told["calls"][0]["reply"]["tokens_in"] == 700
    assert told["dependents"] == [f"{memory.commands['update']}:0"]


def test_costs_are_summed_by_tenant_and_purpose(lamina):
    (cost,) = json.loads(lamina("journal", "--costs", "--json").output)
    assert cost == {
        "tenant": "local",
        "purpose": "diagnose",
        "model": "small-model",
        "calls": 1,
        "attempts": 2,
        "tokens_in": 700,
        "tokens_out": 42,
        "seconds": 1.5,
    }
    assert "742" not in lamina("journal", "--costs", "--tenant", "other").output
    assert "diagnose" in lamina("journal", "--costs").output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("journal", "nonsense"), "'nonsense' is not a command's id"),
        (("journal", UUID(int=5)), f"no command {UUID(int=5)} is in the journal"),
        (("journal", "--html"), "--sample N"),
        (("journal", UUID(int=5), "--sample", 3), "--html"),
        (("undo", f"{UUID(int=5)}:x"), "'x' is not the number of an edit"),
        (("undo", UUID(int=5)), f"no command {UUID(int=5)} is in the journal"),
        (("journal", "--sample", 1, "--html", "/nowhere/x.html"), "/nowhere/x.html cannot be written"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(lamina, words, sentence):
    done = lamina(*words)
    assert (done.code, len(done.lines)) == (1, 1), done.output
    assert sentence in done.output


def test_a_folder_without_a_memory_stays_as_it_is(lamina, memory, tmp_path):
    result = CliRunner().invoke(app, ["journal", "--data-dir", str(tmp_path / "none")])
    assert result.exit_code == 1
    assert "holds no memory yet" in result.output
    assert not (tmp_path / "none").exists()


def test_the_database_that_the_settings_name_is_read(lamina, memory, monkeypatch, tmp_path):
    monkeypatch.setenv("LAMINA_DATABASE", f"sqlite+aiosqlite:///{memory.data / 'lamina.db'}")
    listed = CliRunner().invoke(app, ["journal", "--limit", "1", "--data-dir", str(tmp_path / "none")])
    assert listed.exit_code == 0, listed.output
    assert str(memory.commands["waiting"]) in listed.output


# sample


class Page(HTMLParser):
    """What a browser would run, load and show."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        (self.scripts if self.lasttag == "script" and self.cdata_elem else self.text).append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def test_the_sample_is_one_page_that_shows_each_edit_to_be_judged(lamina, memory, tmp_path):
    file = tmp_path / "audit.html"
    done = lamina("journal", "--sample", 10, "--html", file)
    assert done.code == 0, done.output
    page = Page(file.read_text())
    cards = page.named("article")
    assert [card["data-operator"] for card in cards] == ["merge", "update"], "executed ones, by operator"
    assert cards[0]["data-edit"] == f"{memory.commands['merge']}:0"
    verdicts = [box["value"] for box in page.named("input") if box["type"] == "radio"]
    assert verdicts == ["valid", "invalid", "harmful"] * 2
    shown = " ".join(" ".join(page.text).split())
    for part in ("Mia likes cake.", "Mia is fond of cake.", "confidence 0.95", SAID[0]):
        assert part in shown
    assert page.text.count("Mia likes cake a lot.") == 2, "as the merge left it, not as it is now"
    assert page.text.count("Mia likes cake a lot, not jeans.") == 1
    assert lamina("journal", "--sample", 10, "--html").output.strip() == file.read_text().strip()


def test_hostile_memory_is_text_on_the_page_and_nothing_is_loaded(lamina, tmp_path):
    file = tmp_path / "audit.html"
    lamina("journal", "--sample", 10, "--html", file)
    page = Page(file.read_text())
    assert "<script>steal()</script><img src=x onerror=steal()>" in " ".join(page.text)
    assert not page.named("img")
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert not [attributes for _, attributes in page.tags if attributes.keys() & {"src", "href"}]
    (script,) = page.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [each["content"] for each in page.named("meta") if "http-equiv" in each]
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_the_sample_is_even_over_operators_and_the_same_for_a_seed(lamina, memory):
    drawn = json.loads(lamina("journal", "--sample", 2, "--json").output)
    assert [each["operator"] for each in drawn] == ["merge", "update"]
    assert json.loads(lamina("journal", "--sample", 2, "--json").output) == drawn
    assert len(json.loads(lamina("journal", "--sample", 1, "--json").output)) == 1


# undo


def test_undo_is_refused_while_something_rests_on_the_edit_and_says_what(lamina, memory):
    done = lamina("undo", memory.commands["merge"], "--yes")
    assert done.code == 1
    assert str(memory.commands["update"]) in done.output
    assert "--cascade" in done.output
    assert visible(memory) == {"both"}


def test_undo_with_cascade_restores_what_was_archived(lamina, memory):
    done = lamina("undo", memory.commands["merge"], "--cascade", "--yes")
    assert done.code == 0, done.output
    assert visible(memory) == {"one", "two", "old"}
    rows = units_of(memory)
    assert rows[memory.units["one"].id].text == "Mia likes cake."
    assert rows[memory.units["one"].id].version > 1
    assert lamina("verify").code == 0
    again = lamina("undo", memory.commands["merge"], "--cascade", "--yes")
    assert again.code == 0
    assert "undone already" in again.output
    assert "[undone]" in lamina("journal").output
    assert lamina("journal").output.count("reversed ") >= 1


def test_one_edit_of_a_command_is_undone_by_its_number(lamina, memory):
    done = lamina("undo", f"{memory.commands['update']}:0", "--yes")
    assert done.code == 0, done.output
    assert visible(memory) == {"both", "old"}
    assert units_of(memory)[memory.units["both"].id].text == "Mia likes cake a lot."


def test_undo_shows_what_it_would_do_and_asks(lamina, memory):
    asked = lamina("undo", memory.commands["update"], answer="n\n")
    assert asked.code == 1
    assert "Mia likes jeans." in asked.output
    assert visible(memory) == {"both"}
    assert lamina("undo", memory.commands["update"], answer="y\n").code == 0
    assert visible(memory) == {"both", "old"}


def test_a_promotion_cannot_be_undone_and_says_what_can_be_done(lamina, memory):
    done = lamina("undo", memory.commands["promote"], "--yes")
    assert done.code == 1
    assert "forget" in done.output


# verify


def test_verify_shows_how_far_archived_units_are(lamina):
    done = lamina("verify")
    assert done.code == 0, done.output
    assert "local/nora" in done.output
    assert "Cov(1) 100.0 %" in done.output
    assert "Cov(4) 100.0 %" in done.output
    assert lamina("verify", "--user", "nobody").output == "nothing in memory\n"


def test_verify_names_what_cannot_be_reached(lamina, memory):
    lost = a_fact(memory, "lost", "Nobody leads here.", visible=False)

    async def lose():
        tables = await open_tables(f"sqlite+aiosqlite:///{memory.data / 'lamina.db'}")
        try:
            async with tables.transaction([NORA]) as tx:
                await tx.insert_units([lost])
        finally:
            await tables.close()

    asyncio.run(lose())
    done = lamina("verify")
    assert done.code == 1
    assert f"unreachable: {lost.id} (fact)" in done.output
