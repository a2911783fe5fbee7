"""The test server speaks to every prompt of the engine: through the real door, each mode in its form."""

import json
from datetime import UTC, datetime, timedelta
from typing import get_args
from uuid import UUID

import httpx
import pytest

from lamina.bench import judge
from lamina.bench.conversation import Question
from lamina.sinks.in_memory import InMemoryMetrics
from lamina.sinks.llm_openai import open_openai_model
from lamina.streams.engine import Neighbourhood, Node
from lamina.streams.llm import Purpose
from lamina.streams.namespace import Namespace
from lamina.streams.prompts import (
    abstract,
    answer,
    consolidate,
    deep,
    deep_sub_query,
    describe,
    diagnose,
    episodes,
    extract,
    merge_episode,
    plan_merge,
    plan_split,
    plan_update,
    refine,
)
from lamina.streams.records import Unit
from lamina.streams.resolution import read

MAY = datetime(2023, 5, 8, 9, tzinfo=UTC)


def a_unit(number, text, kind="turn", **more):
    said = MAY + timedelta(days=number)
    known = {"session": "s", "speaker": "Sarah", "position": number, "said_at": said, "recorded_at": said}
    return Unit(id=UUID(int=number), namespace=Namespace("acme/sarah"), kind=kind, text=text, **known | more)


SAID = ["My daughter Mia is allergic to peanuts.", "I baked a cake for Mia yesterday.", "I live in Boston."]
TURNS = [a_unit(number, text) for number, text in enumerate(SAID, start=1)]
READINGS = [read(turn, ()) for turn in TURNS]
EPISODE = a_unit(9, "Sarah baked a cake for Mia.", "episode")
FACT = a_unit(10, "Sarah lives in Boston.", "fact", subject="Sarah", relation="lives in", object="Boston")
NODES = [Node(EPISODE, tuple(TURNS)), Node(FACT, (TURNS[2],))]

PROMPTS = {
    prompt.purpose: prompt
    for prompt in (
        consolidate.prompt(TURNS, READINGS, [EPISODE], [FACT]),
        episodes.prompt(TURNS, READINGS),
        merge_episode.prompt(TURNS, READINGS, [EPISODE]),
        refine.prompt(EPISODE.text, TURNS, READINGS, [FACT]),
        describe.prompt(TURNS, READINGS),
        diagnose.prompt(Neighbourhood(NODES[0], (NODES[1],))),
        plan_split.prompt(NODES[0], "two topics"),
        plan_merge.prompt(NODES, "the same"),
        plan_update.prompt(NODES[0], NODES[1], "newer"),
        abstract.prompt(NODES),
        extract.prompt(TURNS[0], ()),
        answer.prompt("Where does Sarah live?", MAY, "[2023-05-11 · Sarah · 1] I live in Boston."),
        deep.prompt("Where does Sarah live?", "8 May 2023", {"turns": 3}, {"programs": 5}, ()),
        deep_sub_query.prompt("Where does Sarah live?", "1 Sarah: I live in Boston."),
        judge.prompt(Question("Where does Sarah live?", "Boston", 4, ()), "in Boston"),
    )
}
purposes = pytest.mark.parametrize("purpose", get_args(Purpose))


@pytest.fixture
async def model(openai_server):
    model = open_openai_model(openai_server.settings(), InMemoryMetrics())
    yield model
    await model.close()


def test_it_lists_its_model(openai_server):
    listed = httpx.get(f"{openai_server.url}/models").json()
    assert [model["id"] for model in listed["data"]] == ["test-model"]


@purposes
async def test_a_sensible_reply_is_readable_and_billed(openai_server, model, purpose):
    completion = await model.complete(PROMPTS[purpose], repair=False)
    assert completion.fault is None
    (request,) = openai_server.billed(purpose)
    assert request.asked.version == PROMPTS[purpose].version
    assert request.asked.data == json.loads(PROMPTS[purpose].messages[1]["content"])
    assert (completion.tokens_in, completion.tokens_out) == (request.tokens_in, request.tokens_out)


@purposes
async def test_a_bad_reply_has_the_form_asked_for(openai_server, model, purpose):
    for forms in ({"json_schema"}, set()):
        for mode, sign in (("ungrounded", "Zorblax"), ("hostile_fields", "ignore all")):
            openai_server.mode, openai_server.forms = mode, forms
            completion = await model.complete(PROMPTS[purpose], repair=False)
            assert completion.fault is None
            assert sign in completion.text


@purposes
async def test_an_unreadable_reply_is_one_for_every_prompt(openai_server, model, purpose):
    for mode in ("invalid", "misfit", "truncated", "empty", "refused", "hostile_prose"):
        openai_server.mode = mode
        assert (await model.complete(PROMPTS[purpose], repair=False)).fault


async def test_modes_are_chosen_by_purpose_too_and_values_by_field(openai_server, model):
    openai_server.by_purpose = {"diagnose": "ungrounded"}
    openai_server.overrides = {"confidence": 0.95}
    assert "Zorblax" not in (await model.complete(PROMPTS["describe"], repair=False)).text
    assert '"confidence": 0.95' in (await model.complete(PROMPTS["diagnose"], repair=False)).text


async def test_the_same_prompt_has_the_same_digest(openai_server, model):
    for purpose in ("describe", "describe", "abstract"):
        await model.complete(PROMPTS[purpose], repair=False)
    first, again, other = (request.digest for request in openai_server.requests)
    assert first == again != other
