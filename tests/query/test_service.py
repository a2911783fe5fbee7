"""Health, metrics, OpenAPI, and faults nobody foresaw."""

import pytest
from openapi_spec_validator import validate

from lamina.sinks.in_memory import InMemoryStore
from lamina.streams.errors import StoreUnavailable, TablesUnavailable


async def test_live_asks_nothing(world):
    class Broken:
        def __getattr__(self, name):
            raise AssertionError(f"{name} was asked")

    async with world.caller(tables=Broken(), store=Broken(), embedder=Broken()) as http:
        answer = await http.get("/health/live")
    assert (answer.status_code, answer.json()) == (200, {"status": "live"})


async def test_ready_names_what_is_not(world):
    class Away(InMemoryStore):
        async def count(self):
            raise StoreUnavailable("the store does not answer")

    async def lagging():
        return {"lag": "12 records behind", "broker": True}

    async with world.caller() as http:
        answer = await http.get("/health/ready")
        assert (answer.status_code, answer.json()) == (
            200,
            {"ready": True, "checks": {"tables": True, "store": True}},
        )
    async with world.caller(store=Away(), readiness=lagging) as http:
        answer = await http.get("/health/ready")
    assert answer.status_code == 503
    assert answer.json() == {
        "ready": False,
        "checks": {
            "tables": True,
            "store": "the store does not answer",
            "lag": "12 records behind",
            "broker": True,
        },
    }


async def test_a_hook_that_fails_is_not_ready_and_live_stays(world):
    async def away():
        raise TablesUnavailable("locked")

    async with world.caller(readiness=away) as http:
        assert (await http.get("/health/ready")).json()["checks"]["pipeline"] == "locked"
        assert (await http.get("/health/live")).status_code == 200


async def test_requests_and_recall_are_measured_by_template_never_by_id(world, http):
    some_id = "00000000-0000-0000-0000-000000000000"
    await http.get(f"/v1/memories/{some_id}")
    await http.get("/v1/nowhere/at/all")
    await http.post("/v1/memories/search", json={"query": "x", "user_id": "ada"})
    page = await http.get("/metrics")
    assert page.headers["Content-Type"].startswith("text/plain")
    assert 'lamina_request_seconds_count{route="/v1/memories/{memory_id}",status="404"} 1.0' in page.text
    assert 'lamina_request_seconds_count{route="unmatched",status="404"} 1.0' in page.text
    for stage in ("embed", "search", "rank", "load"):
        assert f'lamina_recall_seconds_count{{stage="{stage}",strategy="auto"}} 1.0' in page.text
    assert some_id not in page.text
    assert "nowhere" not in page.text


async def test_openapi_is_valid_and_tells_every_route(http):
    document = (await http.get("/openapi.json")).json()
    validate(document)
    assert set(document["paths"]) == {
        "/v1/memories", "/v1/memories/search", "/v1/context", "/v1/answer", "/v1/events/{event_id}",
        "/v1/memories/{memory_id}", "/v1/memories/{memory_id}/links", "/metrics", "/health/live",
        "/health/ready", "/v1/chat/completions", "/v1/models",
    }  # fmt: skip
    in_openai_s_words = {"/v1/chat/completions", "/v1/models"}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["summary"]
            if path in in_openai_s_words:
                problem = operation["responses"]["401"]["content"]["application/json"]["schema"]
                assert problem["$ref"].endswith("/OpenAIError")
                assert operation["security"]
            elif path.startswith("/v1"):
                assert {"401", "422", "503"} <= set(operation["responses"])
                problem = operation["responses"]["422"]["content"]["application/json"]["schema"]
                assert problem["$ref"].endswith("/Problem")
                assert operation["security"]
    assert "HTTPValidationError" not in document["components"]["schemas"]
    schemas = document["components"]["schemas"]
    known = ["auto", "tiers", "adaptive", "topology", "chain"]
    for body, more in (("Search", []), ("ContextRequest", []), ("Ask", ["deep"])):
        strategy = schemas[body]["properties"]["strategy"]
        named = strategy.get("enum") or [name for part in strategy["anyOf"] for name in names_of(part)]
        assert (named, strategy["default"]) == (known + more, "auto")
    assert set(schemas["Options"]["properties"]) == {*known, "deep"}


def names_of(schema):
    return schema.get("enum") or [schema["const"]]


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nowhere", 404), ("PUT", "/v1/memories", 405)]
)
async def test_wrong_addresses_have_the_same_shape_of_answer(http, method, path, status):
    answer = await http.request(method, path)
    assert answer.status_code == status
    assert set(answer.json()) == {"detail", "reason", "errors"}


async def test_an_unknown_fault_tells_the_caller_nothing_but_that_it_happened(world):
    class Odd(InMemoryStore):
        async def search(self, queries):
            raise RuntimeError("secret detail")

    async with world.caller(store=Odd()) as http:
        answer = await http.post("/v1/memories/search", json={"query": "x", "user_id": "ada"})
        page = await http.get("/metrics")
    assert answer.status_code == 500
    assert answer.json()["reason"] == "internal_error"
    assert "secret" not in answer.text
    assert 'route="/v1/memories/search",status="500"' in page.text
