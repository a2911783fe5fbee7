"""Odd questions over HTTP and real parts, for every strategy: a useful answer or a clear refusal."""

from datetime import UTC, datetime
from typing import get_args
from uuid import uuid5

import pytest
import pytest_asyncio

from lamina.streams.namespace import namespace_of
from lamina.streams.recall.options import Strategy
from lamina.streams.records import Status, Unit

from .conftest import NOON, ROOT
from .odd_kit import real_world, texts

pytestmark = pytest.mark.asyncio(loop_scope="module")

STRATEGIES = get_args(Strategy)
ROUTES = ("/v1/memories/search", "/v1/context", "/v1/answer")
CANARY = "canary swordfish"
TULIPS = "I planted tulips in the back garden."
CAT = "I adopted a grey cat called Miso."
TRIP = "Our trip to Lisbon was wonderful, we ate custard tarts every day."
LESSONS = "I have been taking Portuguese lessons with a tutor."
KEY = "我把备用钥匙放在邻居李雷那里了。"
SHED = "The spare key to the shed hangs behind the clock."
BEES = "🐝🍯"
MINUTES = "The committee met in the town hall and talked about roads, drains and lamps. "


def pasted(length: int, *, before: str = "", after: str = "") -> str:
    """Return a text of that length that says nothing, with a question before or behind it."""
    room = length - len(before) - len(after)
    return f"{before}{(MINUTES * (room // len(MINUTES) + 1))[:room]}{after}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory, weights_cache):
    """A year of Ada's, and what others said, in real parts."""
    async with real_world(tmp_path_factory.mktemp("odd"), weights_cache) as world:
        await world.told(
            ("2023-03-20", "ada", TULIPS),
            ("2023-03-20", "Grace", "Lovely, which colours did you pick?"),
            ("2023-03-20", "ada", "Red and yellow ones."),
            ("2023-05-04", "ada", CAT),
            ("2023-05-04", "Grace", "What a sweet name!"),
            ("2023-07-10", "ada", TRIP),
            ("2023-08-02", "ada", LESSONS),
            ("2023-09-05", "ada", KEY),
            ("2023-09-12", "ada", SHED),
            ("2023-09-20", "ada", BEES),
            ("2023-09-20", "Grace", "Are those your bees? How many hives do you keep?"),
            ("2023-09-20", "ada", "Three hives, near the orchard."),
        )
        for owner in ({"user": "bo"}, {"tenant": "globex"}):
            await world.told(("2023-05-04", "Zoe", f"{CANARY} cat key bees tulips 钥匙 🐝 Miso"), **owner)
        yield world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http(world):
    """A caller of the service over these parts."""
    async with world.caller() as caller:
        yield caller


async def answers(http, strategy: str, query: str, **changes) -> list[str]:
    """Ask on every route; return the texts that a search finds, best first."""
    body = {"query": query, "user_id": "ada", "strategy": strategy, **changes}
    search, context, answer = [await http.post(path, json=body) for path in ROUTES]
    for response in (search, context, answer):
        assert response.status_code == 200, response.text
        assert CANARY not in response.text
    found = texts(search.json()["results"])
    assert bool(found) == bool(context.json()["context"])
    given = answer.json()
    assert given["grounded"] == bool(given["evidence"])
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("user", ["nobody", "globex/ada", "../globex/ada", "🐝", "\x00", "\u202eada", "ada "])
async def test_a_user_without_memories_gets_nothing_of_anyone(http, strategy, user):
    assert await answers(http, strategy, "What is the canary called, before May 2023?", user_id=user) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("query", "best"),
    [
        (BEES, BEES),
        ("备用钥匙在哪里？", KEY),
        ("李雷", KEY),
        ("Where is the spare key to the shed?", SHED),
        ("\u202eWhat is my cat Miso?\u202c", CAT),
        ("my c\u200bat ca\u200blled Miso", CAT),
        ("\ufeffmy cat called Miso", CAT),
        ("\x00\x01my cat\x07 called \x1b[31mMiso", CAT),
        ("my cat called Miso \uffff \ufdd0", CAT),
        ("What happened since the trip to Lisbon?", TRIP),
        (pasted(20_000, before="What is my grey cat called, Miso? "), CAT),
        (pasted(32_768, before="What is my grey cat called, Miso? "), CAT),
    ],
)
async def test_an_odd_question_finds_what_it_asks_for(http, strategy, query, best):
    found = await answers(http, strategy, query)
    assert best in found[:3]


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_what_is_asked_behind_a_pasted_text_counts(http, strategy):
    found = await answers(http, strategy, pasted(20_000, after=" What is my grey cat called, Miso?"))
    # With late interaction every token of the pasted text has its say too.
    assert CAT in (found[:1] if strategy != "auto" else found)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "query",
    [
        "🚀🚀🚀",
        "what is it that you are and will be",
        "the",
        "?!… --- …",
        "\u200b\u200b",
        "أين المفتاح؟",
        "Grace",
        "Ada and Grace and Li Lei and Zoe",
        "1" * 20_000,
        "k" * 32_768,
        "e" + "\u0301" * 5_000,
        pasted(20_000),
        "on 3 May 2023, " * 1_300,
        "What happened on 30 February 2023?",
        "What happened on 2023-02-31 or 0000-00-00?",
        "What happened before 0001-01-01?",
        "What will happen in the week of 9999-12-30?",
        "What happened 999 years ago, and what will happen in 999 years?",
    ],
)
async def test_a_question_that_asks_for_nothing_in_particular_is_answered(http, strategy, query):
    assert await answers(http, strategy, query)


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_small_and_large_limits_are_kept(http, strategy):
    async def search(**changes):
        body = {"query": "my cat called Miso", "user_id": "ada", "strategy": strategy, **changes}
        answer = await http.post("/v1/memories/search", json=body)
        assert answer.status_code == 200, answer.text
        return texts(answer.json()["results"])

    assert await search(top_k=1) == [CAT]
    assert CAT in await search(top_k=1000)
    assert await search(max_tokens=1) == []
    tight = {"query": "my cat called Miso", "user_id": "ada", "strategy": strategy, "max_tokens": 1}
    context = (await http.post("/v1/context", json=tight)).json()
    assert (context["context"], context["citations"], context["tokens"]) == ("", [], 0)
    assert (await http.post("/v1/answer", json=tight)).status_code == 200


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_before_everything_nothing_was_known_and_at_the_end_of_time_all(http, strategy):
    query = "What is my cat called, in the week of 3 May 2023?"
    for early in ("0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "2023-03-19", 0):
        assert await answers(http, strategy, query, as_of=early) == []
    assert CAT not in await answers(http, strategy, query, as_of="2023-05-03T23:59:59Z")
    for late in ("2023-05-04T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z"):
        assert CAT in await answers(http, strategy, query, as_of=late)


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_gated_turn_from_the_end_of_time_leaves_the_memory_readable(world, http, strategy):
    ever = datetime.max.replace(tzinfo=UTC)
    gated, kept = (
        Unit(
            id=uuid5(ROOT, f"{strategy} {ordinal}"),
            namespace=namespace_of("local", f"far-{strategy}"),
            kind="turn",
            session="s",
            ordinal=ordinal,
            position=ordinal + 1,
            speaker="ada",
            text=text,
            said_at=ever,
            recorded_at=NOON,
            visible=status is Status.REMEMBERED,
            status=status,
        )
        for ordinal, (text, status) in enumerate((("ok", Status.GATED), (CAT, Status.REMEMBERED)))
    )
    await world.keep([gated, kept])
    for _ in range(2):
        assert await answers(http, strategy, "my cat last week", user_id=f"far-{strategy}") == [CAT]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("speaker", ["Grace", "ada"])
async def test_of_one_speaker_there_is_a_result_however_many_others_match_better(http, strategy, speaker):
    for query in ("tulips in the back garden, bees", "a sweet name, which colours, hives"):
        for most in (1, 3):
            body = {"query": query, "user_id": "ada", "strategy": strategy, "top_k": most}
            answer = await http.post("/v1/memories/search", json={**body, "filters": {"speaker": speaker}})
            results = answer.json()["results"]
            assert len(results) == most
            assert {result["speaker"] for result in results} == {speaker}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (rb'{"query": "cat \ud800", "user_id": "ada"}', 422, "surrogates"),
        (rb'{"query": "cat", "user_id": "\ud83d"}', 422, "surrogates"),
        (b'{"query": "\xff\xfe", "user_id": "ada"}', 400, "UTF-8"),
        (b"[" * 100_000, 400, "JSON"),
        (b'{"query": "cat", "user_id": "ada"', 422, "JSON"),
        (b"", 422, "required"),
        (b"null", 422, "dictionary"),
        (b'{"query": " \xe3\x80\x80\\n", "user_id": "ada"}', 422, "empty"),
        (b'{"query": "' + b"k" * 32_769 + b'", "user_id": "ada"}', 422, "32768"),
        (b'{"query": ["cat"], "user_id": "ada"}', 422, "string"),
        (b'{"query": "cat", "user_id": "ada", "as_of": "10000-01-01"}', 422, "as_of"),
        (b'{"query": "cat", "user_id": "ada", "as_of": "2023-02-30"}', 422, "as_of"),
        (b'{"query": "cat", "user_id": "ada", "as_of": "0001-01-01T00:00:00+14:00"}', 422, "1 to 9999"),
        (b'{"query": "cat", "user_id": "ada", "as_of": 1e400}', 422, "as_of"),
        (b'{"query": "cat", "user_id": "ada", "max_tokens": 0}', 422, "max_tokens"),
    ],
)
async def test_what_cannot_be_read_is_refused_with_the_reason(http, route, body, status, says):
    answer = await http.post(route, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert says in answer.json()["detail"]
    assert CANARY not in answer.text


async def test_deep_needs_a_model_and_says_so(http):
    body = {"query": "🐝", "user_id": "ada", "strategy": "deep"}
    for route in ROUTES:
        answer = await http.post(route, json=body)
        assert answer.status_code == 422
        assert "deep" in answer.json()["detail"] or "model" in answer.json()["detail"]
