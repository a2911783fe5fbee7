"""Embedders: one contract for every engine, then what each promises beyond it."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from lamina.sinks.embed_onnx import open_onnx_embedder
from lamina.sinks.embed_openai import open_openai_embedder
from lamina.sinks.in_memory import InMemoryMetrics
from lamina.sinks.weights import ensure_weights
from lamina.streams.errors import EmbedderUnavailable, Misconfigured, WrongDimension
from lamina.streams.late_interaction import SCALE
from lamina.streams.metrics import EMBEDDED_TEXTS
from lamina.streams.ports import Embedder
from lamina.streams.settings import Settings

from . import embedding_endpoint
from .embedding_endpoint import DIMENSION, KEY, Reply

PUPPY = "I adopted a puppy last week."
DOG = "We got a young dog last week."
REPORT = "The quarterly report is due on Friday."
CONVERSATION = [
    (None, PUPPY),
    (PUPPY, "What is its name?"),
    ("What is its name?", "Rex. He chews on everything, yesterday it was my mother's left shoe."),
    ("Rex. He chews on everything, yesterday it was my mother's left shoe.", "Oh no!"),
    ("Oh no!", " ".join(["And then he slept for the whole afternoon."] * 12)),
]


@pytest.fixture
def metrics():
    return InMemoryMetrics()


@pytest.fixture
def endpoint():
    with embedding_endpoint.running() as endpoint:
        yield endpoint


@pytest.fixture
async def open_embedder(request, metrics):
    """Open the embedder of an engine with changed settings; all are closed in the end."""
    opened = []

    async def open_one(engine, **changes):
        if engine == "openai":
            url = request.getfixturevalue("endpoint").url
            known = {"openai_base_url": url, "openai_api_key": KEY, "openai_embed_dimension": DIMENSION}
            embedder: Embedder = open_openai_embedder(Settings(**{**known, **changes}), metrics)
        else:
            cache = request.getfixturevalue("weights_cache")
            embedder = await open_onnx_embedder(Settings(embed_precision=engine, **changes), cache, metrics)
        opened.append(embedder)
        return embedder

    yield open_one
    for embedder in opened:
        await embedder.close()


@pytest.fixture(params=["int8", "fp32", "openai"])
def engine(request):
    if request.param == "openai":
        request.getfixturevalue("endpoint")
    else:
        request.getfixturevalue("weights_cache")
    return request.param


def lengths(matrix):
    return np.linalg.norm(matrix, axis=-1)


# the contract


async def test_every_vector_is_float32_of_unit_length_and_the_promised_dimension(engine, open_embedder):
    embedder = await open_embedder(engine)
    alone = await embedder.embed([PUPPY, DOG, REPORT])
    turns = await embedder.embed_turns(CONVERSATION)
    assert alone.shape == (3, embedder.dimension)
    assert turns.turn.shape == turns.exchange.shape == (len(CONVERSATION), embedder.dimension)
    for matrix in (alone, turns.turn, turns.exchange):
        assert matrix.dtype == np.float32
        assert lengths(matrix) == pytest.approx(1, abs=1e-6)


async def test_nothing_gives_no_rows(engine, open_embedder):
    embedder = await open_embedder(engine)
    turns = await embedder.embed_turns([])
    for matrix in (await embedder.embed([]), turns.turn, turns.exchange):
        assert matrix.shape == (0, embedder.dimension)
        assert matrix.dtype == np.float32


@pytest.mark.parametrize("empty", ["", "  \n", "\u200b"])
async def test_an_empty_text_has_a_vector(engine, open_embedder, empty):
    embedder = await open_embedder(engine)
    turns = await embedder.embed_turns([(None, empty), (empty, empty), (PUPPY, empty), (empty, PUPPY)])
    for matrix in (await embedder.embed([empty]), turns.turn, turns.exchange):
        assert lengths(matrix) == pytest.approx(1, abs=1e-6)


async def test_a_question_has_the_vector_of_its_text_and_tokens_as_long_as_promised(engine, open_embedder):
    embedder = await open_embedder(engine)
    for question in (PUPPY, "", "?!", "où est 猫?", "x" * 20_000):
        asked = await embedder.embed_question(question)
        [alone] = await embedder.embed([question])
        assert asked.dense == pytest.approx(alone, abs=1e-6)
        assert (asked.tokens is None) == (embedder.token_width == 0)
        if asked.tokens is not None:
            assert asked.tokens.vectors.shape == (len(asked.tokens.pieces), embedder.token_width)
            assert lengths(asked.tokens.vectors) == pytest.approx(1, abs=1e-5)


async def test_turns_have_tokens_where_the_engine_gives_them(engine, open_embedder):
    embedder = await open_embedder(engine)
    turns = await embedder.embed_turns([*CONVERSATION, (PUPPY, ""), (None, "?!")])
    assert (turns.tokens is None) == (embedder.token_width == 0)
    for own in turns.tokens or ():
        assert own.vectors.shape[1] == embedder.token_width
        assert sorted(set(own.pieces.tolist())) == own.pieces.tolist()
        assert lengths(own.vectors.astype(np.float32)) == pytest.approx(SCALE, abs=3)


async def test_what_means_the_same_scores_above_what_does_not(engine, open_embedder):
    embedder = await open_embedder(engine)
    puppy, dog, report = await embedder.embed([PUPPY, DOG, REPORT])
    assert puppy @ dog > puppy @ report + 0.1


async def test_a_vector_does_not_depend_on_what_shares_its_batch(engine, open_embedder):
    embedder = await open_embedder(engine, embed_cache_texts=0)
    texts = [text for _, text in CONVERSATION]
    together = await embedder.embed(texts)
    turns = await embedder.embed_turns(CONVERSATION)
    for place, turn in enumerate(CONVERSATION):
        assert np.array_equal((await embedder.embed([turn[1]]))[0], together[place])
        one = await embedder.embed_turns([turn])
        assert np.array_equal(one.turn[0], turns.turn[place])
        assert np.array_equal(one.exchange[0], turns.exchange[place])
    backwards = await embedder.embed_turns(CONVERSATION[::-1])
    assert np.array_equal(backwards.turn[::-1], turns.turn)


async def test_calls_at_once_get_their_own_vectors(engine, open_embedder):
    embedder = await open_embedder(engine, embed_cache_texts=0)
    one_by_one = [await embedder.embed_turns([turn]) for turn in CONVERSATION]
    at_once = await asyncio.gather(*(embedder.embed_turns([turn]) for turn in CONVERSATION))
    for expected, found in zip(one_by_one, at_once, strict=True):
        assert np.array_equal(found.turn, expected.turn)
        assert np.array_equal(found.exchange, expected.exchange)


async def test_a_turn_without_one_before_it_is_its_own_exchange(engine, open_embedder):
    embedder = await open_embedder(engine)
    turns = await embedder.embed_turns([(None, DOG), (PUPPY, DOG)])
    assert np.array_equal(turns.turn[0], turns.exchange[0])
    assert not np.allclose(turns.turn[1], turns.exchange[1], atol=1e-2)


async def test_an_exchange_is_near_both_its_turns(engine, open_embedder):
    embedder = await open_embedder(engine)
    exchange = (await embedder.embed_turns([(PUPPY, REPORT)])).exchange[0]
    puppy, report = await embedder.embed([PUPPY, REPORT])
    assert exchange @ puppy > puppy @ report
    assert exchange @ report > puppy @ report


async def test_a_known_text_is_answered_from_memory(engine, open_embedder, metrics):
    embedder = await open_embedder(engine)
    name = "openai" if engine == "openai" else "onnx"

    def answered(source):
        return metrics.value(EMBEDDED_TEXTS, engine=name, source=source)

    first = await embedder.embed([PUPPY, DOG, PUPPY])
    assert (answered("model"), answered("cache")) == (2, 1)
    assert np.array_equal(first[0], first[2])
    first[:] = 0  # what the caller does with its vectors is its own affair
    again = await embedder.embed([DOG, REPORT])
    assert (answered("model"), answered("cache")) == (3, 2)
    assert lengths(again) == pytest.approx(1, abs=1e-6)
    await embedder.embed_turns(CONVERSATION)
    computed = answered("model")
    await embedder.embed_turns(CONVERSATION)
    assert answered("model") == computed


async def test_the_oldest_vectors_make_room(engine, open_embedder, metrics):
    embedder = await open_embedder(engine, embed_cache_texts=2)
    for text in (
        PUPPY,
        DOG,
        PUPPY,
        REPORT,
        PUPPY,
        DOG,
    ):  # DOG goes when REPORT comes, for PUPPY was used since
        await embedder.embed([text])
    name = "openai" if engine == "openai" else "onnx"
    assert metrics.value(EMBEDDED_TEXTS, engine=name, source="model") == 4


async def test_a_very_long_text_is_read_from_its_beginning(engine, open_embedder):
    embedder = await open_embedder(engine)
    long = " ".join(f"word{i}" for i in range(3000))
    plain, longer = await embedder.embed([long, long + " and a different end"])
    assert np.array_equal(plain, longer)


async def test_a_long_previous_turn_leaves_the_turn_whole(engine, open_embedder):
    embedder = await open_embedder(engine)
    recent = " ".join(["Then we walked along the river."] * 300)
    turns = await embedder.embed_turns(
        [
            (recent, DOG),
            ("Something said long before. " + recent, DOG),
            (recent, REPORT),
        ]
    )
    assert np.array_equal(turns.exchange[0], turns.exchange[1])
    assert np.array_equal(turns.turn[0], turns.turn[1])
    dog, report = await embedder.embed([DOG, REPORT])
    assert turns.turn[0] @ dog > turns.turn[0] @ report
    assert turns.turn[2] @ report > turns.turn[2] @ dog


# the bundled model


async def test_fp32_is_the_published_model(open_embedder):
    """Expected values come from a forward pass over the published weights in plain float64 numpy."""
    embedder = await open_embedder("fp32")
    texts = [PUPPY, "We got a young dog recently.", REPORT]
    vectors = await embedder.embed(texts)
    assert vectors[0, :6] == pytest.approx(
        [-0.075372, 0.001518, 0.080506, 0.066697, -0.034167, -0.033258], abs=2e-6
    )
    assert vectors @ vectors.T == pytest.approx(
        np.array([[1.0, 0.620315, 0.099514], [0.620315, 1.0, 0.04892], [0.099514, 0.04892, 1.0]]), abs=2e-6
    )
    turns = await embedder.embed_turns([(texts[0], texts[1])])
    assert turns.turn[0, :6] == pytest.approx(
        [-0.066918, 0.048075, 0.072014, 0.069637, -0.030778, -0.044086], abs=2e-6
    )
    assert turns.exchange[0, :6] == pytest.approx(
        [-0.086154, 0.026068, 0.085864, 0.071632, -0.018596, -0.052847], abs=2e-6
    )


async def test_int8_stays_near_fp32(open_embedder):
    texts = [PUPPY, DOG, REPORT, *(text for _, text in CONVERSATION)]
    small, full = await open_embedder("int8"), await open_embedder("fp32")
    of_small, of_full = await small.embed_turns(CONVERSATION), await full.embed_turns(CONVERSATION)
    for of_int8, of_fp32 in [
        (await small.embed(texts), await full.embed(texts)),
        (of_small.turn, of_full.turn),
        (of_small.exchange, of_full.exchange),
    ]:
        cosines = (of_int8 * of_fp32).sum(axis=1)
        assert cosines.mean() > 0.98
        assert cosines.min() > 0.97  # "Oh no!": with few tokens the errors do not average out
    assert small.name != full.name  # so that their vectors are never mixed in one store


async def test_the_number_of_threads_changes_no_vector(open_embedder):
    one = await (await open_embedder("int8", embed_threads=1)).embed_turns(CONVERSATION)
    three = await (await open_embedder("int8", embed_threads=3)).embed_turns(CONVERSATION)
    assert np.array_equal(one.turn, three.turn)
    assert np.array_equal(one.exchange, three.exchange)


async def test_a_question_does_not_wait_behind_a_batch(open_embedder):
    embedder = await open_embedder("int8")
    text = " ".join(["They talked about the weather again."] * 20)
    batch = asyncio.create_task(embedder.embed([f"{i} {text}" for i in range(60)]))
    await asyncio.sleep(0.05)
    await embedder.embed(["Where is Rex?"])
    assert not batch.done()
    await batch


async def test_the_event_loop_runs_while_the_model_does(open_embedder):
    embedder = await open_embedder("int8")
    text = " ".join(["They talked about the weather again."] * 20)
    batch = asyncio.create_task(embedder.embed([text + "!" * 100_000, *(f"{i} {text}" for i in range(20))]))
    turns_of_the_loop = 0
    while not batch.done():
        await asyncio.sleep(0.001)
        turns_of_the_loop += 1
    assert turns_of_the_loop > 20


async def test_a_closed_embedder_says_so(open_embedder):
    embedder = await open_embedder("int8")
    await embedder.close()
    with pytest.raises(EmbedderUnavailable, match="closed"):
        await embedder.embed([PUPPY])


async def test_damaged_weights_say_what_to_delete(weights_cache: Path, tmp_path, metrics):
    whole = ensure_weights(weights_cache).int8.parent
    damaged = tmp_path / whole.name
    damaged.mkdir()
    for path in whole.iterdir():
        (damaged / path.name).write_bytes(path.read_bytes()[:1000])
    with pytest.raises(Misconfigured, match="delete that folder"):
        await open_onnx_embedder(Settings(), tmp_path, metrics)


# the OpenAI-compatible endpoint


async def test_a_busy_endpoint_says_when_to_come_back(endpoint, open_embedder):
    endpoint.replies.append(Reply(429, {"retry-after": "7.5"}))
    with pytest.raises(EmbedderUnavailable) as caught:
        await (await open_embedder("openai")).embed([PUPPY])
    assert caught.value.retry_after == 7.5
    assert len(endpoint.requests) == 1  # the guard retries, never the client


@pytest.mark.parametrize("header", ["soon", "-3", "nan", "Wed, 21 Oct 2026 07:28:00 GMT"])
async def test_a_delay_that_is_no_number_of_seconds_counts_as_none(endpoint, open_embedder, header):
    endpoint.replies.append(Reply(429, {"retry-after": header}))
    with pytest.raises(EmbedderUnavailable) as caught:
        await (await open_embedder("openai")).embed([PUPPY])
    assert caught.value.retry_after is None


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 529])
async def test_a_failing_endpoint_is_a_fault_that_passes(endpoint, open_embedder, status):
    embedder = await open_embedder("openai")
    endpoint.replies.append(Reply(status))
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed_turns(CONVERSATION)
    assert len(endpoint.requests) == 1
    assert lengths((await embedder.embed_turns(CONVERSATION)).turn) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("status", "setting"),
    [
        (400, "LAMINA_OPENAI_EMBED_MODEL"),
        (401, "LAMINA_OPENAI_API_KEY"),
        (403, "LAMINA_OPENAI_API_KEY"),
        (404, "LAMINA_OPENAI_BASE_URL"),
        (422, "LAMINA_OPENAI_EMBED_MODEL"),
    ],
)
async def test_a_refusal_names_the_setting_to_check(endpoint, open_embedder, status, setting):
    endpoint.replies.append(Reply(status))
    with pytest.raises(Misconfigured, match=setting):
        await (await open_embedder("openai")).embed([PUPPY])


async def test_a_wrong_key_is_told_by_the_endpoint_itself(open_embedder):
    with pytest.raises(Misconfigured, match="LAMINA_OPENAI_API_KEY"):
        await (await open_embedder("openai", openai_api_key="another")).embed([PUPPY])


async def test_vectors_of_another_dimension_stop_the_process(open_embedder):
    with pytest.raises(WrongDimension, match="LAMINA_OPENAI_EMBED_DIMENSION"):
        await (await open_embedder("openai", openai_embed_dimension=DIMENSION + 1)).embed([PUPPY])


@pytest.mark.parametrize(
    "body", [b"<html>hello</html>", b"{}", b"[]", b'{"data": [{"index": 0, "embedding": "x"}]}']
)
async def test_a_page_that_is_no_embedding_reply_names_the_url(endpoint, open_embedder, body):
    endpoint.replies.append(Reply(200, {"content-type": "text/html"}, body))
    with pytest.raises(Misconfigured, match="LAMINA_OPENAI_BASE_URL"):
        await (await open_embedder("openai")).embed([PUPPY])


@pytest.mark.parametrize(
    "body",
    [b'{"data": []}', b'{"data": [{"index": 0, "embedding": [%s]}]}' % b",".join([b"1e99"] * DIMENSION)],
)
async def test_a_reply_without_usable_vectors_is_asked_for_again(endpoint, open_embedder, body):
    endpoint.replies.append(Reply(200, {}, body))
    with pytest.raises(EmbedderUnavailable):
        await (await open_embedder("openai")).embed([PUPPY])


async def test_tokens_are_of_the_turns_own_words_without_punctuation_in_the_light_of_the_turn_before(
    open_embedder,
):
    embedder = await open_embedder("int8")
    bare = await embedder.embed_turns([(None, "my puppy sleeps")])
    marked, after = (
        await embedder.embed_turns([(None, "My puppy sleeps!"), (REPORT, "my puppy sleeps")])
    ).tokens
    [own] = bare.tokens
    assert len(own.vectors) == len(own.pieces) == 3
    assert marked.pieces.tolist() == after.pieces.tolist() == own.pieces.tolist()
    assert marked.vectors.shape == after.vectors.shape == (3, 128)
    assert not np.array_equal(after.vectors, own.vectors)
    asked = (await embedder.embed_question("Does the puppy sleep?")).tokens
    [puppy] = set(own.pieces.tolist()) & set(asked.pieces.tolist())
    cosines = asked.vectors @ own.vectors.T.astype(np.float32) / SCALE
    assert cosines.max(axis=1).argmax() == asked.pieces.tolist().index(puppy)


async def test_a_reply_that_trickles_in_ends_at_the_timeout(endpoint, open_embedder):
    endpoint.replies.append(Reply(seconds_per_byte=0.1))
    embedder = await open_embedder("openai", openai_timeout_seconds=0.4)
    async with asyncio.timeout(2):
        with pytest.raises(EmbedderUnavailable):
            await embedder.embed([PUPPY])


async def test_an_endpoint_that_is_down_is_a_fault_that_passes(open_embedder):
    with embedding_endpoint.running() as gone:
        pass
    with pytest.raises(EmbedderUnavailable):
        await (await open_embedder("openai", openai_base_url=gone.url)).embed([PUPPY])


async def test_requests_stay_within_the_limits_of_endpoints(endpoint, open_embedder):
    embedder = await open_embedder("openai")
    vectors = await embedder.embed(
        [*(f"text {i}" for i in range(600)), *("é" * 9_000 + str(i) for i in range(3))]
    )
    assert vectors.shape == (603, DIMENSION)
    assert [len(request["input"]) for request in endpoint.requests] == [
        256,
        256,
        89,
    ]  # the long ones: one text
    endpoint.requests.clear()
    await embedder.embed([f"{i} " + "x" * 7_000 for i in range(100)])
    sizes = [[len(text.encode()) for text in request["input"]] for request in endpoint.requests]
    assert sum(map(len, sizes)) == 100
    assert max(map(sum, sizes)) <= 250_000
    assert max(map(max, sizes)) <= 8_000


async def test_an_exchange_is_the_two_turns_as_one_text(endpoint, open_embedder):
    embedder = await open_embedder("openai")
    turns = await embedder.embed_turns([(PUPPY, DOG), (None, REPORT), ("", PUPPY)])
    assert endpoint.requests[0]["input"] == [DOG, REPORT, PUPPY, f"{PUPPY}\n{DOG}"]
    assert np.array_equal(turns.turn, await embedder.embed([DOG, REPORT, PUPPY]))
    assert np.array_equal(turns.exchange, await embedder.embed([f"{PUPPY}\n{DOG}", REPORT, PUPPY]))


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://host/v1", "http://", "http://[::1", "http://host:port/v1"]
)
def test_a_url_that_no_request_can_go_to_is_refused_at_start_up(metrics, url):
    with pytest.raises(Misconfigured, match="LAMINA_OPENAI_BASE_URL"):
        open_openai_embedder(Settings(openai_base_url=url), metrics)


def test_neither_key_nor_endpoint_is_refused_at_start_up(metrics):
    with pytest.raises(Misconfigured, match="LAMINA_OPENAI_API_KEY"):
        open_openai_embedder(Settings(), metrics)
