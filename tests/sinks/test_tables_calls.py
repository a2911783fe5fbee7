"""A reply is paid for once and kept; what a tenant spends stays within its budget."""

import asyncio
from datetime import timedelta

import pytest

from lamina.sinks.tables import open_tables
from lamina.streams.errors import BudgetSpent
from lamina.streams.journal import Budget, Cost
from lamina.streams.namespace import Namespace

from .tables_kit import BOB, NOW, a_call, a_command, a_completion, later

HOUR = timedelta(hours=1)
BUDGET = Budget(tokens=1_000, window_seconds=3_600)
WINDOW_ENDS = NOW.replace(hour=13, minute=0, second=0, microsecond=0)


async def test_a_call_that_ended_is_returned_with_its_reply_and_not_asked_again(tables):
    call, reply = a_call(a_command()), a_completion(fault="not JSON")
    begun = await tables.begin_call(call, BUDGET, NOW)
    assert (begun.call, begun.asked, begun.asked_at, begun.completion) == (call, 1, NOW, None)
    await tables.end_call(call, reply, later(1))
    again = await tables.begin_call(call, BUDGET, later(2))
    assert (again.call, again.asked, again.asked_at, again.completion) == (call, 1, NOW, reply)


async def test_calls_of_one_command_are_told_apart_by_purpose_and_ordinal(tables):
    command = a_command()
    calls = [a_call(command), a_call(command, ordinal=1), a_call(command, purpose="diagnose")]
    for number, call in enumerate(calls):
        await tables.begin_call(call, None, later(number))
        await tables.end_call(call, a_completion(text=f'"{number}"'), later(number))
    for number, call in enumerate(calls):
        assert (await tables.begin_call(call, None, NOW)).completion.text == f'"{number}"'
    await tables.admit_commands([command])
    replies = (await tables.journal_entry(command.id)).replies
    assert [reply.call for reply in replies] == calls


async def test_a_call_that_a_crash_took_is_begun_again_and_says_so(tables):
    command = a_command()
    call = a_call(command)
    await tables.begin_call(call, BUDGET, NOW)
    again = await tables.begin_call(a_call(command, version=2), BUDGET, later(5))
    assert (again.asked, again.asked_at, again.call.version, again.completion) == (2, later(5), 2, None)
    assert await tables.spent("acme", BUDGET, NOW) == call.estimate  # held once


async def test_a_call_that_got_no_reply_is_taken_back_but_for_what_it_paid(tables):
    call = a_call(a_command(), estimate=700)
    await tables.begin_call(call, BUDGET, NOW)
    await tables.withdraw_call(call, paid=30)
    assert await tables.spent("acme", BUDGET, NOW) == 30
    assert (await tables.begin_call(call, BUDGET, NOW)).asked == 1
    assert await tables.spent("acme", BUDGET, NOW) == 730


async def test_a_call_that_a_crash_took_stays_in_doubt_when_its_repetition_is_taken_back(tables):
    call = a_call(a_command())
    await tables.begin_call(call, BUDGET, NOW)
    await tables.begin_call(call, BUDGET, NOW)
    await tables.withdraw_call(call, paid=0)
    assert (await tables.begin_call(call, BUDGET, NOW)).asked == 2


async def test_a_reply_is_never_taken_back(tables):
    call = a_call(a_command())
    await tables.begin_call(call, BUDGET, NOW)
    await tables.end_call(call, a_completion(), NOW)
    await tables.withdraw_call(call, paid=0)
    assert (await tables.begin_call(call, BUDGET, NOW)).completion == a_completion()
    assert await tables.spent("acme", BUDGET, NOW) == 50


async def test_a_reply_belongs_to_the_words_it_answers(tables):
    command = a_command()
    await tables.begin_call(a_call(command, digest="one"), BUDGET, NOW)
    await tables.end_call(a_call(command, digest="one"), a_completion(), NOW)
    assert (await tables.begin_call(a_call(command, digest="two"), BUDGET, NOW)).completion is None
    assert (await tables.begin_call(a_call(command, digest="one"), BUDGET, NOW)).completion == a_completion()


async def test_the_first_reply_stands(tables):
    call = a_call(a_command())
    await tables.begin_call(call, BUDGET, NOW)
    await tables.end_call(call, a_completion(text='"first"'), NOW)
    await tables.end_call(call, a_completion(text='"second"'), NOW)
    assert (await tables.begin_call(call, BUDGET, NOW)).completion.text == '"first"'
    assert await tables.spent("acme", BUDGET, NOW) == 50


async def test_a_reply_settles_what_was_held_to_what_it_cost(tables):
    command = a_command()
    await tables.begin_call(a_call(command, estimate=700), BUDGET, NOW)
    assert await tables.spent("acme", BUDGET, NOW) == 700
    with pytest.raises(BudgetSpent) as spent:
        await tables.begin_call(a_call(command, ordinal=1, estimate=400), BUDGET, NOW)
    assert spent.value.retry_after == (WINDOW_ENDS - NOW).total_seconds()
    await tables.end_call(a_call(command), a_completion(tokens_in=500, tokens_out=90), NOW)
    assert await tables.spent("acme", BUDGET, NOW) == 590
    refused = await tables.begin_call(a_call(command, ordinal=1, estimate=400), BUDGET, NOW)
    assert refused.asked == 1  # nothing was recorded when it did not fit
    assert await tables.spent("acme", BUDGET, NOW) == 990
    assert await tables.spent("other", BUDGET, NOW) == 0


async def test_the_next_window_has_its_own_budget(tables):
    command = a_command()
    await tables.begin_call(a_call(command, estimate=1_000), BUDGET, NOW)
    with pytest.raises(BudgetSpent):
        await tables.begin_call(a_call(command, ordinal=1), BUDGET, WINDOW_ENDS - timedelta(seconds=1))
    assert (await tables.begin_call(a_call(command, ordinal=1), BUDGET, WINDOW_ENDS)).asked == 1
    assert await tables.spent("acme", BUDGET, WINDOW_ENDS) == 100
    # What the first window began ends in the second, and is settled where it was held.
    await tables.end_call(a_call(command), a_completion(), WINDOW_ENDS)
    assert await tables.spent("acme", BUDGET, NOW) == 50
    assert await tables.spent("acme", BUDGET, WINDOW_ENDS) == 100


async def test_a_call_begun_again_in_a_later_window_is_held_there(tables):
    call = a_call(a_command())
    await tables.begin_call(call, BUDGET, NOW)
    assert (await tables.begin_call(call, BUDGET, NOW + HOUR)).asked == 2
    await tables.end_call(call, a_completion(), NOW + HOUR)
    assert await tables.spent("acme", BUDGET, NOW) == call.estimate  # it may have been paid then, too
    assert await tables.spent("acme", BUDGET, NOW + HOUR) == 50


async def test_a_budget_smaller_than_one_call_does_not_block_for_ever(tables):
    command, small = a_command(), Budget(10, 3_600)
    assert (await tables.begin_call(a_call(command), small, NOW)).asked == 1
    with pytest.raises(BudgetSpent):
        await tables.begin_call(a_call(command, ordinal=1), small, NOW)
    assert (await tables.begin_call(a_call(command, ordinal=1), small, NOW + HOUR)).asked == 1


async def test_without_a_budget_nothing_is_held_and_the_reply_is_kept(tables):
    call = a_call(a_command(), estimate=10**9)
    await tables.begin_call(call, None, NOW)
    await tables.end_call(call, a_completion(), NOW)
    assert (await tables.begin_call(call, None, NOW)).completion == a_completion()
    assert await tables.spent("acme", BUDGET, NOW) == 0


async def test_of_two_workers_at_the_end_of_a_budget_one_passes(database_url):
    workers = [await open_tables(database_url) for _ in range(2)]
    for round_ in range(5):
        at = NOW + round_ * HOUR
        await workers[0].begin_call(a_call(a_command(), estimate=850), BUDGET, at)
        calls = [a_call(a_command()) for _ in workers]
        outcomes = await asyncio.gather(
            *(tables.begin_call(call, BUDGET, at) for tables, call in zip(workers, calls, strict=True)),
            return_exceptions=True,
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["BudgetSpent", "StoredReply"]
        assert await workers[0].spent("acme", BUDGET, at) == 950
    for tables in workers:
        await tables.close()


async def test_two_workers_at_the_same_place_hold_its_estimate_once(database_url):
    workers = [await open_tables(database_url) for _ in range(2)]
    call = a_call(a_command())
    begun = await asyncio.gather(*(tables.begin_call(call, BUDGET, NOW) for tables in workers))
    assert sorted(reply.asked for reply in begun) == [1, 2]
    assert await workers[0].spent("acme", BUDGET, NOW) == call.estimate
    for tables in workers:
        await tables.close()


async def test_costs_are_summed_by_tenant_purpose_and_model(tables):
    mine, theirs = a_command(), a_command(Namespace("acme-2/ann"))
    calls = [
        a_call(mine),
        a_call(mine, ordinal=1),
        a_call(a_command(BOB), purpose="diagnose"),
        a_call(theirs),
    ]
    for call in calls:
        await tables.begin_call(call, None, NOW)
        await tables.end_call(call, a_completion(attempts=2), NOW)
    await tables.begin_call(a_call(mine, ordinal=2), None, NOW)  # in flight: it has no price yet
    two = Cost("acme", "consolidate", "tiny-2", None, 2, 4, 60, 40, 1.0)
    one = Cost("acme", "diagnose", "tiny-2", None, 1, 2, 30, 20, 0.5)
    assert await tables.costs("acme/") == [two, one]
    assert await tables.costs(BOB) == [one]
    everything = await tables.costs()
    assert [(cost.tenant, cost.calls) for cost in everything] == [("acme", 2), ("acme", 1), ("acme-2", 1)]
    assert [(cost.command, cost.calls) for cost in await tables.costs("", [mine.id])] == [(mine.id, 2)]
    assert await tables.costs("", []) == []
