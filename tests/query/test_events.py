"""What became of a request: from accepted to a terminal state, and only for its own tenant."""

from uuid import uuid4

import pytest

from lamina.query.events import overall
from lamina.streams.namespace import namespace_of
from lamina.streams.records import Status

ADA = namespace_of("local", "ada")
BODY = {
    "messages": [{"role": "user", "content": "I keep bees."}, {"role": "assistant", "content": "How many?"}],
    "user_id": "ada",
}


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["accepted", "consolidated"], "accepted"),
        (["admitted", "remembered"], "accepted"),
        (["gated", "gated"], "gated"),
        (["gated", "consolidated"], "consolidated"),
        (["gated", "remembered"], "remembered"),
        (["remembered", "consolidated"], "remembered"),
        (["consolidated", "consolidated"], "consolidated"),
        (["failed", "accepted"], "failed"),
        (["failed", "gated"], "failed"),
    ],
)
def test_a_request_is_summed_up_by_its_turns(statuses, expected):
    assert overall([Status(status) for status in statuses]) == expected


async def test_turns_that_the_gate_has_not_seen_are_accepted(http):
    accepted = (await http.post("/v1/memories", json=BODY)).json()
    state = (await http.get(f"/v1/events/{accepted['event_id']}")).json()
    assert state["status"] == "accepted"
    assert [turn["id"] for turn in state["turns"]] == accepted["turn_ids"]
    assert {turn["status"] for turn in state["turns"]} == {"accepted"}


async def test_an_event_tells_scores_reasons_and_the_memories_that_rest_on_its_turns(world):
    async with world.caller(accept_rows=True) as http:
        accepted = (await http.post("/v1/memories", json=BODY)).json()
        units = await world.units_of(ADA, accepted["turn_ids"])
        kept, gated = (units[key] for key in sorted(units, key=lambda key: units[key].ordinal))
        async with world.tables.transaction([ADA]) as tx:
            await tx.update_units(
                [
                    kept.model_copy(update={"status": Status.CONSOLIDATED, "score": 0.9, "visible": True}),
                    gated.model_copy(update={"status": Status.GATED, "score": 0.1, "reason": "phatic"}),
                ]
            )
        fact = await world.derived("fact", "Ada keeps bees.", [kept])
        before = (await http.get(f"/v1/events/{kept.id}")).json()
        assert before["status"] == "accepted", "what cannot be found yet is not done"
        async with world.tables.transaction([ADA]) as tx:
            await tx.mark_indexed([kept])
        state = (await http.get(f"/v1/events/{accepted['event_id']}")).json()
        one = (await http.get(f"/v1/events/{kept.id}")).json()
    assert state["status"] == "consolidated"
    assert state["turns"] == [
        {
            "id": str(kept.id),
            "status": "consolidated",
            "score": 0.9,
            "reason": None,
            "memories": [str(fact.id)],
        },
        {"id": str(gated.id), "status": "gated", "score": 0.1, "reason": "phatic", "memories": []},
    ]
    assert one["turns"] == state["turns"][:1]


async def test_an_unknown_event_is_not_found(http):
    answer = await http.get(f"/v1/events/{uuid4()}")
    assert answer.status_code == 404
    assert "no event" in answer.json()["detail"]


async def test_an_event_id_that_is_none_is_refused(http):
    assert (await http.get("/v1/events/nonsense")).status_code == 422
