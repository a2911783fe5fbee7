"""The chat model at query time: the same door and the same budget as consolidation, and nothing kept.

A command's reply is stored before it is used, because the command may run again. A question is asked by
somebody who waits for the answer: its reply is read and forgotten. What it may cost is held of the tenant's
budget before the call, and settled after it; a call that a crash or a caller's hang-up ends stays held until
the window passes, since it may have been paid.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from lamina.sinks.replies import all_of, budget_of, read_reply
from lamina.sinks.token_estimate import estimated_prompt
from lamina.streams.errors import Misconfigured, ModelUnavailable, TablesUnavailable
from lamina.streams.journal import Budget
from lamina.streams.llm import Ask, LanguageModel, Prompt, Reader
from lamina.streams.namespace import Namespace, tenant_of
from lamina.streams.ports import Clock, Tables
from lamina.streams.settings import Settings

R = TypeVar("R", bound=BaseModel)

WAITING_PER_PLACE = 32
"""Calls that may wait for each of the `llm_calls_at_once`; one more is refused at once."""
BUSY_SECONDS = 2.0
"""When a caller who was refused may come again."""


def open_reader(model: LanguageModel, tables: Tables, clock: Clock, settings: Settings) -> Reader:
    """Return the reader over a model; who opened the model closes it.

    Args:
        model: answers, and meters what it answers.
        tables: hold the tenants' budgets.
        clock: tells the budget's window.
        settings: the budget, how many calls may be under way at once, and how long one may take or wait.
    """
    line = _Line(settings.llm_calls_at_once, settings.llm_timeout_seconds)
    budget = budget_of(settings)

    def ask(namespace: Namespace) -> Ask:
        return _PassingAsk(tenant_of(namespace), model, tables, clock, settings, budget, line)

    return Reader(model.name, ask)


class _Line:
    """Places for calls under way, and a bounded line of those that wait for one."""

    def __init__(self, places: int, patience_seconds: float) -> None:
        self._places = asyncio.Semaphore(places)
        self._most = places * WAITING_PER_PLACE
        self._patience_seconds = patience_seconds
        self._waiting = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place.

        Raises:
            ModelUnavailable: too many wait already, or none became free in time; nothing was asked.
        """
        if self._waiting >= self._most:
            raise ModelUnavailable(
                f"{self._waiting} calls wait for the language model", retry_after=BUSY_SECONDS
            )
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._places.acquire()
        except TimeoutError as exc:
            late = f"the language model was busy for {self._patience_seconds} s"
            raise ModelUnavailable(late, retry_after=BUSY_SECONDS) from exc
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._places.release()


class _PassingAsk:
    """The `Ask` of one request: every call is paid, none is stored."""

    def __init__(
        self,
        tenant: str,
        model: LanguageModel,
        tables: Tables,
        clock: Clock,
        settings: Settings,
        budget: Budget | None,
        line: _Line,
    ) -> None:
        self._tenant = tenant
        self._model = model
        self._tables = tables
        self._clock = clock
        self._settings = settings
        self._budget = budget
        self._line = line

    async def one(self, prompt: Prompt[R], ordinal: int = 0, *, repair: bool = True) -> R:  # noqa: ARG002
        """Return the reply to a prompt; the ordinal is not looked up.

        What is held of the tenant's budget meanwhile is an estimate of the prompt and all of the longest
        reply; a repair is not held, but settled like the rest.

        Raises:
            ModelUnavailable: no answer, or too many wait for one; nothing is owed but what is in doubt.
            BudgetSpent: the tenant's tokens of this window are spent; nothing was asked.
            UnusableReply: the reply cannot be read.
            Misconfigured: the model's door cannot be used as configured.
            TablesUnavailable: the budget cannot be looked up; nothing was asked.
        """
        async with self._line.place():
            estimate = estimated_prompt(prompt) + prompt.max_tokens + self._settings.llm_thinking_tokens
            held_in = await self._hold(estimate)
            try:
                completion = await self._model.complete(prompt, repair=repair)
            except ModelUnavailable as exc:
                if not exc.in_doubt:
                    await self._settle(held_in, estimate, exc.paid)
                raise
            except Misconfigured:
                await self._settle(held_in, estimate, 0)
                raise
            await self._settle(held_in, estimate, completion.tokens_in + completion.tokens_out)
        return read_reply(prompt, completion)

    async def many(
        self, prompts: Sequence[Prompt[R]], *, first: int = 0, repair: bool = True
    ) -> list[R | Exception]:
        """Ask several prompts, at most `llm_calls_at_once` at a time.

        Returns:
            The replies in order, an `UnusableReply` in the place of one that cannot be read.

        Raises:
            ModelUnavailable, BudgetSpent, Misconfigured, TablesUnavailable: of the first prompt that met it,
                after the others ended.
        """
        most = self._settings.llm_calls_at_once
        return await all_of(
            [partial(self.one, prompt, n, repair=repair) for n, prompt in enumerate(prompts, first)], most
        )

    async def _hold(self, estimate: int) -> datetime | None:
        if self._budget is None:
            return None
        return await self._tables.hold_tokens(self._tenant, estimate, self._budget, self._clock.now())

    async def _settle(self, held_in: datetime | None, estimate: int, paid: int) -> None:
        """Settle what was held; where the tables are away it stays held, and the answer is not lost."""
        if held_in is not None:
            with suppress(TablesUnavailable):
                await self._tables.settle_tokens(self._tenant, held_in, estimate, paid)
