"""The rehearsal model answers every prompt in its form, from its data alone, and counts what it cost."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest

from lamina.bench import counted
from lamina.bench.counted import CountedModel
from lamina.bench.rehearsal import RehearsalModel, answer
from lamina.bench.tokens import Tokenizer
from lamina.streams.engine import Neighbourhood, Node
from lamina.streams.errors import ModelUnavailable
from lamina.streams.llm import Completion, Prompt
from lamina.streams.prompts import (
    abstract,
    consolidate,
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
from lamina.streams.records import Kind, Unit
from lamina.streams.resolution import read

WORDS = Tokenizer("words", lambda text: len(text.split()))
MAY = datetime(2023, 5, 8, 9, tzinfo=UTC)


def a_unit(number: int, text: str, kind: Kind = "turn", **more: Any) -> Unit:
    said = MAY + timedelta(days=number)
    return Unit(
        id=UUID(int=number),
        namespace="t/u",
        kind=kind,
        session=f"s{number}",
        ordinal=0,
        position=number,
        speaker="Sarah" if kind == "turn" else "",
        text=text,
        said_at=said,
        recorded_at=said,
        **more,
    )


def a_node(number: int, text: str, kind: Kind = "turn", evidence: Sequence[Unit] = (), **more: Any) -> Node:
    unit = a_unit(number, text, kind, **more)
    return Node(unit, tuple(evidence) or (unit,))


TURNS = [
    a_unit(1, "I live in Tokyo and I work as a nurse."),
    a_unit(2, "Yesterday I signed up for a pottery class near the river."),
    a_unit(3, "The pottery class starts next month, my sister Mia comes along."),
]
READINGS = [read(turn, []) for turn in TURNS]
EPISODE = a_unit(9, "[2023-05-09] Sarah: I live in Tokyo and I work as a nurse.", "episode", topic="tokyo")
FACT = a_unit(10, "Sarah lives in Oslo", "fact", subject="Sarah", relation="lives_in", object="Oslo")
STORY = a_node(11, "Pottery.", "episode", TURNS)
PROMPTS: list[Prompt[Any]] = [
    consolidate.prompt(TURNS, READINGS, [], [FACT]),
    consolidate.prompt(TURNS[1:], READINGS[1:], [EPISODE], []),
    episodes.prompt(TURNS, READINGS),
    merge_episode.prompt(TURNS[1:], READINGS[1:], [EPISODE]),
    refine.prompt("Sarah took up pottery.", TURNS, READINGS, []),
    describe.prompt(TURNS[:1], READINGS[:1]),
    diagnose.prompt(Neighbourhood(a_node(1, "I hate apples now."), (a_node(2, "I like apples."),))),
    plan_split.prompt(STORY, "two topics"),
    plan_merge.prompt([a_node(1, "I live in Tokyo."), a_node(2, "My residence is in Tokyo.")], "the same"),
    plan_update.prompt(a_node(2, "I hate apples now."), a_node(1, "I like apples."), "ended"),
    abstract.prompt(
        [a_node(n, f"Sarah likes {what}", "fact") for n, what in enumerate(("tea", "figs", "jam"))]
    ),
    extract.prompt(TURNS[0], []),
]


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.purpose)
async def test_every_prompt_is_answered_in_its_form(prompt: Prompt[Any]) -> None:
    completion = await RehearsalModel(WORDS).complete(prompt, repair=True)
    prompt.reply.model_validate_json(completion.text)
    assert completion.fault is None
    assert (completion.attempts, completion.tokens_out) == (1, WORDS.count(completion.text))
    assert completion.tokens_in > WORDS.count(prompt.system)


async def test_a_reply_beyond_the_prompts_limit_has_the_fault_that_a_models_would() -> None:
    short = replace(PROMPTS[0], max_tokens=1)
    assert (await RehearsalModel(WORDS).complete(short, repair=True)).fault is not None


def test_an_episode_rests_on_the_turns_shown_and_the_next_version_keeps_what_was_told() -> None:
    new = answer("consolidate", PROMPTS[0].data)
    assert [each["turns"] for each in new["episodes"]] == [[1, 2, 3]]
    following = answer("merge_episode", PROMPTS[3].data)
    (episode,) = following["episodes"]
    assert (episode["turns"], episode["continues"]) == ([1, 2], [1])
    assert "Tokyo" in episode["text"]
    assert "pottery" in episode["text"]


def test_facts_leave_out_what_the_episode_tells_and_say_what_they_update() -> None:
    omitted = {each["object"]: each for each in answer("refine", PROMPTS[4].data)["facts"]}
    assert "Tokyo" in omitted
    known = refine.prompt("Sarah took up pottery.", TURNS, READINGS, [FACT])
    assert [
        each["updates"] for each in answer("refine", known.data)["facts"] if each["object"] == "Tokyo"
    ] == [1]
    told = refine.prompt("Sarah lives in Tokyo and works as a nurse.", TURNS[:1], READINGS[:1], [])
    assert answer("refine", told.data)["facts"] == []


def test_a_diagnosis_names_units_by_their_numbers() -> None:
    target = a_node(5, "I hate apples now.")
    found = answer("diagnose", diagnose.prompt(Neighbourhood(target, (a_node(2, "I like apples."),))).data)
    assert [(each["current"], each["superseded"]) for each in found["updates"]] == [(1, 2)]
    assert found["splits"] == found["merges"] == []


def test_a_split_is_planned_in_the_words_of_the_turn() -> None:
    turn = a_unit(4, "I learned PyTorch today. Also, I need to buy eggs.")
    plan = answer("plan_split", plan_split.prompt(Node(turn, (turn,)), "two topics").data)
    quotes = [quote["text"] for segment in plan["segments"] for quote in segment["quotes"]]
    assert len(quotes) == 2
    assert all(quote in turn.text for quote in quotes)
    whole = answer("plan_split", plan_split.prompt(STORY, "one story").data)
    assert [segment["turns"] for segment in whole["segments"]] == [[1, 2, 3]]


def test_the_same_data_give_the_same_reply() -> None:
    for prompt in PROMPTS:
        data = orjson.loads(orjson.dumps(prompt.data))
        assert answer(prompt.purpose, data) == answer(prompt.purpose, data)


class Faltering:
    """A model that does not answer the first times."""

    name = "faltering"

    def __init__(self, failures: int) -> None:
        self.failures = failures

    async def complete(self, prompt: Prompt[Any], *, repair: bool) -> Completion:
        if self.failures:
            self.failures -= 1
            raise ModelUnavailable("busy", retry_after=0.0)
        return Completion("{}", self.name, tokens_in=10, tokens_out=2, attempts=2, seconds=0.5)

    async def close(self) -> None: ...


async def test_calls_are_counted_by_purpose_with_their_repairs_and_an_outage_is_waited_for() -> None:
    model = CountedModel(Faltering(counted.TRIES - 1))
    await model.complete(PROMPTS[0], repair=True)
    await model.complete(PROMPTS[5], repair=True)
    assert model.bill.calls == {"consolidate": 2, "describe": 2}
    assert (model.bill.tokens_in["describe"], model.bill.tokens_out.total()) == (10, 4)
    assert model.bill.seconds == 1.0
    with pytest.raises(ModelUnavailable):
        await CountedModel(Faltering(counted.TRIES)).complete(PROMPTS[0], repair=True)
