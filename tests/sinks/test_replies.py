"""Replies are paid for once: the door, the journal and a crash between them, on real tables and over HTTP."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from lamina.sinks.in_memory import FixedClock, InMemoryMetrics
from lamina.sinks.llm_openai import open_openai_model
from lamina.sinks.replies import asking
from lamina.sinks.token_estimate import estimated_prompt
from lamina.streams.errors import (
    BudgetSpent,
    Misconfigured,
    ModelUnavailable,
    TablesUnavailable,
    UnusableReply,
)
from lamina.streams.journal import Budget
from lamina.streams.llm import Prompt
from lamina.streams.metrics import LLM_REPEATED, LLM_REUSED
from lamina.streams.ports import Claim
from lamina.streams.prompts.reply import Reply

from .tables_kit import NOW, a_command, later

HOUR = Budget(tokens=100_000, window_seconds=3600)


class Words(Reply):
    words: list[str]


class Count(Reply):
    count: int


def a_prompt(number=1, **changes):
    data = {"number": number}
    return replace(Prompt("describe", 1, "Say the number.", data, Words, max_tokens=50), **changes)


@pytest.fixture
def server(openai_server):
    openai_server.answer = lambda _, data: {"words": [str(data["number"])]}
    return openai_server


@pytest.fixture
def metrics():
    return InMemoryMetrics()


@pytest.fixture
def claim():
    return Claim(a_command(), fence=1, owner="worker", until=later(60))


@pytest.fixture
async def ask_of(server, tables, metrics):
    """Give a claim its `Ask` in a new process's place: its own model, clock and settings."""
    models = []

    def ask(claim, *, at=NOW, over=tables, **changes):
        settings = server.settings(**changes)
        models.append(open_openai_model(settings, metrics))
        return asking(models[-1], over, FixedClock(at), metrics, settings)(claim)

    yield ask
    for model in models:
        await model.close()


def counted(metrics, metric):
    return metrics.value(metric, purpose="describe")


async def test_a_reply_is_paid_for_once_and_used_again(server, ask_of, claim, metrics):
    first = await ask_of(claim).one(a_prompt())
    again = await ask_of(claim).one(a_prompt())
    assert first == again == Words(words=["1"])
    assert len(server.requests) == 1
    assert (counted(metrics, LLM_REUSED), counted(metrics, LLM_REPEATED)) == (1, 0)


async def test_what_was_paid_stands_in_the_journal(server, tables, ask_of, claim):
    await tables.admit_commands([claim.command])
    server.once("invalid")
    await ask_of(claim).one(a_prompt(), 7)
    (stored,) = (await tables.journal_entry(claim.command.id)).replies
    assert (stored.call.purpose, stored.call.ordinal, stored.call.version) == ("describe", 7, 1)
    assert stored.call.model == "test-model"
    assert stored.completion.model == "test-model-2026-01-01"
    assert stored.completion.attempts == 2
    assert stored.completion.tokens_in == sum(request.tokens_in for request in server.billed())


async def test_the_reply_is_stored_before_it_is_read(tables, ask_of, claim, server):
    server.once("empty")
    with pytest.raises(UnusableReply, match=r"describe: .*empty"):
        await ask_of(claim).one(a_prompt(), repair=False)
    with pytest.raises(UnusableReply, match="empty"):
        await ask_of(claim).one(a_prompt(), repair=False)
    assert len(server.requests) == 1


async def test_a_new_attempt_of_the_command_asks_anew(server, ask_of, claim):
    server.once("empty")
    with pytest.raises(UnusableReply):
        await ask_of(claim).one(a_prompt(), repair=False)
    anew = replace(claim, attempts=1)
    assert (await ask_of(anew).one(a_prompt())).words == ["1"]
    assert (await ask_of(anew).one(a_prompt())).words == ["1"]
    assert len(server.requests) == 2


async def test_a_crash_during_the_call_repeats_that_call_alone_and_says_so(
    server, tables, ask_of, claim, metrics
):
    await ask_of(claim).one(a_prompt(1), 1)
    server.once("stalled")
    asking_two = asyncio.create_task(ask_of(claim).one(a_prompt(2), 2))
    while len(server.requests) < 2:
        await asyncio.sleep(0.01)
    asking_two.cancel()
    with suppress(asyncio.CancelledError):
        await asking_two
    assert asking_two.cancelled()
    ask = ask_of(claim)
    assert [(await ask.one(a_prompt(number), number)).words for number in (1, 2)] == [["1"], ["2"]]
    assert len(server.billed()) == 3
    assert (counted(metrics, LLM_REUSED), counted(metrics, LLM_REPEATED)) == (1, 1)


async def test_a_cancellation_does_not_lose_a_reply_that_came(server, tables, ask_of, claim):
    slow = _Slow(tables)
    asking_one = asyncio.create_task(ask_of(claim, over=slow).one(a_prompt()))
    await slow.storing.wait()
    asking_one.cancel()
    slow.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asking_one
    assert (await ask_of(claim).one(a_prompt())).words == ["1"]
    assert len(server.requests) == 1


async def test_a_reply_waits_for_tables_that_are_away(server, tables, ask_of, claim):
    away = _Slow(tables, faults=2)
    away.go_on.set()
    assert (await ask_of(claim, over=away).one(a_prompt())).words == ["1"]
    assert (await ask_of(claim).one(a_prompt())).words == ["1"]
    assert len(server.requests) == 1


async def test_a_call_that_got_no_reply_was_never_made(server, tables, ask_of, claim, metrics):
    budget = {"llm_budget_tokens": HOUR.tokens, "llm_budget_window_seconds": HOUR.window_seconds}
    server.once("busy", "broken")
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            await ask_of(claim, **budget).one(a_prompt())
        assert await tables.spent("acme", HOUR, NOW) == 0
    with pytest.raises(ModelUnavailable):
        await ask_of(claim, llm_base_url="http://127.0.0.1:9/v1", **budget).one(a_prompt())
    with pytest.raises(Misconfigured):
        await ask_of(claim, llm_api_key="sk-other", **budget).one(a_prompt())
    assert await tables.spent("acme", HOUR, NOW) == 0
    await ask_of(claim, **budget).one(a_prompt())
    assert counted(metrics, LLM_REPEATED) == 0


@pytest.mark.parametrize("mode", ["stalled", "reset"])
async def test_a_call_in_doubt_is_held_and_counted_as_repeated(server, tables, ask_of, claim, metrics, mode):
    budget = {"llm_budget_tokens": HOUR.tokens, "llm_budget_window_seconds": HOUR.window_seconds}
    server.once(mode)
    with pytest.raises(ModelUnavailable):
        await ask_of(claim, llm_timeout_seconds=0.5, **budget).one(a_prompt())
    assert await tables.spent("acme", HOUR, NOW) == estimated_prompt(a_prompt()) + 50
    await ask_of(claim, **budget).one(a_prompt())
    assert counted(metrics, LLM_REPEATED) == 1


async def test_what_a_failed_call_paid_stays_spent(server, tables, ask_of, claim):
    budget = {"llm_budget_tokens": HOUR.tokens, "llm_budget_window_seconds": HOUR.window_seconds}
    server.once("invalid", "busy")
    with pytest.raises(ModelUnavailable):
        await ask_of(claim, **budget).one(a_prompt())
    (bill,) = server.billed()
    assert await tables.spent("acme", HOUR, NOW) == bill.tokens_in + bill.tokens_out


async def test_a_spent_budget_stops_the_call_before_it_is_made(server, ask_of, claim):
    budget = {"llm_budget_tokens": 60, "llm_budget_window_seconds": 3600}
    ask = ask_of(claim, **budget)
    await ask.one(a_prompt(1), 1)  # a window's first call passes
    with pytest.raises(BudgetSpent) as caught:
        await ask.one(a_prompt(2), 2)
    assert caught.value.retry_after is not None
    assert len(server.requests) == 1
    assert (await ask.one(a_prompt(1), 1)).words == ["1"]  # what is stored costs nothing
    next_window = ask_of(claim, at=later(caught.value.retry_after), **budget)
    assert (await next_window.one(a_prompt(2), 2)).words == ["2"]


async def test_many_ask_at_once_and_an_unreadable_one_stands_in_its_place(server, ask_of, claim):
    server.answer = lambda _, data: {"words": [str(data["number"])]} if data["number"] != 2 else {}
    replies = await ask_of(claim, llm_calls_at_once=2).many(
        [a_prompt(number) for number in range(5)], first=10, repair=False
    )
    assert [reply.words for reply in replies if isinstance(reply, Words)] == [["0"], ["1"], ["3"], ["4"]]
    assert isinstance(replies[2], UnusableReply)
    assert server.most_at_once <= 2
    assert (await ask_of(claim).one(a_prompt(4), 14)).words == ["4"]
    assert len(server.requests) == 5


async def test_many_let_the_others_end_before_an_outage_is_raised(server, ask_of, claim):
    server.once("busy")
    prompts = [a_prompt(number) for number in range(4)]
    with pytest.raises(ModelUnavailable):
        await ask_of(claim).many(prompts)
    assert len(server.billed()) == 3
    replies = await ask_of(claim).many(prompts)
    assert [reply.words for reply in replies] == [["0"], ["1"], ["2"], ["3"]]
    assert len(server.billed()) == 4


async def test_none_are_asked_of_no_prompts(server, ask_of, claim):
    assert await ask_of(claim).many([]) == []
    assert server.requests == []


@pytest.mark.parametrize(
    "changes", [{"version": 2}, {"system": "Say it loud."}, {"data": {"number": 2}}], ids=str
)
async def test_a_reply_to_another_question_is_not_used_for_this_one(server, ask_of, claim, changes, metrics):
    for prompt in (a_prompt(), a_prompt(**changes)) * 2:
        assert (await ask_of(claim).one(prompt)).words == [str(prompt.data["number"])]
    assert len(server.requests) == 2
    assert (counted(metrics, LLM_REUSED), counted(metrics, LLM_REPEATED)) == (2, 0)


async def test_a_stored_reply_whose_form_has_changed_is_unusable(ask_of, claim, server):
    await ask_of(claim).one(a_prompt())
    with pytest.raises(UnusableReply, match="another form"):
        await ask_of(claim).one(a_prompt(reply=Count))
    assert len(server.requests) == 1


class _Slow:
    """Tables that take their time, or are away, when a reply is stored."""

    def __init__(self, tables, *, faults=0):
        self._tables = tables
        self._faults = faults
        self.storing = asyncio.Event()
        self.go_on = asyncio.Event()

    def __getattr__(self, name):
        return getattr(self._tables, name)

    async def end_call(self, *args):
        self.storing.set()
        await self.go_on.wait()
        if self._faults:
            self._faults -= 1
            raise TablesUnavailable("away")
        await self._tables.end_call(*args)
