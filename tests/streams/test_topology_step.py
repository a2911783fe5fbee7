"""The topology step over real tables: what it edits, what it leaves, and that nothing is ever lost."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import pytest

from lamina.sinks.embed_onnx import open_onnx_embedder
from lamina.sinks.in_memory import FixedClock, HashEmbedder, InMemoryMetrics, InMemoryStore
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.tables import open_tables
from lamina.streams import flow
from lamina.streams.engine import Proposal
from lamina.streams.errors import ModelUnavailable, StoreUnavailable, TablesUnavailable
from lamina.streams.facts import replaces
from lamina.streams.metrics import DIAGNOSES, EDITS
from lamina.streams.ports import Query
from lamina.streams.records import Link, Status
from lamina.streams.recoverability import recoverability
from lamina.streams.recurrence import Thread
from lamina.streams.settings import Settings
from lamina.streams.steps.buffer import issue_idle_buffers
from lamina.streams.steps.embed import embed
from lamina.streams.steps.gate import gate
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.remember import RecurrenceCache, remember
from lamina.streams.steps.topology import edit_topology

from .topology_kit import (
    ADA,
    NOW,
    Scripted,
    SynonymEmbedder,
    a_fact,
    a_turn,
    buffered,
    claimed,
    for_first,
    having,
    journalled,
    said,
    written,
)

SETTINGS = Settings(
    topology_kinds="derived", diagnose="all", gate_enabled=False, salience=False, abstraction="off"
)


@pytest.fixture
async def ports(tmp_path: Path) -> AsyncIterator[Ports]:
    tables = await open_tables(f"sqlite+aiosqlite:///{tmp_path / 'tables.db'}")
    store = InMemoryStore(dimension=HashEmbedder.dimension)
    clock, metrics = FixedClock(NOW), InMemoryMetrics()
    yield Ports(SETTINGS, tables, store, SynonymEmbedder(), ExtractiveEngine(), clock, metrics)
    await tables.close()


@pytest.fixture
async def ports_of_each_database(tables) -> Ports:
    """The same over each kind of tables."""
    store = InMemoryStore(dimension=HashEmbedder.dimension)
    clock, metrics = FixedClock(NOW), InMemoryMetrics()
    return Ports(SETTINGS, tables, store, SynonymEmbedder(), ExtractiveEngine(), clock, metrics)


async def visible_texts(ports: Ports, *kinds) -> list[str]:
    kinds = kinds or ("turn", "episode", "fact", "abstract")
    return [unit.text for unit in await ports.tables.visible_units(ADA, kinds)]


async def snapshot(ports: Ports):
    """Everything that topology may change, as it stands."""
    graph = await ports.tables.graph(ADA)
    units = await ports.tables.units(ADA, graph.visible)
    points = await ports.store.present(graph.visible)
    return units, sorted(graph.links, key=str), points


async def assert_nothing_lost(ports: Ports) -> None:
    """Every archived unit is reachable, and the store holds exactly the visible ones."""
    graph = await ports.tables.graph(ADA)
    assert recoverability(graph).unreachable == ()
    shown = {unit for unit, visible in graph.visible.items() if visible}
    assert await ports.store.present(graph.visible) == shown


async def first_found(ports: Ports, question: str) -> str:
    (vector,) = await ports.embedder.embed([question])
    (hits,) = await ports.store.search([Query(ADA, vector, ("turn", "episode", "fact"), 1)])
    units = await ports.tables.units(ADA, [hits[0].id])
    return units[hits[0].id].text


async def remembered(ports: Ports, *texts: str) -> None:
    """Take turns through the steps and carry out what they lead to, the idle buffer included."""
    judged = await gate(said(*texts), ports)
    await remember(await embed(judged.forwarded, ports), ports, RecurrenceCache(100))
    await issue_idle_buffers(NOW + timedelta(seconds=1), ports)
    await flow.carry_out_commands(ports, replaces)


CASES = [
    (["I learned PyTorch today. Also, I need to buy eggs."], "split"),
    (["I went to the library, studied PyTorch, and then wrote some code."], None),
    (["I live in Tokyo.", "My residence is in Tokyo."], "merge"),
    (["I felt sad yesterday.", "I feel happy today."], None),
    (["I like apples.", "I hate apples now."], "update"),
    (["I live in New York.", "I moved to San Francisco."], "update"),
    (["I like apples.", "I like oranges."], None),
    (["I've tried three Korean restaurants.", "I've now tried four Korean restaurants."], "update"),
]


@pytest.mark.parametrize(("texts", "operator"), CASES)
async def test_the_published_cases_on_turns(texts, operator, ports: Ports) -> None:
    await check_published_case(having(ports, topology_kinds="all"), texts, operator)


@pytest.mark.parametrize("case", [0, 2, 4])
async def test_one_case_of_each_operator_on_each_database(case, ports_of_each_database: Ports) -> None:
    await check_published_case(having(ports_of_each_database, topology_kinds="all"), *CASES[case])


async def test_the_published_cases_with_the_real_embedder(
    ports: Ports, weights_cache: Path, tmp_path: Path
) -> None:
    embedder = await open_onnx_embedder(ports.settings, weights_cache, ports.metrics)
    try:
        for number, (texts, operator) in enumerate(CASES):
            tables = await open_tables(f"sqlite+aiosqlite:///{tmp_path / f'case-{number}.db'}")
            store = InMemoryStore(dimension=embedder.dimension)
            every = having(ports, topology_kinds="all")
            try:
                of_case = replace(every, embedder=embedder, store=store, tables=tables)
                await check_published_case(of_case, texts, operator)
            finally:
                await tables.close()
    finally:
        await embedder.close()


async def check_published_case(ports: Ports, texts: list[str], operator: str | None) -> None:
    await remembered(ports, *texts)
    entry = await journalled(ports)
    assert entry.command.kind == "topology"
    executed = [edit for edit in entry.edits if edit.outcome == "executed"]
    shown = await ports.tables.visible_units(ADA, ("turn", "episode"))
    if operator is None:
        assert (executed, entry.state) == ([], "no_op")
        assert [unit.text for unit in shown] == texts
        return
    assert ([edit.operator for edit in executed], entry.state) == ([operator], "applied")
    archived = {unit.id for unit in executed[0].before if unit.id not in {each.id for each in shown}}
    hops = recoverability(await ports.tables.graph(ADA)).hops
    assert {hops[key] for key in archived} == {1}
    await assert_nothing_lost(ports)
    if operator == "update":
        assert [unit.text for unit in shown] == [texts[1]]
        assert shown[0].summary is not None
        assert await first_found(ports, texts[0]) == texts[1], "what was asked of old is answered anew"
    else:
        assert {unit.kind for unit in shown} == {"episode"}
        assert len(shown) == (2 if operator == "split" else 1)


async def test_siblings_of_a_split_rest_on_verbatim_parts(ports: Ports) -> None:
    text = "I learned PyTorch today. Also, I need to buy eggs."
    await remembered(having(ports, topology_kinds="all"), text)
    siblings = await ports.tables.visible_units(ADA, ("episode",))
    parts = [text[span.start : span.end] for unit in siblings for span in unit.spans]
    assert parts == ["I learned PyTorch today.", "Also, I need to buy eggs."]
    links = await ports.tables.links_from(ADA, [siblings[0].id])
    assert {link.type for link in links} >= {"version", "sibling", "evidence"}


async def test_equal_facts_become_one_with_the_evidence_of_both(ports: Ports) -> None:
    said_first, said_again = a_turn(1, "I am allergic to peanuts."), a_turn(2, "Peanuts? I am allergic!")
    facts = [
        a_fact(1, "Ada is allergic to peanuts", relation="allergic_to", evidence=(said_first.id,)),
        a_fact(2, "Ada is allergic to Peanuts", relation="allergic_to", evidence=(said_again.id,)),
    ]
    await written(ports, said_first, said_again, *facts)
    outcome = await edit_topology(await buffered(ports, *facts), ports)
    assert outcome.state == "applied"
    (fact,) = await ports.tables.visible_units(ADA, ("fact",))
    assert fact.evidence == (said_first.id, said_again.id)
    assert (fact.subject, fact.relation) == ("Ada", "allergic_to")
    assert await visible_texts(ports, "turn") == [said_first.text, said_again.text]
    await assert_nothing_lost(ports)


async def test_without_merge_equal_facts_stay_two_and_the_journal_says_why(ports: Ports) -> None:
    """All-Mem app. E, w/o Merge: "removing Merge keeps redundant variants visible"."""
    turn = a_turn(1, "I am allergic to peanuts.")
    facts = [
        a_fact(1, "Ada is allergic to peanuts", relation="allergic_to", evidence=(turn.id,)),
        a_fact(2, "Ada is allergic to Peanuts", relation="allergic_to", evidence=(turn.id,)),
    ]
    without = having(ports, topology_merge=False)
    await written(without, turn, *facts)
    outcome = await edit_topology(await buffered(without, *facts), without)
    assert outcome.state == "no_op"
    assert await visible_texts(without, "fact") == [fact.text for fact in facts]
    assert "merge is switched off" in (await journalled(without)).edits[0].reason


async def test_what_an_engine_invents_is_skipped_journalled_and_harmless(ports: Ports) -> None:
    turn = a_turn(1, "I like tea.")
    facts = [a_fact(n, f"Ada likes tea {n}") for n in range(1, 7)]
    one, two, three, four, five, _ = (fact.id for fact in facts)
    nonsense = [
        Proposal("merge", (one, uuid4()), "an id that nobody has", 0.99),
        Proposal("merge", (one, two, three, four, five), "five of them", 0.99),
        Proposal("merge", (one,), "one of them", 0.99),
        Proposal("merge", (two, two), "twice the same", 0.99),
        Proposal("split", (one, two), "two at once", 0.99),
        Proposal("split", (turn.id,), "a turn", 0.99),
        Proposal("update", (turn.id, one), "a turn over a fact", 0.99),
        Proposal("update", (one, five), "an older one over a newer one", 0.99),
        Proposal("update", (three, three), "itself", 0.99),
        Proposal("merge", (three, four), "too unsure", 0.89),
        Proposal("merge", (three, four), "beyond belief", 7.0),
        Proposal("merge", (three, four), "no number", float("nan")),
        Proposal("merge", (), "nothing", 0.99),
    ]
    at_work = having(ports, engine=Scripted(for_first(*nonsense)))
    await written(ports, turn, *facts)
    before = await snapshot(ports)
    outcome = await edit_topology(await buffered(ports, *facts), at_work)
    assert outcome.state == "no_op"
    assert await snapshot(ports) == before
    entry = await journalled(ports)
    assert len(entry.edits) == len(nonsense)
    assert {edit.outcome for edit in entry.edits} == {"skipped"}
    assert all(edit.reason for edit in entry.edits)
    assert entry.note == f"none of {len(nonsense)} proposed edits was carried out"


async def test_an_engine_that_answers_for_other_neighbourhoods_proposed_nothing(ports: Ports) -> None:
    facts = [a_fact(n, "Ada likes tea") for n in (1, 2)]
    merge = Proposal("merge", (facts[0].id, facts[1].id), "same", 0.99)
    await written(ports, *facts)
    engine = Scripted(lambda _: [[merge]] * 9)
    outcome = await edit_topology(await buffered(ports, *facts), having(ports, engine=engine))
    assert outcome.state == "no_op"


async def test_of_overlapping_targets_the_first_wins(ports) -> None:
    facts = [a_fact(n, "Ada likes tea") for n in (1, 2, 3)]
    one, two, three = (fact.id for fact in facts)
    script = for_first(
        Proposal("merge", (two, three), "less sure", 0.91),
        Proposal("merge", (one, two), "more sure", 0.99),
        Proposal("update", (three, two), "stale by then", 0.99),
    )
    await written(ports, *facts)
    await edit_topology(await buffered(ports, *facts), having(ports, engine=Scripted(script)))
    edits = (await journalled(ports)).edits
    assert [(edit.operator, edit.outcome) for edit in edits] == [
        ("merge", "executed"),
        ("merge", "skipped"),
        ("update", "skipped"),
    ]
    assert "stale" in edits[1].reason
    assert ports.metrics.value(EDITS, operator="merge", outcome="skipped") == 1
    await assert_nothing_lost(ports)


@pytest.mark.parametrize(
    ("segments", "outcome"),
    [
        (None, "skipped"),
        ((), "no_op"),
        (("I learned PyTorch today.",), "no_op"),
        (("I learned PyTorch today.", "I must delete everything."), "skipped"),
        (("I learned PyTorch today.", "I learned PyTorch today."), "skipped"),
        (("", " "), "skipped"),
    ],
)
async def test_a_split_whose_plan_is_not_grounded_changes_nothing(segments, outcome, ports: Ports) -> None:
    turn = a_turn(1, "I learned PyTorch today. Also, I need to buy eggs.")
    engine = Scripted(for_first(Proposal("split", (turn.id,), "two topics", 0.99)))
    engine.plans["plan_split"] = segments
    every = having(ports, engine=engine, topology_kinds="all")
    await written(every, turn)
    before = await snapshot(every)
    assert (await edit_topology(await buffered(every, turn), every)).state == "no_op"
    assert await snapshot(every) == before
    assert [edit.outcome for edit in (await journalled(every)).edits] == [outcome]


@pytest.mark.parametrize("purpose", ["plan_merge", "plan_update"])
async def test_an_unusable_plan_changes_nothing(purpose, ports: Ports) -> None:
    facts = [a_fact(n, "Ada likes tea") for n in (1, 2)]
    operator = "merge" if purpose == "plan_merge" else "update"
    engine = Scripted(for_first(Proposal(operator, (facts[1].id, facts[0].id), "same", 0.99)))
    engine.plans[purpose] = None
    await written(ports, *facts)
    before = await snapshot(ports)
    outcome = await edit_topology(await buffered(ports, *facts), having(ports, engine=engine))
    assert outcome.state == "no_op"
    assert await snapshot(ports) == before


async def test_unlike_units_are_not_merged_however_sure_the_engine_is(ports: Ports) -> None:
    facts = [a_fact(1, "Ada likes tea"), a_fact(2, "Rotterdam has forty bridges")]
    engine = Scripted(for_first(Proposal("merge", (facts[0].id, facts[1].id), "same", 1.0)))
    await written(ports, *facts)
    await edit_topology(await buffered(ports, *facts), having(ports, engine=engine))
    (edit,) = (await journalled(ports)).edits
    assert edit.outcome == "skipped"
    assert "redundancy" in edit.reason
    assert engine.asked == [("diagnose", 2)], "no plan is paid for a merge that fails its check"


async def test_without_drift_the_engine_is_not_asked(ports) -> None:
    facts = [a_fact(1, "Ada likes tea"), a_fact(2, "Rotterdam has forty bridges")]
    engine = Scripted(lambda contexts: [() for _ in contexts])
    gated = having(ports, engine=engine, diagnose="drift")
    await written(ports, *facts)
    outcome = await edit_topology(await buffered(ports, *facts), gated)
    assert (outcome.state, outcome.note) == ("no_op", "no sign of drift around 2 units")
    assert engine.asked == []
    assert ports.metrics.value(DIAGNOSES, outcome="gated") == 2
    twin = a_fact(3, "Ada likes tea")
    await written(ports, twin)
    await edit_topology(await buffered(ports, twin), gated)
    assert engine.asked == [("diagnose", 1)]
    (diagnosed,) = ((await journalled(ports)).plan or {})["diagnosed"]
    assert diagnosed["signal"].startswith("near duplicate")


async def test_an_archived_unit_is_looked_at_in_what_stands_for_it(ports: Ports) -> None:
    old, new, gone = a_fact(1, "Ada likes tea", visible=False), a_fact(2, "Ada likes tea"), a_fact(3, "x y z")
    gone = gone.model_copy(update={"visible": False})
    link = Link(namespace=ADA, source=new.id, target=old.id, type="version")
    engine = Scripted(lambda contexts: [() for _ in contexts])
    await written(ports, old, new, gone, links=[link])
    await edit_topology(await buffered(ports, old, gone), having(ports, engine=engine))
    assert [context.target.unit.id for context in engine.contexts] == [new.id]


async def test_where_nothing_is_visible_any_more_it_says_so(ports: Ports) -> None:
    gone = a_fact(1, "Ada likes tea", visible=False)
    await written(ports, gone)
    outcome = await edit_topology(await buffered(ports, gone), ports)
    assert (outcome.state, outcome.note) == ("no_op", "none of the units is visible any more")


async def test_a_neighbourhood_has_k_visible_anchors_of_its_layer_linked_ones_first(ports: Ports) -> None:
    target, linked = a_fact(1, "Ada likes tea"), a_fact(2, "Rotterdam has forty bridges")
    near = [a_fact(n, f"Ada likes tea {n}") for n in range(3, 9)]
    episode = a_fact(20, "Ada likes tea", kind="episode", subject=None, relation=None)
    hidden = a_fact(21, "Ada likes tea", visible=False)
    links = [
        Link(namespace=ADA, source=target.id, target=linked.id, type="semantic", weight=0.3),
        Link(namespace=ADA, source=target.id, target=hidden.id, type="semantic", weight=1.0),
    ]
    engine = Scripted(lambda contexts: [() for _ in contexts])
    await written(ports, target, linked, *near, episode, hidden, a_turn(30, "Ada likes tea"), links=links)
    await edit_topology(await buffered(ports, target), having(ports, engine=engine, topology_anchors=4))
    (context,) = engine.contexts
    anchors = [anchor.unit for anchor in context.anchors]
    assert len(anchors) == 4
    assert anchors[0].id == linked.id
    assert {unit.kind for unit in anchors} == {"fact"}


def merging_pair(first: int = 1):
    facts = [a_fact(first, "Ada likes tea"), a_fact(first + 1, "Ada likes tea")]
    return facts, Scripted(for_first(Proposal("merge", (facts[0].id, facts[1].id), "same", 0.99)))


class Dying:
    """Tables whose transactions die at their end while `armed`."""

    def __init__(self, tables) -> None:
        self._tables = tables
        self.armed = True

    def __getattr__(self, name):
        return getattr(self._tables, name)

    def transaction(self, namespaces):
        return _Doomed(self._tables.transaction(namespaces), self)


class _Doomed:
    def __init__(self, transaction, tables: Dying) -> None:
        self._transaction, self._tables, self._finished = transaction, tables, False

    async def __aenter__(self):
        tx = await self._transaction.__aenter__()
        finish = tx.finish_command

        async def finishing(*args, **kwargs):
            self._finished = True
            return await finish(*args, **kwargs)

        tx.finish_command = finishing
        return tx

    async def __aexit__(self, *fault):
        if self._finished and self._tables.armed:
            dead = TablesUnavailable("killed before the commit")
            await self._transaction.__aexit__(TablesUnavailable, dead, None)
            raise dead
        return await self._transaction.__aexit__(*fault)


async def test_a_crash_before_the_commit_leaves_no_trace_and_the_next_run_asks_the_same(
    ports: Ports,
) -> None:
    facts, engine = merging_pair()
    at_work = having(ports, engine=engine)
    await written(ports, *facts)
    claim = await buffered(ports, *facts)
    before = await snapshot(ports)
    with pytest.raises(TablesUnavailable):
        await edit_topology(claim, replace(at_work, tables=Dying(ports.tables)))
    assert await snapshot(ports) == before
    asked, engine.asked = engine.asked, []
    await ports.tables.release(claim)
    assert (await edit_topology(await claimed(ports), at_work)).state == "applied"
    assert engine.asked == asked
    assert len(await visible_texts(ports, "fact")) == 1
    await assert_nothing_lost(ports)


async def test_a_crash_after_the_commit_is_finished_by_the_index_and_not_done_again(ports) -> None:
    facts, engine = merging_pair()

    class Away(InMemoryStore):
        async def upsert(self, points):
            raise StoreUnavailable("killed before the copy")

    await written(ports, *facts)
    claim = await buffered(ports, *facts)
    away = Away(dimension=HashEmbedder.dimension)
    away._shelves, away._homes = ports.store._shelves, ports.store._homes
    with pytest.raises(StoreUnavailable):
        await edit_topology(claim, replace(having(ports, engine=engine), store=away))
    assert (await journalled(ports)).state == "applied"
    assert await ports.tables.claim("test", NOW, 60) is None, "the command is done"
    fresh = a_fact(9, "Rotterdam has forty bridges")
    await written(ports, fresh)
    await edit_topology(await buffered(ports, fresh), having(ports, engine=engine))
    assert len(await visible_texts(ports, "fact")) == 2
    await assert_nothing_lost(ports)


async def test_a_command_carried_out_twice_has_one_effect(ports: Ports) -> None:
    facts, engine = merging_pair()
    at_work = having(ports, engine=engine)
    await written(ports, *facts)
    claim = await buffered(ports, *facts)
    await edit_topology(claim, at_work)
    after = await snapshot(ports)
    assert (await edit_topology(claim, at_work)).state == "lost"
    assert await snapshot(ports) == after


async def test_a_worker_that_lost_its_lane_writes_nothing(ports) -> None:
    facts, engine = merging_pair()
    await written(ports, *facts)
    claim = await buffered(ports, *facts)
    before = await snapshot(ports)
    ports.clock.advance(timedelta(minutes=5))
    await claimed(ports)
    assert (await edit_topology(claim, having(ports, engine=engine))).state == "lost"
    assert await snapshot(ports) == before


async def test_a_model_that_is_away_leaves_the_command_open_and_nothing_written(ports: Ports) -> None:
    facts, engine = merging_pair()
    engine.plans["plan_merge"] = ModelUnavailable("away")
    await written(ports, *facts)
    before = await snapshot(ports)
    with pytest.raises(ModelUnavailable):
        await edit_topology(await buffered(ports, *facts), having(ports, engine=engine))
    assert await snapshot(ports) == before
    assert (await journalled(ports)).state == "planned"


def an_episode(number: int, text: str, *turns):
    return a_fact(
        number,
        text,
        kind="episode",
        subject=None,
        relation=None,
        object=None,
        evidence=tuple(turn.id for turn in turns),
    )


async def test_a_thread_follows_its_merged_head_and_keeps_what_joined_it_meanwhile(ports: Ports) -> None:
    turns = [a_turn(n, f"Bees behind the barn, day {n}") for n in (1, 2)]
    heads = [an_episode(n, "Ada keeps bees behind the barn", turns[n - 1]) for n in (1, 2)]
    total = np.ones(HashEmbedder.dimension, np.float32)
    threads = [Thread(UUID(int=50 + n), total, 5, None, heads=(heads[n].id,)) for n in (0, 1)]
    engine = Scripted(for_first(Proposal("merge", (heads[0].id, heads[1].id), "same", 0.99)))
    await written(ports, *turns, *heads, threads=threads)
    claim = await buffered(ports, *heads)

    class Joining(Scripted):
        async def plan_merge(self, claim, ordinal, sources, reason):
            async with ports.tables.transaction([ADA]) as tx:
                await tx.save_recurrence(ADA, (), [replace(threads[0], total=total * 2, members=6)])
            return await super().plan_merge(claim, ordinal, sources, reason)

    await edit_topology(claim, having(ports, engine=Joining(engine.script)))
    (head,) = await ports.tables.visible_units(ADA, ("episode",))
    first, second = [await ports.tables.thread(ADA, thread.id) for thread in threads]
    assert first.heads == second.heads == (head.id,)
    assert (first.members, second.members) == (6, 5)
    assert float(first.total[0]) == 2.0


async def test_a_turn_keeps_the_status_it_got_while_topology_worked(ports: Ports) -> None:
    turns = [a_turn(1, "I live in New York."), a_turn(2, "I moved to San Francisco.")]

    class Meanwhile(ExtractiveEngine):
        async def plan_update(self, *args):
            async with ports.tables.transaction([ADA]) as tx:
                await tx.set_status([turn.id for turn in turns], Status.CONSOLIDATED)
            return await super().plan_update(*args)

    every = having(ports, engine=Meanwhile(), topology_kinds="all")
    await written(every, *turns)
    assert (await edit_topology(await buffered(every, *turns), every)).state == "applied"
    units = await ports.tables.units(ADA, [turn.id for turn in turns])
    assert {unit.status for unit in units.values()} == {Status.CONSOLIDATED}
    assert {unit.text for unit in units.values()} == {turn.text for turn in turns}
    assert units[turns[1].id].summary.endswith("I moved to San Francisco.")


async def test_turns_that_came_after_the_command_are_not_shown(ports: Ports) -> None:
    engine = Scripted(lambda contexts: [() for _ in contexts])
    every = having(ports, engine=engine, topology_kinds="all")
    judged = await gate(said("I like tea a lot.", "I like tea so much."), every)
    await remember(await embed(judged.forwarded, every), every, RecurrenceCache(100))
    commands = await issue_idle_buffers(NOW + timedelta(seconds=1), every)
    later = a_turn(900, "I like tea really.")
    await written(every, later)
    await ports.tables.admit_commands(commands)
    await edit_topology(await claimed(every), every)
    shown = {anchor.unit.id for context in engine.contexts for anchor in context.anchors}
    assert len(engine.contexts) == 2
    assert later.id not in shown


async def test_links_stay_within_their_caps(ports: Ports) -> None:
    capped = having(ports, semantic_links=2, topology_anchors=10)
    facts = [a_fact(n, f"Ada likes tea {n}") for n in range(1, 9)]
    links = [
        Link(namespace=ADA, source=one.id, target=other.id, type="semantic", weight=0.9)
        for one in facts
        for other in facts[one.ordinal : one.ordinal + 2]
    ]
    one, two, three, *_ = (fact.id for fact in facts)
    engine = Scripted(for_first(Proposal("merge", (one, two, three), "same", 0.99)))
    await written(capped, *facts, links=links)
    outcome = await edit_topology(await buffered(capped, *facts), replace(capped, engine=engine))
    assert outcome.state == "applied"
    shown = [unit.id for unit in await ports.tables.visible_units(ADA, ("fact",))]
    leaving = await ports.tables.links_from(ADA, shown, ("semantic",))
    assert max(sum(link.source == key for link in leaving) for key in shown) <= 2
    assert {link.target for link in leaving} <= set(shown)


async def test_related_facts_get_an_abstract_and_stay_reachable(ports: Ports) -> None:
    drinks = ("Ada likes green tea", "Ada likes black tea", "Ada likes white tea")
    facts = [a_fact(n, text, what=text[10:]) for n, text in enumerate(drinks, start=1)]
    abstracting = having(ports, abstraction="mean", abstraction_threshold=0.6)
    await written(ports, *facts)
    outcome = await edit_topology(await buffered(ports, *facts), abstracting)
    assert outcome.state == "applied"
    (abstract,) = await ports.tables.visible_units(ADA, ("fact", "abstract"))
    assert (abstract.kind, abstract.text) == ("abstract", "Ada likes: green tea; black tea; white tea")
    (edit,) = (await journalled(ports)).edits
    assert (edit.operator, edit.outcome) == ("abstract", "executed")
    await assert_nothing_lost(ports)


async def test_what_topology_wrote_is_not_buffered_again(ports: Ports) -> None:
    facts, engine = merging_pair()
    await written(ports, *facts)
    await edit_topology(await buffered(ports, *facts), having(ports, engine=engine))
    async with ports.tables.transaction([ADA]) as tx:
        assert await tx.buffer(ADA) == []
