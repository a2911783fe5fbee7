"""One tenant never sees another; the tenant comes from the key alone."""

import pytest

from lamina.query.auth import tenant_for
from lamina.streams.settings import Settings

KEYS = {"key-of-acme": "acme", "key-of-globex": "globex", "ключ": "cyrillic"}
SETTINGS = Settings(api_keys=KEYS)


def key(name):
    return {"Authorization": f"Bearer key-of-{name}"}


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({}, "no API key"),
        ({"Authorization": "Bearer wrong"}, "not known"),
        ({"Authorization": "Bearer key-of-acm"}, "not known"),
        ({"Authorization": "Basic key-of-acme"}, "no API key"),
        ({"X-API-Key": "wrong"}, "not known"),
        ({"X-API-Key": ""}, ""),
        ({"Authorization": "Bearer wrong", "X-API-Key": "key-of-acme"}, "not known"),
    ],
)
async def test_without_a_valid_key_every_door_is_shut(world, headers, says):
    some_id = "00000000-0000-0000-0000-000000000000"
    async with world.caller(SETTINGS) as http:
        answers = [
            await http.post("/v1/memories", headers=headers),
            await http.post("/v1/memories/search", json={}, headers=headers),
            await http.post("/v1/context", json={}, headers=headers),
            await http.post("/v1/answer", json={}, headers=headers),
            await http.get(f"/v1/events/{some_id}", headers=headers),
            await http.get(f"/v1/memories/{some_id}", headers=headers),
            await http.get(f"/v1/memories/{some_id}/links", headers=headers),
        ]
    for answer in answers:
        assert answer.status_code == 401
        assert says in answer.json()["detail"]
        assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_both_headers_carry_a_key(world):
    body = {"query": "x", "user_id": "ada"}
    async with world.caller(SETTINGS) as http:
        for headers in (key("acme"), {"X-API-Key": "key-of-acme"}):
            answer = await http.post("/v1/memories/search", json=body, headers=headers)
            assert answer.status_code == 200


def test_a_key_opens_its_own_tenant_only():
    assert tenant_for("key-of-acme", KEYS) == "acme"
    assert tenant_for("ключ", KEYS) == "cyrillic"
    assert tenant_for("", KEYS) is None


async def test_probes_and_metrics_need_no_key(world):
    async with world.caller(SETTINGS) as http:
        for path in ("/health/live", "/health/ready", "/metrics", "/openapi.json"):
            assert (await http.get(path)).status_code == 200


async def test_two_tenants_with_the_same_user_share_nothing(world):
    body = {
        "messages": [{"role": "user", "content": "canary swordfish", "message_id": "m1"}],
        "user_id": "ada",
        "idempotency_key": "k",
    }
    async with world.caller(SETTINGS, accept_rows=True) as http:
        acme = (await http.post("/v1/memories", json=body, headers=key("acme"))).json()
        globex = await http.post("/v1/memories", json=body, headers=key("globex"))
        assert globex.status_code == 202
        assert acme["event_id"] != globex.json()["event_id"]
        assert acme["turn_ids"] != globex.json()["turn_ids"]
        assert [record.key for record in world.publisher.records] == ["acme/ada", "globex/ada"]

        (turn,) = await world.said("canary swordfish", tenant="acme")
        fact = await world.derived("fact", "canary fact", [turn])
        for path in ("/v1/memories/search", "/v1/context", "/v1/answer"):
            question = {"query": "canary swordfish", "user_id": "ada"}
            mine = await http.post(path, json=question, headers=key("acme"))
            theirs = await http.post(path, json=question, headers=key("globex"))
            assert str(turn.id) in mine.text
            assert theirs.status_code == 200
            assert "canary" not in theirs.text
        for path in (
            f"/v1/events/{acme['event_id']}",
            f"/v1/events/{turn.id}",
            f"/v1/memories/{turn.id}",
            f"/v1/memories/{turn.id}/links",
            f"/v1/memories/{fact.id}?user_id=ada",
            f"/v1/memories/{fact.id}/links?user_id=ada",
        ):
            assert (await http.get(path, headers=key("acme"))).status_code == 200
            assert (await http.get(path, headers=key("globex"))).status_code == 404


@pytest.mark.parametrize("user", ["../globex/ada", "acme/ada", "%2e%2e", "ada\nx", "用户"])
async def test_no_user_id_reaches_out_of_its_tenant(world, user):
    body = {"messages": [{"role": "user", "content": "x"}], "user_id": user}
    async with world.caller(SETTINGS) as http:
        answer = await http.post("/v1/memories", json=body, headers=key("acme"))
    assert answer.status_code == 202
    (record,) = world.publisher.records
    assert record.key.startswith("acme/")
    assert record.key.count("/") == 1
