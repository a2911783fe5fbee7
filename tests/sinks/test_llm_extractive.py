from datetime import UTC, datetime, timedelta
from uuid import UUID

from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.streams.engine import Cluster, Engine
from lamina.streams.namespace import namespace_of
from lamina.streams.ports import Claim
from lamina.streams.records import Command, Unit

SAID_AT = datetime(2026, 5, 4, 14, 0, tzinfo=UTC)


def a_turn(text, *, number=1):
    return Unit(
        id=UUID(int=number),
        namespace=namespace_of("tenant", "nora"),
        kind="turn",
        session="s",
        ordinal=number - 1,
        position=number,
        speaker="Nora",
        text=text,
        said_at=SAID_AT + timedelta(minutes=number),
        recorded_at=SAID_AT,
    )


def turns_of(*texts):
    return [a_turn(text, number=number) for number, text in enumerate(texts, start=1)]


CAKE = turns_of(
    "I'm planning a birthday cake for my sister Mia at SweetLeaf.",
    "Remember, my sister Mia is allergic to peanuts!",
    "The cake from SweetLeaf must be ready on Friday.",
)


NOTHING = Command(
    id=UUID(int=99),
    namespace=namespace_of("tenant", "nora"),
    kind="promote",
    reason="recurrence",
    position=9,
    issued_at=SAID_AT,
)
CLAIM = Claim(NOTHING, fence=1, owner="me", until=SAID_AT)


async def knowing_nothing(_):
    return ()


async def plan_of(turns, **fields):
    return await ExtractiveEngine().consolidate(CLAIM, Cluster(tuple(turns), **fields), knowing_nothing)


def test_it_is_an_engine_and_says_what_it_is():
    engine: Engine = ExtractiveEngine()
    assert engine.name == "extractive"


async def test_a_new_cluster_gives_one_episode_and_the_facts_of_recmem_appendix_b():
    plan = await plan_of(CAKE)
    assert plan.engine == "extractive"
    assert len(plan.episodes) == 1
    assert plan.episodes[0].evidence == tuple(turn.id for turn in CAKE)
    facts = {(fact.subject, fact.relation, fact.object) for fact in plan.facts}
    assert {("Nora", "sister", "Mia"), ("Mia", "allergic_to", "peanuts")} <= facts


async def test_a_merge_gives_one_episode_of_all_turns_and_facts_of_the_new_ones_only():
    head = a_turn("Nora planned a cake.", number=70).model_copy(
        update={"kind": "episode", "evidence": tuple(turn.id for turn in CAKE)}
    )
    new = a_turn("I live in Lisbon, bring the cake there.", number=9)
    plan = await plan_of([new], heads=(head,), told=tuple(CAKE))
    assert plan.episodes[0].evidence == (*(turn.id for turn in CAKE), new.id)
    assert [(fact.relation, fact.evidence) for fact in plan.facts] == [("lives_in", (new.id,))]


async def test_the_new_turns_are_resolved():
    turns = turns_of("I ordered the cake yesterday.", "The cake is ready.")
    plan = await plan_of(turns)
    assert [(each.turn, each.text) for each in plan.resolved] == [
        (turns[0].id, "Nora ordered the cake yesterday (2026-05-03).")
    ]


async def test_a_fact_is_understood_from_the_turns_before():
    before, turn = turns_of("My sister Mia comes for the cake.", "She is allergic to peanuts.")
    plan = await plan_of([turn], before={turn.id: (before,)})
    assert [(fact.subject, fact.object, fact.evidence) for fact in plan.facts] == [
        ("Mia", "peanuts", (turn.id,))
    ]
    stranger = a_turn("Her teacher comes for the cake.", number=8)
    plan = await plan_of([turn], before={turn.id: (before, stranger)})
    assert plan.facts == ()


async def test_turns_without_a_sentence_give_an_empty_plan_that_says_so():
    plan = await plan_of(turns_of("…", "😊"))
    assert (plan.engine, plan.episodes, plan.facts) == ("extractive", (), ())
    assert plan.note == "no episode: the turns carry no sentence"


async def test_the_same_turns_give_the_same_plan():
    there, back = await plan_of(CAKE), await plan_of(list(reversed(CAKE)))
    assert (there.episodes, there.facts) == (back.episodes, back.facts)


async def test_turns_are_described_with_a_day_and_keywords():
    turns = turns_of(
        "I signed up for a pottery class yesterday!", "Wow, cool!", "The pottery class costs 40 euros."
    )
    descriptor = await ExtractiveEngine().describe(CLAIM, 0, turns)
    assert descriptor.summary == (
        "[2026-05-03] Nora: Nora signed up for a pottery class yesterday (2026-05-03)! "
        "Nora: The pottery class costs 40 euros."
    )
    assert 3 <= len(descriptor.keywords) <= 5
    assert "pottery" in descriptor.keywords


async def test_wordless_turns_are_described_by_what_there_is():
    descriptor = await ExtractiveEngine().describe(CLAIM, 0, turns_of("😊"))
    assert descriptor.summary == "[2026-05-04] Nora: 😊"
