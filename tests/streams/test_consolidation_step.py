"""Consolidation over real tables: threads of none, one or several episodes, faults, and crashes."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.qdrant_edge import open_edge
from lamina.streams.errors import BudgetSpent, ModelUnavailable, UnusableReply
from lamina.streams.facts import replaces
from lamina.streams.metrics import COMMANDS_FINISHED, COMMANDS_PUT_OFF
from lamina.streams.ports import Query
from lamina.streams.records import Plan, Resolution, Status
from lamina.streams.recoverability import recoverability
from lamina.streams.steps.carry_out import carry_out
from lamina.streams.steps.undo import Undone, undo

from .consolidation_kit import (
    ADA,
    BEES,
    BEN,
    DENIM,
    HONEY,
    JEANS,
    NOW,
    Crash,
    CrashingTables,
    ScriptedEngine,
    claimed,
    episode,
    nothing,
    one_episode,
    opened,
    recurrence,
    run,
    said,
    states,
    visible,
    with_tables,
)


async def test_one_episode_heads_its_thread_and_the_next_merge_is_its_next_version(tmp_path) -> None:
    async with opened(tmp_path, ScriptedEngine(one_episode)) as ports:
        await run(ports, *[BEES, HONEY] * 4)
        (current,) = await visible(ports, "episode")
        assert (current.version, current.engine, len(current.evidence)) == (2, "scripted", 8)
        (thread,) = (await recurrence(ports)).threads
        assert thread.heads == (current.id,)
        graph = await ports.tables.graph(ADA)
        assert [shown for key, shown in graph.visible.items() if graph.kinds[key] == "episode"] == [
            False,
            True,
        ]
        assert ports.metrics.value(COMMANDS_FINISHED, kind="merge", state="applied") == 1


async def test_a_thread_without_an_episode_is_closed_and_the_next_similar_exchange_promotes_all(
    tmp_path,
) -> None:
    engine = ScriptedEngine(nothing, one_episode)
    async with opened(tmp_path, engine, theta_count=3) as ports:
        await run(ports, *[BEES, HONEY] * 2)
        first = {each.id: each.vector for each in (await recurrence(ports)).exchanges}
        await run(ports, BEES, HONEY, start=4)
        rows = await recurrence(ports)
        assert (await states(ports), rows.threads) == ({"no_op": 1}, ())
        assert [(each.state, each.thread, each.command) for each in rows.exchanges] == [
            ("unconsolidated", None, None)
        ] * 3
        for each in rows.exchanges[:2]:
            assert np.array_equal(each.vector, first[each.id])
        (entry,) = await ports.tables.journal()
        assert entry.note == "small talk"
        await run(ports, BEES, HONEY, start=6)
        (written,) = await visible(ports, "episode")
        assert len(written.evidence) == 8


async def test_what_waits_in_a_closed_thread_is_released_and_its_queued_merge_asks_nothing(tmp_path) -> None:
    engine = ScriptedEngine(nothing)
    async with opened(tmp_path, engine, merge_size=2) as ports:
        busy = replace(ports, engine=ScriptedEngine(ModelUnavailable("away")))
        await run(busy, *[BEES, HONEY] * 5)
        assert await states(ports) == {"waiting": 1, "planned": 1}
        ports.clock.advance(timedelta(hours=1))
        assert [each.state for each in await claimed(ports)] == ["no_op", "no_op"]
        rows = await recurrence(ports)
        assert [each.state for each in rows.exchanges] == ["unconsolidated"] * 5
        assert len(engine.seen) == 1


async def test_two_episodes_are_two_threads_and_later_exchanges_join_the_one_they_are_like(tmp_path) -> None:
    def two(cluster) -> Plan:
        bees = [turn for turn in cluster.turns if turn.text in {BEES, HONEY}]
        jeans = [turn for turn in cluster.turns if turn.text in {JEANS, DENIM}]
        return Plan(engine="scripted", episodes=(episode(jeans), episode(bees)))

    engine = ScriptedEngine(two, one_episode)
    async with opened(tmp_path, engine, theta_sim=0.05, theta_count=3) as ports:
        await run(ports, BEES, HONEY, JEANS, DENIM, BEES, HONEY)
        threads = (await recurrence(ports)).threads
        written = {unit.id: unit for unit in await visible(ports, "episode")}
        assert [thread.heads for thread in threads] != [()] * 2
        about = [written[thread.heads[0]].text for thread in threads]
        assert (BEES in about[0], JEANS in about[1], threads[1].members) == (True, True, 1)
        await run(ports, JEANS, DENIM, JEANS, DENIM, start=6)
        later = {unit.id: unit for unit in await visible(ports, "episode")}
        grown = (await recurrence(ports)).threads[1]
        assert later[grown.heads[0]].version == 2
        assert len(later[grown.heads[0]].evidence) == 6
        assert threads[0].heads[0] in later


async def test_an_archived_head_is_no_head(tmp_path) -> None:
    engine = ScriptedEngine(one_episode)
    async with opened(tmp_path, engine) as ports:
        await run(ports, *[BEES, HONEY] * 2)
        (head,) = await visible(ports, "episode")
        async with ports.tables.transaction([ADA]) as tx:
            await tx.update_units([head.model_copy(update={"visible": False})])
        await run(ports, *[BEES, HONEY] * 2, start=4)
        assert engine.seen[-1].heads == ()
        (current,) = await visible(ports, "episode")
        assert (current.version, len(current.evidence)) == (1, 4)


async def test_an_undone_merge_gives_the_thread_its_head_back_and_the_next_one_goes_on_from_it(
    tmp_path,
) -> None:
    async with opened(tmp_path, ScriptedEngine(one_episode)) as ports:
        await run(ports, *[BEES, HONEY] * 2)
        (first,) = await visible(ports, "episode")
        await run(ports, *[BEES, HONEY] * 2, start=4)
        merge = (await ports.tables.journal())[0].command
        done = await undo(ADA, merge.id, ports.tables, ports.settings, now=NOW)
        assert isinstance(done, Undone)
        (back,) = await visible(ports, "episode")
        assert (back.id, back.text, back.version) == (first.id, first.text, 3)
        await run(ports, *[BEES, HONEY] * 2, start=8)
        (current,) = await visible(ports, "episode")
        assert (current.version, len(current.evidence)) == (4, 8)
        assert recoverability(await ports.tables.graph(ADA)).unreachable == ()


async def test_the_engine_is_shown_the_two_turns_before_each(tmp_path) -> None:
    engine = ScriptedEngine(one_episode)
    async with opened(tmp_path, engine) as ports:
        await run(ports, JEANS, DENIM, BEES, HONEY, BEES, HONEY)
        (cluster,) = engine.seen
        before = [[turn.text for turn in cluster.before[each.id]] for each in cluster.turns]
        assert before == [[JEANS, DENIM], [DENIM, BEES], [BEES, HONEY], [HONEY, BEES]]


async def test_a_resolved_turn_is_found_by_its_resolved_form_and_its_words_stand(tmp_path) -> None:
    def resolving(cluster) -> Plan:
        plan = one_episode(cluster)
        resolved = (Resolution(turn=cluster.turns[0].id, text="Ada houses insects near a shed"),)
        return plan.model_copy(update={"resolved": resolved})

    async with opened(tmp_path, ScriptedEngine(resolving)) as ports:
        turns = said(BEES, HONEY, BEES, HONEY)
        await run(ports, BEES, HONEY, BEES, HONEY)
        row = (await ports.tables.units(ADA, [turns[0].id]))[turns[0].id]
        assert (row.text, row.summary, row.version) == (BEES, "Ada houses insects near a shed", 1)
        assert row.status is Status.CONSOLIDATED
        (vector,) = await ports.embedder.embed([f"{row.speaker}: Ada houses insects near a shed"])
        ((hit, *_),) = await ports.store.search([Query(ADA, vector, ("turn",), 3)])
        assert hit.id == turns[0].id
        assert hit.score == pytest.approx(1.0)
        assert (await ports.tables.tally()).index_waiting == 0


async def test_without_resolution_a_turn_is_found_by_its_words_alone(tmp_path) -> None:
    """SimpleMem table 4, without its first stage: no Φ_coref, no Φ_time (eq. 3)."""
    when = "I moved the bees yesterday"

    async def summaries(folder, **settings) -> list[str | None]:
        folder.mkdir()
        async with opened(folder, ExtractiveEngine(), **settings) as ports:
            turns = said(when, HONEY, when, HONEY)
            await run(ports, when, HONEY, when, HONEY)
            rows = await ports.tables.units(ADA, [turn.id for turn in turns])
            assert len(await ports.tables.visible_units(ADA, ("episode",))) == 1
            return [rows[turn.id].summary for turn in turns]

    resolved = await summaries(tmp_path / "with")
    assert resolved[0] is not None
    assert "yesterday (2026-02-28)" in resolved[0]
    assert await summaries(tmp_path / "without", resolution=False) == [None] * 4


async def test_new_units_wait_for_topology_which_is_ordered_when_enough_do(tmp_path) -> None:
    async with opened(tmp_path, ScriptedEngine(one_episode), topology=True, topology_buffer=2) as ports:
        await run(ports, *[BEES, HONEY] * 2)
        assert (await ports.tables.tally()).buffer_waiting == 1
        await run(ports, *[BEES, HONEY] * 2, start=4)
        kinds = [entry.command.kind for entry in await ports.tables.journal()]
        assert kinds == ["topology", "merge", "promote"]
        assert (await ports.tables.tally()).open_commands == 0


async def test_an_outage_makes_a_command_wait_and_holds_back_its_own_namespace_only(tmp_path) -> None:
    async with opened(
        tmp_path, ScriptedEngine(ModelUnavailable("away", retry_after=7), one_episode)
    ) as ports:
        await run(ports, *[BEES, HONEY] * 2)
        await run(ports, *[BEES, HONEY] * 2, namespace=BEN)
        assert await states(ports) == {"waiting": 1, "applied": 1}
        assert len(await visible(ports, "episode", BEN)) == 1
        assert ports.metrics.value(COMMANDS_PUT_OFF, kind="promote", reason="model_unavailable") == 1
        ports.clock.advance(timedelta(seconds=6))
        assert await claimed(ports) == []
        ports.clock.advance(timedelta(seconds=1))
        assert [each.state for each in await claimed(ports)] == ["applied"]
        assert len(await visible(ports, "episode")) == 1


async def test_a_spent_budget_waits_for_its_next_window(tmp_path) -> None:
    async with opened(tmp_path, ScriptedEngine(BudgetSpent("spent", retry_after=3600), one_episode)) as ports:
        await run(ports, *[BEES, HONEY] * 2)
        (entry,) = await ports.tables.journal()
        assert (entry.state, entry.attempts) == ("waiting", 0)
        assert entry.note is not None
        assert entry.note.startswith("budget_spent")
        ports.clock.advance(timedelta(hours=1))
        assert [each.state for each in await claimed(ports)] == ["applied"]


async def test_unusable_replies_are_asked_for_anew_and_then_the_exchanges_are_released(tmp_path) -> None:
    engine = ScriptedEngine(UnusableReply("no JSON"))
    async with opened(tmp_path, engine, llm_command_attempts=3, llm_retry_seconds=30) as ports:
        await run(ports, *[BEES, HONEY] * 2)
        for attempt, pause in ((1, 30), (2, 60)):
            (entry,) = await ports.tables.journal()
            assert (entry.state, entry.attempts) == ("waiting", attempt)
            ports.clock.advance(timedelta(seconds=pause - 1))
            assert await claimed(ports) == []
            ports.clock.advance(timedelta(seconds=1))
            (ended,) = await claimed(ports)
        assert ended.state == "skipped"
        assert "attempt 3 of 3: no JSON" in (ended.note or "")
        rows = await recurrence(ports)
        assert ([each.state for each in rows.exchanges], rows.threads) == (["unconsolidated"] * 2, ())
        engine.says = [one_episode]
        await run(ports, BEES, HONEY, start=4)
        (written,) = await visible(ports, "episode")
        assert len(written.evidence) == 6


async def test_a_merge_that_is_given_up_leaves_its_thread_and_episode(tmp_path) -> None:
    engine = ScriptedEngine(one_episode, UnusableReply("no JSON"))
    async with opened(tmp_path, engine, llm_command_attempts=1) as ports:
        await run(ports, *[BEES, HONEY] * 4)
        assert await states(ports) == {"applied": 1, "skipped": 1}
        rows = await recurrence(ports)
        assert ([each.state for each in rows.exchanges], len(rows.threads)) == (["unconsolidated"] * 2, 1)
        (standing,) = await visible(ports, "episode")
        assert rows.threads[0].heads == (standing.id,)


@pytest.fixture(params=["memory", "edge"])
def store_kind(request) -> str:
    return request.param


async def test_a_crash_between_any_two_writes_has_one_effect(tmp_path: Path, store_kind: str) -> None:
    reference = await _crashed(tmp_path / "reference", 0, "memory")
    # Edge starts a process each time: there, every third place.
    for at in range(1, 100, 1 if store_kind == "memory" else 3):
        found = await _crashed(tmp_path / str(at), at, store_kind)
        if found is None:
            assert at > 10
            return
        assert found == reference
    pytest.fail("it never got through")


async def _crashed(folder: Path, at: int, store_kind: str) -> object:
    """Merge with a crash at a write, start again, and return what stands then; None where nothing crashed."""
    folder.mkdir()
    engine = ScriptedEngine(one_episode)
    async with opened(folder, engine, topology=True, merge_size=2) as made:
        store = made.store if store_kind == "memory" else await open_edge(folder, "hash", 64)
        ports = replace(made, store=store)
        try:
            await run(ports, *[BEES, HONEY] * 2)
            held = replace(ports, engine=ScriptedEngine(ModelUnavailable("away")))
            await run(held, *[BEES, HONEY] * 2, start=4)
            ports.clock.advance(timedelta(hours=1))
            if at:
                claim = await ports.tables.claim("first", ports.clock.now(), 60)
                assert claim is not None
                try:
                    await carry_out(claim, with_tables(ports, CrashingTables(ports.tables, at)), replaces)
                except Crash:
                    ports.clock.advance(timedelta(seconds=61))
                else:
                    return None
            await claimed(ports)
            await run(ports, JEANS, DENIM, start=8)
            return await _standing(ports)
        finally:
            if store_kind == "edge":
                await store.close()


async def _standing(ports) -> object:
    graph = await ports.tables.graph(ADA)
    shown = [key for key, seen in graph.visible.items() if seen]
    rows = await recurrence(ports)
    edits = [edit for entry in await ports.tables.journal() for edit in entry.edits]
    return (
        dict(graph.visible),
        sorted(graph.links),
        await ports.store.present(list(graph.visible)) == set(shown),
        [(thread.id, thread.heads, thread.members) for thread in rows.threads],
        [each.id for each in rows.exchanges],
        sorted((edit.created, edit.targets) for edit in edits),
        (await states(ports), (await ports.tables.tally()).buffer_waiting, await ports.tables.outbox(1)),
        NOW,
    )
