"""Replies kept: every call of a command goes through its place in the journal, so none is paid for twice.

A call is written down before it is made (`Tables.begin_call`) and its reply before it is read
(`Tables.end_call`). Whatever happens between, the next run finds either the reply, and uses it, or a call
that was begun and never ended, and makes that one again: the only one that may be paid for twice. A call
that certainly got no reply (429, 5xx, no connection) is taken back.

The prompt's digest is a part of the place. A command that waited may meet other material when it runs again,
and a reply speaks of its material by number: used on another, it would archive the wrong unit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import TypeVar

import orjson
from pydantic import BaseModel, ValidationError
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay
from tenacity.wait import wait_exponential_jitter

from lamina.sinks.token_estimate import estimated_prompt
from lamina.streams.errors import Misconfigured, ModelUnavailable, TablesUnavailable, UnusableReply
from lamina.streams.journal import Budget, Call
from lamina.streams.llm import Ask, Completion, LanguageModel, Prompt
from lamina.streams.metrics import LLM_REPEATED, LLM_REUSED
from lamina.streams.ports import ORDINALS_PER_ATTEMPT, Claim, Clock, Metrics, Tables
from lamina.streams.settings import Settings

R = TypeVar("R", bound=BaseModel)


def asking(
    model: LanguageModel, tables: Tables, clock: Clock, metrics: Metrics, settings: Settings
) -> Callable[[Claim], Ask]:
    """Return what gives each claimed command its way to the model.

    Args:
        model: answers what is not stored yet.
        tables: hold replies and budgets.
        clock: tells the budget's window.
        metrics: count replies used again and calls begun again.
        settings: the tenant's budget, and how many calls may be on their way at once.
    """
    budget = budget_of(settings)

    def asked_for(claim: Claim) -> Ask:
        return _StoredAsk(claim, model, tables, clock, metrics, settings, budget)

    return asked_for


def budget_of(settings: Settings) -> Budget | None:
    """Return what a tenant may spend; None where there is no limit."""
    if not settings.llm_budget_tokens:
        return None
    return Budget(settings.llm_budget_tokens, settings.llm_budget_window_seconds)


class _StoredAsk:
    """The `Ask` of one claimed command."""

    def __init__(
        self,
        claim: Claim,
        model: LanguageModel,
        tables: Tables,
        clock: Clock,
        metrics: Metrics,
        settings: Settings,
        budget: Budget | None,
    ) -> None:
        self._claim = claim
        self._model = model
        self._tables = tables
        self._clock = clock
        self._metrics = metrics
        self._settings = settings
        self._budget = budget

    async def one(self, prompt: Prompt[R], ordinal: int = 0, *, repair: bool = True) -> R:
        """Return the reply to the command's prompt of this purpose and ordinal, stored or new.

        What is held of the tenant's budget meanwhile is an estimate of the prompt and all of the longest
        reply; a repair is not held, but settled like the rest.

        Raises:
            ModelUnavailable: wait and call again; nothing was paid, or perhaps where it is `in_doubt`.
            BudgetSpent: the same; nothing was paid.
            UnusableReply: the stored or new reply cannot be read.
            Misconfigured: the model's door cannot be used as configured.
            TablesUnavailable: the journal does not answer. Where that loses a paid reply, after
                `retry_max_seconds` of trying, the call is made again and counted as repeated.
        """
        call = self._call(prompt, ordinal)
        stored = await self._tables.begin_call(call, self._budget, self._clock.now())
        if stored.completion is not None:
            self._metrics.count(LLM_REUSED, purpose=prompt.purpose)
            return read_reply(prompt, stored.completion)
        if stored.asked > 1:
            self._metrics.count(LLM_REPEATED, purpose=prompt.purpose)
        try:
            completion = await self._model.complete(prompt, repair=repair)
        except (ModelUnavailable, Misconfigured) as exc:
            await self._withdraw(call, exc)
            raise
        await self._store(call, completion)
        return read_reply(prompt, completion)

    async def many(
        self, prompts: Sequence[Prompt[R]], *, first: int = 0, repair: bool = True
    ) -> list[R | Exception]:
        """Ask several prompts, at most `llm_calls_at_once` at a time (ordinals from `first`).

        Returns:
            The replies in order, an `UnusableReply` in the place of one that cannot be read.

        Raises:
            ModelUnavailable, BudgetSpent, Misconfigured, TablesUnavailable: of the first prompt that met it,
                after the others ended and were stored.
        """
        most = self._settings.llm_calls_at_once
        return await all_of(
            [partial(self.one, prompt, n, repair=repair) for n, prompt in enumerate(prompts, first)], most
        )

    def _call(self, prompt: Prompt[R], ordinal: int) -> Call:
        command = self._claim.command
        return Call(
            command=command.id,
            namespace=command.namespace,
            purpose=prompt.purpose,
            ordinal=self._claim.attempts * ORDINALS_PER_ATTEMPT + ordinal,
            version=prompt.version,
            model=self._model.name,
            estimate=estimated_prompt(prompt) + prompt.max_tokens + self._settings.llm_thinking_tokens,
            digest=_digest(prompt),
        )

    async def _withdraw(self, call: Call, fault: ModelUnavailable | Misconfigured) -> None:
        """Take a call back that was certainly not answered; one in doubt stays begun, and held."""
        if isinstance(fault, ModelUnavailable) and fault.in_doubt:
            return
        with suppress(TablesUnavailable):  # then it counts as in doubt
            await self._tables.withdraw_call(call, fault.paid if isinstance(fault, ModelUnavailable) else 0)

    async def _store(self, call: Call, completion: Completion) -> None:
        """Store a paid reply: through a cancellation, and through an absence of the tables that passes."""
        storing = asyncio.ensure_future(self._stored(call, completion))
        try:
            await asyncio.shield(storing)
        except asyncio.CancelledError:
            with suppress(TablesUnavailable):
                await storing
            raise

    async def _stored(self, call: Call, completion: Completion) -> None:
        trying = AsyncRetrying(
            retry=retry_if_exception_type(TablesUnavailable),
            stop=stop_after_delay(self._settings.retry_max_seconds),
            wait=wait_exponential_jitter(multiplier=0.1, max=self._settings.retry_max_seconds, jitter=0.1),
            reraise=True,
        )
        async for attempt in trying:
            with attempt:
                await self._tables.end_call(call, completion, self._clock.now())


def _digest(prompt: Prompt[R]) -> str:
    """Return what tells this question from any other: version, words and material."""
    asked = orjson.dumps([prompt.version, *(message["content"] for message in prompt.messages)])
    return blake2b(asked, digest_size=16).hexdigest()


async def all_of(calls: Sequence[Callable[[], Awaitable[R]]], at_once: int) -> list[R | Exception]:
    """Make calls, at most `at_once` at a time, and return their replies in order.

    An `UnusableReply` stands in the place of a reply that cannot be read. Whatever else is raised passes
    through, that of the first call that met it, after the others ended.
    """
    places = asyncio.Semaphore(at_once)

    async def made(call: Callable[[], Awaitable[R]]) -> R:
        async with places:
            return await call()

    outcomes = await asyncio.gather(*map(made, calls), return_exceptions=True)
    replies: list[R | Exception] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, UnusableReply):
            raise outcome
        replies.append(outcome)
    return replies


def read_reply(prompt: Prompt[R], completion: Completion) -> R:
    """Return a reply in its form.

    Raises:
        UnusableReply: it has a fault, or was stored when replies to this version had another form.
    """
    if completion.fault:
        raise UnusableReply(f"{prompt.purpose}: {completion.fault}")
    try:
        return prompt.reply.model_validate_json(completion.text)
    except ValidationError as exc:
        raise UnusableReply(
            f"{prompt.purpose}: the stored reply has another form than version {prompt.version}"
        ) from exc
