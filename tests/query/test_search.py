"""Search, context and answer over HTTP."""

from datetime import timedelta
from typing import get_args

import pytest

from lamina.sinks.in_memory import HashEmbedder, InMemoryStore
from lamina.streams.errors import EmbedderUnavailable, StoreUnavailable
from lamina.streams.metrics import RECALL_SECONDS
from lamina.streams.recall.options import Strategy
from lamina.streams.records import Link
from lamina.streams.settings import Settings

STRATEGIES = get_args(Strategy)


async def test_a_result_names_its_evidence_and_where_it_comes_from(world, http):
    turns = await world.said("Where did I leave the key?", "Your key is with Grace.", "Thanks")
    answer = await http.post("/v1/memories/search", json={"query": "key with Grace", "user_id": "ada"})
    assert answer.status_code == 200
    body = answer.json()
    assert body["strategy"] == "auto"
    best = body["results"][0]
    assert best["id"] == str(turns[1].id)
    assert best["evidence"] == [str(turns[0].id), str(turns[1].id)]
    assert set(best) == {
        "id", "kind", "text", "score", "tier", "session", "speaker", "said_at", "time_source", "valid_from",
        "valid_to", "engine", "evidence", "visible",
    }  # fmt: skip
    assert (best["kind"], best["tier"], best["session"], best["engine"]) == (
        "turn",
        "subconscious",
        "s1",
        "said",
    )
    assert "timings" not in body


async def test_turns_links_and_timings_come_when_asked_for(world, http):
    turns = await world.said("I keep bees", "How many hives?")
    fact = await world.derived("fact", "Ada keeps bees", turns)
    answer = await http.post(
        "/v1/memories/search",
        json={
            "query": "Ada keeps bees",
            "user_id": "ada",
            "include": ["turns", "links", "timings"],
            "kinds": ["fact"],
        },
    )
    (result,) = answer.json()["results"]
    assert result["id"] == str(fact.id)
    assert [turn["text"] for turn in result["turns"]] == ["I keep bees", "How many hives?"]
    assert {(link["source"], link["target"], link["type"]) for link in result["links"]} == {
        (str(fact.id), str(turn.id), "evidence") for turn in turns
    }
    assert set(answer.json()["timings"]) == {"embed", "search", "rank", "load"}


async def test_an_unknown_user_has_no_results(http):
    nobody = {"query": "anything", "user_id": "nobody"}
    search = await http.post("/v1/memories/search", json=nobody)
    context = await http.post("/v1/context", json=nobody)
    answer = await http.post("/v1/answer", json=nobody)
    assert (search.status_code, search.json()["results"]) == (200, [])
    assert context.json() == {"context": "", "citations": [], "tokens": 0}
    assert (answer.status_code, answer.json()["grounded"]) == (200, False)


@pytest.mark.parametrize("query", ["🔑🐝", "我把钥匙放在哪里了？", "key\x00", "x " * 10_000, "k" * 32_768])
async def test_any_question_up_to_the_limit_is_answered(world, http, query):
    await world.said("钥匙 在 邻居 那里", "🔑")
    for path in ("/v1/memories/search", "/v1/context", "/v1/answer"):
        answer = await http.post(path, json={"query": query, "user_id": "ada"})
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"query": ""}, "query", "empty"),
        ({"query": " \n "}, "query", "empty"),
        ({"query": "x" * 32_769}, "query", "32768"),
        ({"strategy": "magic"}, "strategy", "'tiers'"),
        ({"top_k": 0}, "top_k", "1"),
        ({"top_k": 1001}, "top_k", "1 to 1000"),
        ({"top_k": "ten"}, "top_k", "integer"),
        ({"max_tokens": 0}, "max_tokens", "1"),
        ({"kinds": ["dream"]}, "kinds.0", "'episode'"),
        ({"kinds": []}, "kinds", "at least 1"),
        ({"include": ["everything"]}, "include.0", "'links'"),
        ({"options": {"chain": {"betta": 1}}}, "options.chain.betta", "not permitted"),
        ({"options": {"chain": {"pool": 101}}}, "options.chain.pool", "100"),
        ({"options": {"topology": {"visibility": False}}}, "options", "benchmark"),
        ({"filters": {"runid": "x"}}, "filters.runid", "not permitted"),
        ({"tenant": "acme"}, "tenant", "not permitted"),
        ({"as_of": "soon"}, "as_of", "datetime"),
        (
            {"filters": {"said_from": "2026-01-02T00:00:00Z", "said_to": "2026-01-01"}},
            "filters.said_from",
            "later",
        ),
    ],
)
async def test_a_wrong_search_is_answered_with_the_field_and_what_is_allowed(http, changes, field, says):
    body = {"query": "key", "user_id": "ada", **changes}
    answer = await http.post("/v1/memories/search", json=body)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == field
    assert says in error["message"]


async def test_the_largest_top_k_is_a_setting(world):
    async with world.caller(Settings(top_k_max=5)) as http:
        answer = await http.post("/v1/memories/search", json={"query": "x", "user_id": "ada", "top_k": 6})
    assert answer.status_code == 422
    assert "1 to 5" in answer.json()["detail"]


async def test_filters_narrow_by_session_speaker_and_time(world, http):
    one = await world.said("bees one", "bees two", session="s1")
    two = await world.said("bees three", session="s2", start=one[0].said_at + timedelta(days=1))

    async def ids(**filters):
        body = {"query": "bees", "user_id": "ada", "filters": filters}
        answer = await http.post("/v1/memories/search", json=body)
        return {result["id"] for result in answer.json()["results"]}

    assert await ids(run_id="s2") == {str(two[0].id)}
    assert await ids(speaker="assistant") == {str(one[1].id)}
    assert await ids(said_from=two[0].said_at.isoformat()) == {str(two[0].id)}
    assert str(two[0].id) not in await ids(said_to=one[1].said_at.isoformat())
    assert await ids(run_id="s3") == set()


async def test_as_of_shows_what_was_known_then(world, http):
    turns = await world.said("I live in Bonn", "Nice town")
    later = await world.said("I moved to Kiel", session="s2", start=turns[0].said_at + timedelta(days=30))
    old = await world.derived("fact", "Ada lives in Bonn", turns, valid_from=turns[0].said_at)
    new = await world.derived("fact", "Ada lives in Kiel", later, valid_from=later[0].said_at)
    body = {"query": "Ada lives in Kiel", "user_id": "ada"}

    async def ids(**changes):
        answer = await http.post("/v1/memories/search", json={**body, **changes})
        return {result["id"] for result in answer.json()["results"]}

    then = (turns[1].said_at + timedelta(days=1)).isoformat()
    assert {str(new.id), str(later[0].id)} <= await ids()
    known = await ids(as_of=then)
    assert str(old.id) in known
    assert not {str(new.id), str(later[0].id)} & known
    context = await http.post("/v1/context", json={**body, "as_of": then})
    assert "Kiel" not in context.json()["context"]
    answer = await http.post("/v1/answer", json={**body, "as_of": then})
    assert "Kiel" not in str(answer.json())


async def test_a_search_keeps_to_its_token_budget(world, http):
    await world.said("bees " * 100, "bees are fine")
    body = {"query": "bees", "user_id": "ada", "kinds": ["turn"], "max_tokens": 10}
    results = (await http.post("/v1/memories/search", json=body)).json()["results"]
    assert sum(-(-len(result["text"].encode()) // 4) for result in results) <= 10


async def test_context_is_within_its_budget_and_cites_what_it_says(world, http):
    turns = await world.said(*(f"bees and hive number {number}" for number in range(20)))
    fact = await world.derived("fact", "Ada has twenty hives of bees", turns[:2])
    for most in (1, 40, 100, 1000):
        body = {"query": "bees in the hive", "user_id": "ada", "max_tokens": most}
        packed = (await http.post("/v1/context", json=body)).json()
        assert packed["tokens"] <= most
        assert len(packed["context"]) / 4 <= most
        assert all(citation["id"] in packed["context"] for citation in packed["citations"])
    assert packed["context"].startswith("Facts:")
    assert packed["citations"][0]["id"] == str(fact.id)


async def test_context_takes_a_conversation_instead_of_a_query(world, http):
    await world.said("my sister is called Lena", "Noted")
    messages = [
        {"role": "user", "content": "what is my sister called"},
        {"role": "assistant", "content": "let me see"},
    ]
    answer = await http.post("/v1/context", json={"messages": messages, "user_id": "ada"})
    assert "Lena" in answer.json()["context"]


@pytest.mark.parametrize(
    "changes",
    [{}, {"query": "x", "messages": [{"role": "user", "content": "x"}]}, {"messages": []},
     {"messages": [{"role": "user", "content": " "}]}, {"query": "x", "max_tokens": 0}],
)  # fmt: skip
async def test_context_needs_exactly_one_question(http, changes):
    assert (await http.post("/v1/context", json={"user_id": "ada", **changes})).status_code == 422


async def test_an_answer_names_the_turns_it_rests_on(world, http):
    turns = await world.said("Where is the spare key?", "The spare key is with Grace next door.")
    answer = await http.post("/v1/answer", json={"query": "Who has the spare key?", "user_id": "ada"})
    body = answer.json()
    assert body["grounded"] is True
    assert "Grace" in body["answer"]
    assert str(turns[1].id) in {turn["id"] for turn in body["evidence"]}
    assert set(body["evidence"][0]) == {"id", "speaker", "text", "said_at"}


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_every_strategy_searches_packs_and_answers(world, http, strategy):
    turns = await world.said("Where is the spare key?", "The spare key is with Grace next door.")
    body = {"query": "Who has the spare key?", "user_id": "ada", "strategy": strategy}
    search = await http.post("/v1/memories/search", json={**body, "include": ["why", "timings"]})
    assert search.json()["strategy"] == strategy
    results = search.json()["results"]
    assert str(turns[1].id) in {turn for result in results for turn in result["evidence"]}
    assert all("cosine" in result["why"] for result in results)
    assert {"embed", "search", "load"} <= set(search.json()["timings"])
    context = await http.post("/v1/context", json=body)
    assert "Grace" in context.json()["context"]
    answer = await http.post("/v1/answer", json=body)
    assert "Grace" in answer.json()["answer"]
    for stage in search.json()["timings"]:
        line = f'{RECALL_SECONDS.name}_count{{stage="{stage}",strategy="{strategy}"}} 3.0'
        assert line in (await http.get("/metrics")).text


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_every_strategy_answers_a_user_without_memories(http, strategy):
    nobody = {"query": "before May 2023?", "user_id": "nobody", "strategy": strategy}
    assert (await http.post("/v1/memories/search", json=nobody)).json()["results"] == []
    assert (await http.post("/v1/context", json=nobody)).json()["context"] == ""
    assert (await http.post("/v1/answer", json=nobody)).json()["grounded"] is False


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("query", ["🔑🐝", "我把钥匙放在哪里了？", "what is it", "x " * 10_000, "k" * 32_768])
async def test_every_strategy_takes_any_question_up_to_the_limit(world, http, query, strategy):
    await world.said("钥匙 在 邻居 那里", "🔑")
    body = {"query": query, "user_id": "ada", "strategy": strategy}
    answer = await http.post("/v1/memories/search", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["results"]


async def test_reasons_come_only_when_asked_for(world, http):
    await world.said("I keep bees")
    body = {"query": "bees", "user_id": "ada", "strategy": "chain"}
    (result,) = (await http.post("/v1/memories/search", json=body)).json()["results"]
    assert "why" not in result


async def test_what_is_archived_comes_in_by_a_link_and_is_marked(world, http):
    turns = await world.said("I live in Bonn")
    now = await world.derived("fact", "Ada lives in Kiel", turns)
    before = await world.derived("fact", "Ada lived in Bonn once", turns, visible=False)
    async with world.tables.transaction([now.namespace]) as tx:
        await tx.insert_links(
            [Link(namespace=now.namespace, source=now.id, target=before.id, type="version")]
        )
    body = {"query": "Where does Ada live?", "user_id": "ada", "strategy": "topology"}
    results = (await http.post("/v1/memories/search", json={**body, "include": ["why"]})).json()["results"]
    told = {result["id"]: result for result in results}
    assert [told[str(unit.id)]["visible"] for unit in (now, before)] == [True, False]
    assert told[str(before.id)]["why"]["by"] == "version"
    assert told[str(before.id)]["why"]["archived"] == 1
    context = (await http.post("/v1/context", json=body)).json()["context"]
    assert f"(archived) · fact · {before.id}]" in context
    alone = {**body, "options": {"topology": {"recovery": False}}}
    results = (await http.post("/v1/memories/search", json=alone)).json()["results"]
    assert str(before.id) not in {result["id"] for result in results}


async def test_a_dependency_that_is_away_is_said_to_be_away(world):
    class NoEmbedder(HashEmbedder):
        async def embed(self, texts):
            raise EmbedderUnavailable("the endpoint asks us to wait", retry_after=7)

    class NoStore(InMemoryStore):
        async def search(self, queries):
            raise StoreUnavailable("the store does not answer")

    body = {"query": "x", "user_id": "ada"}
    async with world.caller(embedder=NoEmbedder()) as http:
        answer = await http.post("/v1/memories/search", json=body)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "7")
    async with world.caller(store=NoStore()) as http:
        answer = await http.post("/v1/context", json=body)
        assert (answer.status_code, answer.json()["reason"]) == (503, "store_unavailable")


async def test_a_memory_is_shown_by_its_id_with_its_links(world, http):
    turns = await world.said("I keep bees", "How many?")
    fact = await world.derived(
        "fact", "Ada keeps bees", turns, subject="Ada", relation="keeps", object="bees"
    )
    for unit, suffix in ((fact, "?user_id=ada"), (turns[0], "?user_id=ada"), (turns[0], "")):
        memory = (await http.get(f"/v1/memories/{unit.id}{suffix}")).json()
        assert (memory["id"], memory["text"], memory["user_id"]) == (str(unit.id), unit.text, "ada")
    assert (await http.get(f"/v1/memories/{fact.id}")).json()["user_id"] == "ada"
    assert (await http.get(f"/v1/memories/{fact.id}?user_id=bo")).status_code == 404
    links = (await http.get(f"/v1/memories/{fact.id}/links?user_id=ada")).json()["links"]
    assert {(link["source"], link["target"]) for link in links} == {
        (str(fact.id), str(turn.id)) for turn in turns
    }
