"""Blocks for a prompt over HTTP: what holds no longer, what holds then, what disagrees."""

from datetime import timedelta

import pytest

from lamina.streams.records import Link

LIVES = {"subject": "Ada", "relation": "lives_in"}
WHERE = {"query": "Where does Ada live?", "user_id": "ada", "strategy": "tiers"}


async def block(http, **changes):
    answer = await http.post("/v1/context", json={**WHERE, **changes})
    assert answer.status_code == 200, answer.text
    return answer.json()["context"]


@pytest.fixture
async def moved(world):
    """Ada lives in Bonn, and a month later in Kiel: the time of the move."""
    before = await world.said("I live in Bonn", "Nice")
    after = await world.said("I moved to Kiel", session="s2", start=before[0].said_at + timedelta(days=30))
    moved = after[0].said_at
    old = await world.derived(
        "fact", "Ada lives in Bonn", before[:1], object="Bonn", **LIVES,
        valid_from=before[0].said_at, valid_to=moved, visible=False,
    )  # fmt: skip
    new = await world.derived("fact", "Ada lives in Kiel", after, object="Kiel", **LIVES, valid_from=moved)
    async with world.tables.transaction([new.namespace]) as tx:
        await tx.insert_links([Link(namespace=new.namespace, source=new.id, target=old.id, type="version")])
    return moved


async def test_a_turn_says_that_its_fact_holds_no_longer(http, moved):
    lines = (await block(http)).splitlines()
    assert [line.split("] ")[-1] for line in lines if line.startswith("[")] == [
        "Ada lives in Kiel",
        f"I live in Bonn (Bonn: until {moved.date()}; now: Kiel)",
        "Nice",
        "I moved to Kiel",
    ]


async def test_before_the_move_the_fact_that_held_then_is_shown_as_valid(http, moved):
    then = await block(http, as_of=(moved - timedelta(days=1)).isoformat())
    assert "] Ada lives in Bonn\n" in then
    assert "Kiel" not in then
    assert "until" not in then
    assert "archived" not in then


async def test_what_links_lead_to_is_marked_or_gives_way(http, moved):
    marked = await block(http, strategy="topology")
    assert f"] Ada lives in Bonn (until {moved.date()}; now: Kiel)" in marked
    assert "(archived)" not in marked
    left_out = await block(http, strategy="topology", superseded="leave_out")
    assert "Ada lives in Bonn" not in left_out
    assert left_out.count("Ada lives in Kiel") == 1


async def test_visible_facts_that_disagree_are_named(world, http):
    one, two = await world.said("I live in Bonn", "You said Kiel before")
    await world.derived("fact", "Ada lives in Bonn", [one], object="Bonn", **LIVES, valid_from=one.said_at)
    await world.derived("fact", "ada lives in Kiel", [two], object="Kiel", **LIVES, valid_from=two.said_at)
    assert "\nConflict: Ada, lives in: Bonn (since 2026-03-01) or Kiel (since 2026-03-01)\n" in await block(
        http
    )


async def test_relative_dates_are_resolved_unless_told_not_to(world, http):
    await world.said("I moved yesterday")
    assert "I moved yesterday (2026-02-28)" in await block(http)
    assert (await block(http, dates="as_said")).endswith("] I moved yesterday")


async def test_chains_keep_together(world, http):
    await world.said("I live in Bonn", "Where does Ada live?", "Ada does live near the sea", "Tea is fine")
    text = await block(http, strategy="chain", options={"chain": {"anchors": 2, "context": "mean"}})
    assert text.startswith("Chain 1:\n[")
    turns = [line.split(" · ")[-1] for line in text.splitlines() if line.startswith("[")]
    assert len(turns) == len(set(turns)) > 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"superseded": "hide"}, "superseded"),
        ({"dates": "iso"}, "dates"),
        ({"options": {"x": 1}}, "options.x"),
    ],
)
async def test_a_wrong_option_is_named(http, changes, field):
    answer = await http.post("/v1/context", json={**WHERE, **changes})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field
