"""`tiers` over real SQLite tables and an exact store."""

from datetime import timedelta

import pytest

from lamina.sinks.tables import open_tables
from lamina.streams.namespace import namespace_of
from lamina.streams.recall.found import Filters
from lamina.streams.recall.tiers import Budget, tiers
from lamina.streams.records import Status, Unit

from .recall.recall_kit import ADA, NOON, QUESTION, Memory, id_of

BUDGET = Budget()
EVERYTHING = Filters()


def a_unit(name, *, kind="turn", ordinal=0, session="s", minute=0, **fields):
    return Unit(
        **{
            "id": id_of(name),
            "namespace": ADA,
            "kind": kind,
            "session": session,
            "ordinal": ordinal,
            "position": minute + 1,
            "role": "user" if ordinal % 2 == 0 else "assistant",
            "speaker": "ada" if ordinal % 2 == 0 else "bot",
            "text": name,
            "said_at": NOON + timedelta(minutes=minute),
            "recorded_at": NOON,
            "status": Status.REMEMBERED,
            **fields,
        }
    )


class TiersMemory(Memory):
    """A memory that is asked by `tiers`."""

    async def find(self, *, budget=BUDGET, filters=EVERYTHING, top_k=None, namespace=ADA):
        return await tiers(
            QUESTION, namespace, self.store, self.tables, budget=budget, filters=filters, top_k=top_k
        )


@pytest.fixture
async def memory(tmp_path):
    tables = await open_tables(f"sqlite+aiosqlite:///{tmp_path / 't.db'}")
    yield TiersMemory(tables)
    await tables.close()


def names(found):
    return [one.unit.text for one in found]


async def test_two_found_turns_of_one_exchange_are_one_result_at_the_better_score(memory):
    await memory.keep(
        (a_unit("ask", ordinal=0, minute=0), 0.5),
        (a_unit("reply", ordinal=1, minute=1), 0.9),
        (a_unit("ask again", ordinal=2, minute=2), 0.7),
    )
    found = await memory.find()
    assert names(found) == ["reply", "ask again"]
    assert found[0].score == pytest.approx(0.9, abs=1e-5)
    assert [[turn.text for turn in one.turns] for one in found] == [["ask", "reply"], ["ask again"]]
    assert {one.tier for one in found} == {"subconscious"}


async def test_a_question_brings_its_reply_and_a_reply_its_question_even_gated(memory):
    await memory.keep(
        (a_unit("ask", ordinal=0, minute=0), 0.5),
        (a_unit("gated reply", ordinal=1, minute=1, status=Status.GATED, visible=False), None),
        (a_unit("gated ask", ordinal=0, minute=5, session="z", status=Status.GATED, visible=False), None),
        (a_unit("reply", ordinal=1, minute=6, session="z"), 0.4),
    )
    found = await memory.find()
    assert [[turn.text for turn in one.turns] for one in found] == [
        ["ask", "gated reply"],
        ["gated ask", "reply"],
    ]


async def test_turns_of_other_sessions_and_failed_ones_are_no_partners(memory):
    await memory.keep(
        (a_unit("ask", ordinal=0, minute=0), 0.5),
        (a_unit("failed", ordinal=1, minute=1, status=Status.FAILED, visible=False), None),
        (a_unit("elsewhere", ordinal=1, minute=1, session="z"), 0.1),
    )
    found = await memory.find()
    assert [[turn.text for turn in one.turns] for one in found] == [["ask"], ["elsewhere"]]


async def test_ten_exchanges_come_although_their_turns_fold(memory):
    await memory.keep(
        *((a_unit(f"turn {index:02}", ordinal=index, minute=index), 0.9 - index / 100) for index in range(40))
    )
    found = await memory.find()
    assert names(found) == [f"turn {index:02}" for index in range(0, 20, 2)]
    assert all(len(one.turns) == 2 for one in found)


async def test_each_tier_has_its_own_budget_and_the_order_is_by_score(memory):
    turn = a_unit("said", minute=0)
    evidence = (turn.id,)
    await memory.keep(
        (turn, 0.5),
        *((a_unit(f"episode {i}", kind="episode", evidence=evidence), 0.9 - i / 10) for i in range(7)),
        *((a_unit(f"fact {i}", kind="fact", evidence=evidence), 0.85 - i / 20) for i in range(12)),
    )
    found = await memory.find()
    tally = {
        tier: sum(one.tier == tier for one in found) for tier in ("subconscious", "episodic", "semantic")
    }
    assert tally == {"subconscious": 1, "episodic": 5, "semantic": 10}
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert all([turn.text for turn in one.turns] == ["said"] for one in found)
    assert names(await memory.find(top_k=3)) == names(found)[:3]


async def test_equal_scores_are_ordered_by_tier_then_id(memory):
    turns = [a_unit(f"t{i}", ordinal=0, session=f"s{i}") for i in range(3)]
    facts = [a_unit(f"f{i}", kind="fact", evidence=(turns[0].id,)) for i in range(3)]
    episodes = [a_unit(f"e{i}", kind="episode", evidence=(turns[0].id,)) for i in range(3)]
    await memory.keep(*((unit, 0.5) for unit in (*facts, *turns, *episodes)))
    found = await memory.find()
    expected = [
        unit for group in (turns, episodes, facts) for unit in sorted(group, key=lambda unit: unit.id)
    ]
    assert [one.unit.id for one in found] == [unit.id for unit in expected]


async def test_more_results_than_the_budgets_come_from_the_tiers_that_have_them(memory):
    await memory.keep(
        *((a_unit(f"turn {i:02}", session=f"s{i}", minute=i), 0.9 - i / 100) for i in range(40)),
        *((a_unit(f"fact {i}", kind="fact"), 0.3) for i in range(2)),
    )
    found = await memory.find(top_k=30)
    assert len(found) == 30
    assert sum(one.tier == "semantic" for one in found) == 2


async def test_kinds_leave_tiers_out(memory):
    await memory.keep((a_unit("said"), 0.5), (a_unit("fact", kind="fact"), 0.4))
    assert names(await memory.find(filters=Filters(kinds=("fact",)))) == ["fact"]
    assert names(await memory.find(budget=Budget(10, 5, 0))) == ["said"]
    assert await memory.find(filters=Filters(kinds=())) == []


async def test_an_abstract_is_found_where_the_facts_it_put_away_were(memory):
    turn = a_unit("said")
    abstract = a_unit("likes teas", kind="abstract", evidence=(turn.id,))
    away = a_unit("likes green tea", kind="fact", evidence=(turn.id,), visible=False)
    await memory.keep((turn, 0.2), (abstract, 0.9), (away, 0.95))
    best, *_ = await memory.find()
    assert (best.unit.id, best.tier, [each.id for each in best.turns]) == (abstract.id, "semantic", [turn.id])
    assert await memory.find(filters=Filters(kinds=("fact",))) == []


async def test_nothing_archived_forgotten_or_foreign_is_found_though_the_store_holds_it(memory):
    archived = a_unit("archived", kind="fact", visible=False)
    foreign = a_unit("foreign", namespace=namespace_of("u", "ada"))
    await memory.keep((archived, 0.9), (foreign, 0.9), (a_unit("said"), 0.5))
    await memory.point((a_unit("forgotten"), 0.95))
    await memory.point((foreign.model_copy(update={"namespace": ADA}), 0.9))
    assert names(await memory.find()) == ["said"]


async def test_as_of_hides_what_was_said_or_held_only_later(memory):
    early, reply = a_unit("ask", ordinal=0, minute=0), a_unit("late reply", ordinal=1, minute=60)
    later = a_unit("later", session="z", minute=90)
    await memory.keep(
        (early, 0.5),
        (reply, 0.9),
        (later, 0.9),
        (a_unit("future fact", kind="fact", valid_from=NOON + timedelta(days=9), evidence=(early.id,)), 0.8),
        (a_unit("fact", kind="fact", valid_from=NOON, evidence=(early.id,)), 0.7),
        (a_unit("episode on later turns", kind="episode", evidence=(early.id, later.id)), 0.6),
    )
    found = await memory.find(filters=Filters(as_of=NOON + timedelta(minutes=30)))
    assert names(found) == ["fact", "ask"]
    assert [turn.text for turn in found[1].turns] == ["ask"]
    at_the_moment = await memory.find(filters=Filters(as_of=early.said_at))
    assert names(at_the_moment) == ["fact", "ask"]


async def test_filters_hold_for_the_found_turn_not_for_its_partner(memory):
    await memory.keep(
        (a_unit("ask", ordinal=0, minute=0), 0.5),
        (a_unit("reply", ordinal=1, minute=1), 0.4),
        (a_unit("other", ordinal=0, minute=10, session="z"), 0.3),
    )
    found = await memory.find(filters=Filters(speaker="bot"))
    assert names(found) == ["reply"]
    assert [turn.text for turn in found[0].turns] == ["ask", "reply"]
    assert names(await memory.find(filters=Filters(session="z"))) == ["other"]
    assert names(await memory.find(filters=Filters(said_from=NOON + timedelta(minutes=5)))) == ["other"]
    assert names(await memory.find(filters=Filters(said_to=NOON))) == ["ask"]


async def test_an_empty_namespace_answers_with_nothing(memory):
    assert await memory.find(namespace=namespace_of("t", "nobody")) == []
