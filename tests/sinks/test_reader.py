"""The chat model at query time: the tenant's one budget, a bounded line, and nothing stored."""

import asyncio
from dataclasses import replace

import pytest

from lamina.sinks import reader as reading
from lamina.sinks.in_memory import FixedClock, InMemoryMetrics
from lamina.sinks.llm_openai import open_openai_model
from lamina.sinks.reader import open_reader
from lamina.sinks.replies import asking
from lamina.streams.errors import (
    BudgetSpent,
    Misconfigured,
    ModelUnavailable,
    TablesUnavailable,
    UnusableReply,
)
from lamina.streams.journal import Budget
from lamina.streams.llm import Completion, Prompt
from lamina.streams.metrics import LLM_TOKENS
from lamina.streams.namespace import namespace_of
from lamina.streams.ports import Claim
from lamina.streams.prompts.reply import Reply
from tests.openai_server import MODEL

from .tables_kit import NOW, a_command, later

HOUR = Budget(tokens=2000, window_seconds=3600)
LIMITS = {"llm_budget_tokens": HOUR.tokens, "llm_budget_window_seconds": HOUR.window_seconds}
ADA = namespace_of("t", "ada")
BOB = namespace_of("t", "bob")
ELSE = namespace_of("other", "ada")


class Words(Reply):
    words: list[str]


def a_prompt(number=1, **changes):
    return replace(
        Prompt("answer", 1, "Say the number.", {"number": number}, Words, max_tokens=50), **changes
    )


@pytest.fixture
def server(openai_server):
    openai_server.answer = lambda _, data: {"words": [str(data["number"])]}
    return openai_server


@pytest.fixture
def metrics():
    return InMemoryMetrics()


@pytest.fixture
async def reader_of(server, tables, metrics):
    """Open a reader with changed settings, and close its model after the test."""
    models = []

    def opened(*, at=NOW, over=tables, **changes):
        settings = server.settings(**changes)
        models.append(open_openai_model(settings, metrics))
        return open_reader(models[-1], over, FixedClock(at), settings)

    yield opened
    for model in models:
        await model.close()


async def test_a_reply_is_metered_and_not_stored(server, tables, reader_of, metrics):
    reader = reader_of(**LIMITS)
    assert reader.name == MODEL
    assert await reader.ask(ADA).one(a_prompt()) == Words(words=["1"])
    assert await reader.ask(ADA).one(a_prompt()) == Words(words=["1"])
    paid = sum(one.tokens_in + one.tokens_out for one in server.billed("answer"))
    assert len(server.billed()) == 2
    assert await tables.spent("t", HOUR, NOW) == paid
    assert await tables.costs() == []
    assert paid == sum(
        metrics.value(LLM_TOKENS, purpose="answer", model=MODEL, direction=way) for way in ("in", "out")
    )


async def test_questions_and_consolidation_share_one_budget(server, tables, reader_of, metrics):
    settings = server.settings(**LIMITS)
    model = open_openai_model(settings, metrics)
    claim = Claim(a_command(namespace=ADA), fence=1, owner="worker", until=later(60))
    consolidates = asking(model, tables, FixedClock(NOW), metrics, settings)(claim)
    reader = reader_of(**LIMITS)
    await consolidates.one(a_prompt(1, purpose="describe"))
    await reader.ask(ADA).one(a_prompt(2))
    dear = {"max_tokens": HOUR.tokens}
    with pytest.raises(BudgetSpent):
        await reader.ask(BOB).one(a_prompt(3, **dear))
    with pytest.raises(BudgetSpent):
        await consolidates.one(a_prompt(4, purpose="describe", **dear), 1)
    assert len(server.requests) == 2
    await reader.ask(ELSE).one(a_prompt(3, **dear))
    await reader_of(at=later(HOUR.window_seconds), **LIMITS).ask(BOB).one(a_prompt(3, **dear))
    await model.close()


async def test_a_spent_budget_says_when_the_next_begins(reader_of):
    reader = reader_of(**LIMITS)
    await reader.ask(ADA).one(a_prompt())
    with pytest.raises(BudgetSpent) as caught:
        await reader.ask(ADA).one(a_prompt(max_tokens=HOUR.tokens))
    assert caught.value.retry_after is not None
    assert 0 < caught.value.retry_after <= HOUR.window_seconds


async def test_of_two_at_the_end_of_a_budget_one_passes(tables):
    await tables.hold_tokens("t", 1000, HOUR, NOW)
    outcomes = await asyncio.gather(
        *(tables.hold_tokens("t", 600, HOUR, NOW) for _ in range(2)), return_exceptions=True
    )
    assert sum(isinstance(one, BudgetSpent) for one in outcomes) == 1
    assert await tables.spent("t", HOUR, NOW) == 1600


async def test_what_was_held_is_settled_in_its_own_window(tables):
    held_in = await tables.hold_tokens("t", 900, HOUR, NOW)
    next_window = later(HOUR.window_seconds)
    await tables.hold_tokens("t", 70, HOUR, next_window)
    await tables.settle_tokens("t", held_in, 900, 30)
    assert (await tables.spent("t", HOUR, NOW), await tables.spent("t", HOUR, next_window)) == (30, 70)


@pytest.mark.parametrize(
    ("mode", "owes"), [("busy", False), ("broken", False), ("stalled", True), ("reset", True)]
)
async def test_only_what_is_in_doubt_stays_held(server, tables, reader_of, mode, owes):
    server.once(mode)
    with pytest.raises(ModelUnavailable):
        await reader_of(llm_timeout_seconds=0.5, **LIMITS).ask(ADA).one(a_prompt())
    assert bool(await tables.spent("t", HOUR, NOW)) is owes


async def test_a_refused_key_costs_nothing(tables, reader_of):
    with pytest.raises(Misconfigured):
        await reader_of(llm_api_key="sk-wrong-0000", **LIMITS).ask(ADA).one(a_prompt())
    assert await tables.spent("t", HOUR, NOW) == 0


async def test_an_unreadable_reply_is_paid_for_and_said(server, tables, reader_of):
    server.mode = "invalid"
    reader = reader_of(**LIMITS)
    with pytest.raises(UnusableReply):
        await reader.ask(ADA).one(a_prompt())
    assert await tables.spent("t", HOUR, NOW) == sum(
        one.tokens_in + one.tokens_out for one in server.billed()
    )
    replies = await reader.ask(ADA).many([a_prompt(1), a_prompt(2)], repair=False)
    assert all(isinstance(one, UnusableReply) for one in replies)


async def test_an_answer_is_not_lost_where_it_cannot_be_settled(tables, reader_of, monkeypatch):
    async def away(*_):
        raise TablesUnavailable("locked")

    monkeypatch.setattr(tables, "settle_tokens", away)
    assert await reader_of(**LIMITS).ask(ADA).one(a_prompt()) == Words(words=["1"])
    assert await tables.spent("t", HOUR, NOW) > 0


class Slow:
    """A model that answers when it is let."""

    name = "slow"

    def __init__(self):
        self.let = asyncio.Event()
        self.under_way = 0
        self.most = 0

    async def complete(self, prompt, *, repair):
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await self.let.wait()
        self.under_way -= 1
        return Completion('{"words": ["x"]}', self.name, 1, 1, 1, 0.0)

    async def close(self):
        pass


async def test_calls_under_way_and_those_that_wait_are_bounded(tables, server, monkeypatch):
    monkeypatch.setattr(reading, "WAITING_PER_PLACE", 2)
    model = Slow()
    reader = open_reader(model, tables, FixedClock(NOW), server.settings(llm_calls_at_once=2))
    calls = [asyncio.create_task(reader.ask(ADA).one(a_prompt(n))) for n in range(7)]
    await asyncio.sleep(0.05)
    with pytest.raises(ModelUnavailable) as refused:
        await calls[-1]
    assert refused.value.retry_after
    model.let.set()
    assert len(await asyncio.gather(*calls[:-1])) == 6
    assert model.most == 2
    assert await reader.ask(ADA).many([a_prompt(n) for n in range(5)]) == [Words(words=["x"])] * 5


async def test_nobody_waits_longer_than_one_call_may_take(tables, server):
    model = Slow()
    settings = server.settings(llm_calls_at_once=1, llm_timeout_seconds=0.05)
    reader = open_reader(model, tables, FixedClock(NOW), settings)
    first = asyncio.create_task(reader.ask(ADA).one(a_prompt()))
    await asyncio.sleep(0)
    with pytest.raises(ModelUnavailable):
        await reader.ask(ADA).one(a_prompt())
    model.let.set()
    await first
    await reader.ask(ADA).one(a_prompt())
