"""What holds no longer among what was found, and what holds in its place: over real tables."""

from datetime import timedelta

from lamina.streams.recall.context import pack
from lamina.streams.recall.found import TIERS, Found
from lamina.streams.recall.standing import standing

from .recall_kit import ADA, NOON, a_unit, archived


def day(number):
    return NOON + timedelta(days=number)


def found(unit, *turns):
    return Found(unit, 0.5, TIERS[unit.kind], turns or (unit,))


def lives(where, turn, since, until=None, **fields):
    name = f"lives in {where} since {since}"
    make = a_unit if until is None else archived
    return make(
        name,
        **{
            "kind": "fact",
            "subject": "Ada",
            "relation": "lives_in",
            "object": where,
            "evidence": (turn.id,),
            "said_at": turn.said_at,
            "valid_from": day(since),
            "valid_to": None if until is None else day(until),
            **fields,
        },
    )


def turn(text, number):
    return a_unit(text, said_at=day(number))


async def moved(memory):
    """Bonn, from day 10 Kiel, from day 20 Porto: three facts, each on its turn."""
    turns = [turn("I live in Bonn", 0), turn("I moved to Kiel", 10), turn("I moved to Porto", 20)]
    bonn = lives("Bonn", turns[0], 0, 10)
    kiel = lives("Kiel", turns[1], 10, 20)
    porto = lives("Porto", turns[2], 20)
    await memory.keep(*((unit, None) for unit in (*turns, bonn, kiel, porto)))
    for fact, said in zip((bonn, kiel, porto), turns, strict=True):
        await memory.link((fact.text, "evidence", said.text))
    await memory.link((kiel.text, "version", bonn.text), (porto.text, "version", kiel.text))
    await memory.link((porto.text, "version", bonn.text))
    return turns, (bonn, kiel, porto)


async def test_a_fact_that_was_replaced_knows_its_end_and_what_holds_now(memory):
    _, (bonn, _, porto) = await moved(memory)
    told = await standing([found(bonn), found(porto)], ADA, memory.tables, None)
    (ended,) = told.ended.values()
    assert (ended.unit.id, ended.until, ended.now.id) == (bonn.id, day(10), porto.id)


async def test_a_turn_knows_what_of_it_holds_no_longer(memory):
    turns, (bonn, kiel, porto) = await moved(memory)
    told = await standing([found(turns[0]), found(turns[2])], ADA, memory.tables, None)
    ((turn_id, stated),) = told.stated.items()
    assert (turn_id, [one.unit.id for one in stated]) == (turns[0].id, [bonn.id])
    # the other turn of a found exchange counts too
    told = await standing([found(turns[2], turns[1], turns[2])], ADA, memory.tables, None)
    assert [one.now.id for one in told.stated[turns[1].id]] == [porto.id]
    assert set(told.ended) == {kiel.id}


async def test_as_of_a_time_what_came_later_has_ended_nothing(memory):
    turns, (bonn, kiel, _) = await moved(memory)
    told = await standing([found(bonn), found(turns[0])], ADA, memory.tables, day(5))
    assert (told.ended, told.stated) == ({}, {})
    told = await standing([found(bonn), found(turns[0])], ADA, memory.tables, day(15))
    assert told.ended[bonn.id].now.id == kiel.id
    assert told.ended[bonn.id].until == day(10)


async def test_as_of_a_time_the_fact_that_held_then_comes_with_its_turn(memory):
    turns, (bonn, kiel, _) = await moved(memory)
    told = await standing([found(turns[0])], ADA, memory.tables, day(5))
    packed = pack([found(turns[0])], 1000, standing=told)
    assert [unit.text for unit in packed.citations] == [bonn.text, turns[0].text]
    assert "until" not in packed.text
    told = await standing([found(turns[0]), found(turns[1])], ADA, memory.tables, day(15))
    packed = pack([found(turns[0]), found(turns[1])], 1000, standing=told)
    assert [unit.text for unit in packed.citations] == [kiel.text, turns[0].text, turns[1].text]
    assert (await standing([found(turns[0])], ADA, memory.tables, None)).held == {}


async def test_as_of_counts_from_when_the_change_was_said(memory):
    """The move of day 10 is told on day 30 only: on day 15 nobody could know."""
    said, late = turn("I live in Bonn", 0), turn("I moved to Kiel on day 10", 30)
    bonn, kiel = lives("Bonn", said, 0, 10), lives("Kiel", late, 10)
    await memory.keep(*((unit, None) for unit in (said, late, bonn, kiel)))
    await memory.link((kiel.text, "version", bonn.text))
    assert (await standing([found(bonn)], ADA, memory.tables, day(15))).ended == {}
    assert set((await standing([found(bonn)], ADA, memory.tables, day(31))).ended) == {bonn.id}


async def test_what_is_said_again_holds_again(memory):
    turns = [turn("I live in Bonn", 0), turn("I moved to Kiel", 10), turn("Back in Bonn", 20)]
    facts = [lives("Bonn", turns[0], 0, 10), lives("Kiel", turns[1], 10, 20), lives("Bonn", turns[2], 20)]
    await memory.keep(*((unit, None) for unit in (*turns, *facts)))
    first, second, third = (fact.text for fact in facts)
    await memory.link((second, "version", first), (third, "version", first), (third, "version", second))
    await memory.link((first, "evidence", turns[0].text))
    told = await standing([found(turns[0]), found(facts[1])], ADA, memory.tables, None)
    assert set(told.ended) == {facts[1].id}
    assert told.stated == {}


async def test_a_fact_that_nothing_replaced_ends_at_its_time(memory):
    said = turn("Ada's visa", 0)
    visa = lives("visa", said, 0, 10)
    await memory.keep((said, None), (visa, None))
    assert (await standing([found(visa)], ADA, memory.tables, None)).ended[visa.id].now is None
    assert (await standing([found(visa)], ADA, memory.tables, day(5))).ended == {}


async def test_nothing_found_reads_nothing():
    told = await standing([], ADA, None, None)
    assert (told.ended, told.stated) == ({}, {})


async def test_merged_memories_have_not_ended(memory):
    said = turn("I live in Bonn", 0)
    gone = lives("Bonn", said, 0, visible=False)
    await memory.keep((said, None), (gone, None))
    await memory.link((gone.text, "evidence", said.text))
    assert (await standing([found(said), found(gone)], ADA, memory.tables, None)).ended == {}
