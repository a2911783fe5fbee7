"""A language model that fails in every way: one effect, each reply paid once, nothing lost, others go on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from lamina.query.client import Client
from lamina.sinks.llm_openai import open_openai_model
from lamina.sinks.llm_prompted import PromptedEngine
from lamina.sinks.replies import asking
from lamina.streams.facts import replaces
from lamina.streams.metrics import COMMANDS_PUT_OFF, LLM_REPEATED, LLM_REUSED
from lamina.streams.records import Turn, Unit
from lamina.streams.steps.carry_out import carry_out
from lamina.streams.steps.index import sweep
from lamina.streams.steps.ports import Ports
from tests.openai_filler import HOSTILE, INVENTED
from tests.openai_server import KEY, MODEL, OpenAIServer
from tests.streams.consolidation_kit import (
    ADA,
    BEES,
    BEN,
    HONEY,
    NOW,
    Crash,
    CrashingTables,
    claimed,
    opened,
    recurrence,
    run,
    said,
    states,
    visible,
    with_tables,
)

from .dump import dump
from .test_restart import lamina_up, send, wait_for

TALK = [BEES, HONEY] * 2
UNREADABLE = ["invalid", "misfit", "truncated", "empty", "refused", "hostile_prose"]
UNGROUNDED = ["ungrounded", "hostile_fields"]
AWAY = ["busy", "broken", "stalled", "reset"]


@asynccontextmanager
async def prompted(folder: Path, server: OpenAIServer, **chosen) -> AsyncIterator[Any]:
    """Ports whose engine asks the server, over a real SQLite file."""
    told = server.settings(**chosen).model_dump(include={"llm_model", "llm_base_url", "llm_api_key", *chosen})
    async with opened(folder, None, **told) as ports:
        model = open_openai_model(ports.settings, ports.metrics)
        asks = asking(model, ports.tables, ports.clock, ports.metrics, ports.settings)
        try:
            yield replace(ports, engine=PromptedEngine(asks, model.name))
        finally:
            await model.close()


async def entry_of(ports: Ports):
    """Return the oldest command of ADA with its history and replies."""
    entry = (await ports.tables.journal(ADA))[-1]
    return await ports.tables.journal_entry(entry.command.id)


def dumped(unit: Unit) -> list[str]:
    """Return every string of a unit."""
    found = [unit.text, unit.subject, unit.relation, unit.object, unit.topic, *unit.keywords, *unit.entities]
    return [each for each in found if each]


@pytest.mark.parametrize("mode", [*UNREADABLE, *UNGROUNDED, *AWAY])
async def test_in_every_bad_mode_nothing_is_lost_others_go_on_and_the_journal_says_why(
    tmp_path: Path, openai_server: OpenAIServer, mode
) -> None:
    patience = 0.3 if mode == "stalled" else 30.0
    async with prompted(tmp_path, openai_server, llm_timeout_seconds=patience) as ports:
        openai_server.mode = mode
        await run(ports, *TALK)
        entry = await entry_of(ports)
        assert entry.state in ({"no_op", "applied"} if mode in UNGROUNDED else {"waiting"})
        assert entry.note
        assert [each.state for each in entry.history][-1] == entry.state
        openai_server.mode = "sensible"
        await run(ports, *TALK, namespace=BEN)
        assert len(await visible(ports, "episode", BEN)) == 1
        for _ in range(4):
            ports.clock.advance(timedelta(minutes=10))
            await claimed(ports)
        entry = await entry_of(ports)
        assert entry.state in {"applied", "no_op"}
        assert [unit.text for unit in await visible(ports, "turn")] == TALK
        graph = await ports.tables.graph(ADA)
        assert all(graph.visible.values())
        if mode not in UNGROUNDED:
            assert len(await visible(ports, "episode")) == 1
        else:
            derived = [*await visible(ports, "episode"), *await visible(ports, "fact")]
            assert not [unit for unit in derived if {HOSTILE.string, INVENTED.string} & set(dumped(unit))]


@pytest.mark.parametrize("mode", UNREADABLE)
async def test_a_model_that_never_answers_readably_is_given_up_and_its_exchanges_count_again(
    tmp_path: Path, openai_server: OpenAIServer, mode
) -> None:
    async with prompted(tmp_path, openai_server, llm_command_attempts=2) as ports:
        openai_server.mode = mode
        await run(ports, *TALK)
        ports.clock.advance(timedelta(minutes=10))
        assert [each.state for each in await claimed(ports)] == ["skipped"]
        entry = await entry_of(ports)
        assert (entry.state, len(entry.replies)) == ("skipped", 2)
        # Each of the two attempts asked anew, and had its one repair.
        assert len(openai_server.billed("consolidate")) == 4
        assert [each.state for each in (await recurrence(ports)).exchanges] == ["unconsolidated"] * 2
        openai_server.mode = "sensible"
        await run(ports, BEES, HONEY, start=4)
        (episode,) = await visible(ports, "episode")
        assert set(episode.evidence) == {each.id for each in said(*TALK, BEES, HONEY)}


async def test_a_crash_between_any_two_writes_pays_once(tmp_path: Path, openai_server: OpenAIServer) -> None:
    for at in range(1, 30):
        server = openai_server
        server.requests.clear()
        folder = tmp_path / str(at)
        folder.mkdir()
        async with prompted(folder, server) as ports:
            server.mode = "broken"
            await run(ports, *TALK)
            server.mode = "sensible"
            ports.clock.advance(timedelta(minutes=10))
            claim = await ports.tables.claim("first", ports.clock.now(), 60)
            assert claim is not None
            try:
                await carry_out(claim, with_tables(ports, CrashingTables(ports.tables, at)), replaces)
            except Crash:
                ports.clock.advance(timedelta(seconds=61))
                await claimed(ports)
                await sweep(ports)
                crashed = True
            else:
                crashed = False
            assert len(server.billed("consolidate")) == 1
            assert await states(ports) == {"applied": 1}
            assert len(await visible(ports, "episode")) == 1
            assert (await ports.tables.tally()).index_waiting == 0
            if not crashed:
                assert at > 5
                return
    pytest.fail("it never got through")


async def test_a_call_in_flight_at_the_crash_may_repeat_once_and_is_counted(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    async with prompted(tmp_path, openai_server) as ports:
        openai_server.once("stalled")
        working = asyncio.create_task(run(ports, *TALK))
        while not openai_server.requests:
            await asyncio.sleep(0.01)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        assert await visible(ports, "episode") == []
        ports.clock.advance(timedelta(seconds=61))
        assert [each.state for each in await claimed(ports)] == ["applied"]
        assert len(openai_server.billed()) == 2
        assert ports.metrics.value(LLM_REPEATED, purpose="consolidate") == 1
        assert ports.metrics.value(LLM_REUSED, purpose="consolidate") == 0
        assert len(await visible(ports, "episode")) == 1


async def test_a_server_that_names_a_delay_gets_it(tmp_path: Path, openai_server: OpenAIServer) -> None:
    async with prompted(tmp_path, openai_server) as ports:
        openai_server.once("busy")
        await run(ports, *TALK)
        assert (await entry_of(ports)).not_before == NOW + timedelta(seconds=7)
        ports.clock.advance(timedelta(seconds=7))
        assert [each.state for each in await claimed(ports)] == ["applied"]
        assert len(openai_server.billed()) == 1


async def test_a_spent_budget_waits_for_the_next_window_and_holds_back_its_tenant_only(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    chosen = {"llm_budget_tokens": 100, "llm_budget_window_seconds": 3600.0}
    async with prompted(tmp_path, openai_server, **chosen) as ports:
        await run(ports, *TALK)  # the first call of a window passes, whatever it costs
        await run(ports, *TALK, namespace=BEN)
        other = type(ADA)("other/ada")
        await run(ports, *TALK, namespace=other)
        assert await states(ports) == {"applied": 2, "waiting": 1}
        assert ports.metrics.value(COMMANDS_PUT_OFF, kind="promote", reason="budget_spent") == 1
        assert len(openai_server.billed()) == 2
        ports.clock.advance(timedelta(hours=1))
        assert [each.state for each in await claimed(ports)] == ["applied"]
        assert len(openai_server.billed()) == 3


@pytest.mark.broker
async def test_a_process_killed_during_a_call_makes_it_once_more_and_has_one_effect(
    tmp_path: Path, weights_cache: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {
        "LLM_MODEL": MODEL,
        "LLM_BASE_URL": openai_server.url,
        "LLM_API_KEY": KEY,
        "THETA_COUNT": "2",
        "GATE_ENABLED": "false",
        "TOPOLOGY": "false",
        "CACHE_DIR": str(weights_cache),
    }
    for name, value in told.items():
        monkeypatch.setenv(f"LAMINA_{name}", value)
    turns = tuple(
        Turn(role=role, content=text, message_id=str(n), run_id="one", timestamp=NOW + timedelta(minutes=n))
        for n, (role, text) in enumerate(zip(["user", "assistant"] * 2, TALK, strict=True))
    )
    openai_server.mode = "stalled"
    async with lamina_up(tmp_path) as (process, url), Client(url) as client:
        events = await send(client, turns)
        async with asyncio.timeout(60):
            while not openai_server.requests:
                await asyncio.sleep(0.05)
        process.kill()
        await process.wait()
    openai_server.mode = "sensible"
    async with lamina_up(tmp_path) as (_, url), Client(url) as client:
        await wait_for(client, events)
        async with asyncio.timeout(60), httpx.AsyncClient() as http:
            while True:
                said_by = (await http.get(f"{url}/metrics")).text
                if 'lamina_commands_finished_total{kind="promote",state="applied"} 1.0' in said_by:
                    break
                await asyncio.sleep(0.1)
    assert 'lamina_llm_repeated_total{purpose="consolidate"} 1.0' in said_by
    assert len(openai_server.asked("consolidate")) == 2
    kinds = [row[1] for row in dump(tmp_path / "lamina.db")["units"]]
    assert (kinds.count("turn"), kinds.count("episode")) == (4, 1)
