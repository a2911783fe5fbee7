from datetime import UTC, datetime, timedelta
from uuid import UUID

from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.streams.namespace import namespace_of
from lamina.streams.ports import Consolidator
from lamina.streams.records import Unit

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


def test_it_is_a_consolidator_and_says_what_it_is():
    engine: Consolidator = ExtractiveEngine()
    assert engine.name == "extractive"


async def test_create_gives_one_episode_and_the_facts_of_recmem_appendix_b():
    plan = await ExtractiveEngine().create(CAKE)
    assert plan.engine == "extractive"
    assert len(plan.episodes) == 1
    assert plan.episodes[0].evidence == tuple(turn.id for turn in CAKE)
    facts = {(fact.subject, fact.relation, fact.object) for fact in plan.facts}
    assert {("Nora", "sister", "Mia"), ("Mia", "allergic_to", "peanuts")} <= facts


async def test_merge_gives_one_episode_of_all_turns_and_facts_of_the_new_ones_only():
    new = [a_turn("I live in Lisbon, bring the cake there.", number=9)]
    plan = await ExtractiveEngine().merge([], CAKE, new)
    assert plan.episodes[0].evidence == (*(turn.id for turn in CAKE), new[0].id)
    assert [(fact.relation, fact.evidence) for fact in plan.facts] == [("lives_in", (new[0].id,))]


async def test_turns_without_a_sentence_give_an_empty_plan():
    plan = await ExtractiveEngine().create(turns_of("…", "😊"))
    assert (plan.engine, plan.episodes, plan.facts) == ("extractive", (), ())
    assert (await ExtractiveEngine().merge([], turns_of("!"), turns_of("?"))).episodes == ()


async def test_the_same_turns_give_the_same_plan():
    assert await ExtractiveEngine().create(CAKE) == await ExtractiveEngine().create(list(reversed(CAKE)))
