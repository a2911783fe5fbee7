"""The steps over real tables: what a batch leaves behind, and what a repetition does not change."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

from lamina.sinks.in_memory import FixedClock, HashEmbedder, InMemoryMetrics, InMemoryStore
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.tables import open_tables
from lamina.streams import flow
from lamina.streams.errors import StoreUnavailable
from lamina.streams.facts import replaces
from lamina.streams.identity import turn_id_from_message
from lamina.streams.metrics import THETA_SIM, TURNS
from lamina.streams.namespace import namespace_of
from lamina.streams.placement import arrive
from lamina.streams.ports import PoolQuery, Query
from lamina.streams.records import Placement, Status, Turn
from lamina.streams.settings import Settings
from lamina.streams.steps.embed import embed
from lamina.streams.steps.gate import gate
from lamina.streams.steps.index import sweep
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.remember import RecurrenceCache, remember, ripen
from lamina.streams.theta import BINS, START

ADA = namespace_of("acme", "ada")
NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class FailingStore(InMemoryStore):
    """A store that is away while `away` is set."""

    away = False

    async def upsert(self, points) -> None:
        if self.away:
            raise StoreUnavailable("away")
        await super().upsert(points)


@pytest.fixture
async def ports(tmp_path: Path) -> AsyncIterator[Ports]:
    tables = await open_tables(f"sqlite+aiosqlite:///{tmp_path / 'tables.db'}")
    # The gate admits all: a test that repeats itself shall count what it repeats.
    settings = Settings(theta_count=2, merge_size=2, gate_enabled=False)
    store = FailingStore(dimension=HashEmbedder().dimension)
    engine = ExtractiveEngine()
    yield Ports(settings, tables, store, HashEmbedder(), engine, FixedClock(NOW), InMemoryMetrics())
    await tables.close()


def said(*texts: str, start: int = 0) -> list[Placement]:
    """A user and an assistant in turn, a minute apart."""
    placements = []
    for number, text in enumerate(texts, start=start):
        role = "user" if number % 2 == 0 else "assistant"
        turn = Turn(role=role, content=text, message_id=str(number), run_id="one")
        turn = turn.model_copy(update={"timestamp": NOW + timedelta(minutes=number)})
        placements.append(
            arrive(ADA, turn, fallback_id=turn_id_from_message(ADA, str(number)), received_at=NOW)
        )
    return placements


async def through(placements: list[Placement], ports: Ports, cache: RecurrenceCache | None = None):
    judged = await gate(placements, ports)
    embedded = await embed(judged.forwarded, ports)
    return await remember(embedded, ports, cache or RecurrenceCache(1000))


BEES = "I keep bees behind the old barn"
HONEY = "Bees need flowers all summer long"


def gating(ports: Ports) -> Ports:
    return replace(ports, settings=ports.settings.model_copy(update={"gate_enabled": True}))


async def test_the_first_recorded_verdict_wins(ports) -> None:
    (first,) = (await gate(said("Thanks a lot!"), gating(ports))).gated
    (again,) = (await gate(said("Thanks a lot!"), ports)).gated
    assert again.unit == first.unit
    assert ports.metrics.value(TURNS, step="gate", outcome="gated") == 1


async def test_a_gated_reply_still_closes_the_exchange_of_a_kept_turn(ports) -> None:
    judged = await gate(said(BEES, "Thanks a lot!"), gating(ports))
    assert [each.unit.status for each in judged.forwarded] == [Status.ADMITTED, Status.GATED]
    done = await remember(await embed(judged.forwarded, ports), ports, RecurrenceCache(1000))
    assert [unit.text for unit in done.units] == [BEES]
    assert list(done.decisions) == [judged.forwarded[1].unit.id]
    (hits,) = await ports.store.search([Query(ADA, await vector(BEES, ports), ("turn",), 5)])
    assert [hit.id for hit in hits] == [judged.forwarded[0].unit.id]


async def vector(text: str, ports: Ports):
    return (await ports.embedder.embed([text]))[0]


async def test_a_turn_links_to_the_last_kept_turn_before_it(ports) -> None:
    done = await through(said(BEES, "Thanks a lot!", HONEY), gating(ports))
    kept = [unit.id for unit in done.units]
    assert [(link.source, link.target) for link in done.links if link.type == "temporal"] == [
        (kept[1], kept[0])
    ]


async def test_a_batch_that_comes_again_changes_nothing(ports) -> None:
    placements = said(BEES, HONEY, BEES, HONEY)
    first = await through(placements, ports)
    assert [command.kind for command in first.commands] == ["promote"]
    again = await through(placements, ports)
    assert (again.units, again.links, again.decisions, again.commands) == ([], [], {}, [])
    tally = await ports.tables.tally()
    assert (tally.turns["remembered"], tally.commands["issued"]) == (4, 1)


async def test_a_store_that_was_away_after_the_commit_is_made_up_for(ports) -> None:
    ports.store.away = True
    with pytest.raises(StoreUnavailable):
        await through(said(BEES, HONEY), ports)
    assert (await ports.tables.tally()).index_waiting == 2
    ports.store.away = False
    assert await sweep(ports) == 2
    assert (await ports.tables.tally()).index_waiting == 0
    assert await ports.store.count() == 2


async def test_swept_vectors_are_those_that_were_first_computed(ports) -> None:
    await through(said(BEES, HONEY), ports)
    query = [Query(ADA, await vector(HONEY, ports), ("turn",), 5)]
    tokens = (await ports.embedder.embed_question(HONEY)).tokens
    before, pool = await ports.store.search(query), await ports.store.pool(PoolQuery(query[0], (), tokens))
    await ports.tables.mark_for_index()
    assert await sweep(ports) == 2
    assert await ports.store.search(query) == before
    again = await ports.store.pool(PoolQuery(query[0], (), tokens))
    assert dict(zip(again.ids, again.similarity.T.tolist(), strict=True)) == dict(
        zip(pool.ids, pool.similarity.T.tolist(), strict=True)
    )
    assert np.count_nonzero(pool.similarity)


async def test_a_cached_state_is_dropped_when_another_worker_saved_one(ports) -> None:
    mine, theirs = RecurrenceCache(1000), RecurrenceCache(1000)
    await through(said(BEES, HONEY), ports, mine)
    await through(said(BEES, HONEY, start=2), ports, theirs)
    done = await through(said(BEES, HONEY, start=4), ports, mine)
    assert [decision.outcome for decision in done.decisions.values()] == ["merges"]


async def test_an_adaptive_threshold_goes_on_where_another_worker_left_it(ports) -> None:
    adaptive = replace(ports, settings=ports.settings.model_copy(update={"theta_sim": "adaptive"}))
    for start in range(0, 12, 2):
        await through(said(BEES, HONEY, start=start), adaptive, RecurrenceCache(1000))
    async with ports.tables.transaction([ADA]) as tx:
        counts = (await tx.recurrence(ADA)).similarities
    assert (len(counts), sum(counts), counts[-1]) == (BINS, 5, 5)
    assert ports.metrics.observations(THETA_SIM, mode="adaptive") == [START] * 6


async def test_a_turns_links_do_not_depend_on_how_far_consolidation_has_come(ports) -> None:
    first = said(BEES, HONEY)
    await through(first, ports)
    async with ports.tables.transaction([ADA]) as tx:
        rows = await tx.units([each.id for each in first])
        await tx.update_units([each.model_copy(update={"summary": "torn jeans"}) for each in rows.values()])
    await sweep(ports)
    done = await through(said("torn jeans", "Honey", start=2), ports)
    weights = {link.target: link.weight for link in done.links if link.type == "semantic"}
    assert max(weights.values(), default=0) < 0.9


async def test_wall_clock_silence_issues_what_waits(ports) -> None:
    await through(said(BEES, HONEY, BEES, HONEY, BEES, HONEY), ports)
    assert (await ports.tables.tally()).merges_waiting == 1
    ports.clock.advance(timedelta(seconds=ports.settings.merge_wait_seconds))
    assert await ripen(ports) == []
    ports.clock.advance(timedelta(seconds=1))
    (command,) = await ripen(ports)
    assert command.reason == "merge_idle"
    assert (await ports.tables.tally()).merges_waiting == 0


async def test_the_flow_writes_an_episode_and_merges_into_it_without_touching_what_was_said(ports) -> None:
    turns = said(*[BEES, HONEY] * 5)
    await flow.run(turns, ports, replaces, batch_size=3)
    tally = await ports.tables.tally()
    assert tally.turns["consolidated"] == 8
    assert tally.derived["episode"] == 1
    assert tally.commands["applied"] >= 2
    rows = await ports.tables.units(ADA, [placement.id for placement in turns])
    assert [rows[placement.id].text for placement in turns] == [placement.turn.content for placement in turns]


async def test_a_fact_that_changes_is_ended_and_reachable(ports) -> None:
    texts = ("I live in Hamburg now", "Nice place", "I live in Lisbon now", "Lovely place")
    settings = ports.settings.model_copy(update={"merge_size": 1})
    await flow.run(said(*texts), replace(ports, settings=settings), replaces, batch_size=1)
    async with ports.tables.transaction([ADA]) as tx:
        (current,) = await tx.visible_facts(ADA, [("user", "lives_in")])
    assert current.object == "Lisbon"
    links = await ports.tables.links_of(ADA, current.id)
    (older,) = [link.target for link in links if link.type == "version" and link.source == current.id]
    assert (await ports.tables.find([older]))[older].object == "Hamburg"


def test_ids_are_not_random() -> None:
    assert said(BEES)[0].id == said(BEES)[0].id != uuid4()


async def test_a_gated_turn_stays_gated_when_its_exchange_is_consolidated(ports) -> None:
    texts = (BEES, "Thanks a lot!", "My bees gave forty jars of honey in July", "You are welcome!")
    loose = gating(ports)
    loose = replace(loose, settings=loose.settings.model_copy(update={"theta_sim": 0.05}))
    await flow.run(said(*texts), loose, replaces)
    tally = await ports.tables.tally()
    assert (tally.turns["consolidated"], tally.turns["gated"]) == (2, 2)
