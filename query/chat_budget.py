"""What chats cost of a tenant's budget: held before the endpoint is asked, settled when its answer is known.

The budget is the one that consolidation and answering share (`LAMINA_LLM_BUDGET_TOKENS`). Where none is set
nothing is held. What cannot be held because the tables are away is let through: a chat never fails because
memory does.
"""

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamina.query.chat_background import Background
from lamina.query.chat_history import Message, text_of
from lamina.query.errors import Refused
from lamina.query.service import Service
from lamina.sinks.replies import budget_of
from lamina.sinks.token_estimate import CHARACTERS_PER_TOKEN, estimated
from lamina.streams.errors import BudgetSpent, TablesUnavailable

REPLY_TOKENS = 1_000
"""Held for a reply whose request does not say how long it may be; what it cost is settled all the same."""

UNPAID = frozenset({"too_many_chats", "upstream_unavailable", "upstream_refused_key"})
"""Reasons of a refusal after which nothing is owed; after the others the endpoint may have been at work."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Held:
    """Tokens that are held for one chat, of an estimate for its prompt and its longest reply."""

    tenant: str
    prompt: int
    estimate: int
    since: datetime | None
    """The window that holds them; None: nothing is held."""
    service: Service
    background: Background

    def settle(self, paid: int) -> None:
        """Replace what is held by what was paid, beside the chat; once."""
        if self.since is not None:
            work = self.service.tables.settle_tokens(self.tenant, self.since, self.estimate, paid)
            self.background.begin(work, _noted)

    def settle_reply(self, usage: int | None, characters: int) -> None:
        """The same for a reply: by what the endpoint said that it cost, else by its length."""
        self.settle(usage or self.prompt + -(-characters // CHARACTERS_PER_TOKEN))


async def hold(
    body: Mapping[str, Any],
    messages: Sequence[Message],
    tenant: str,
    service: Service,
    background: Background,
) -> Held:
    """Hold what a chat may cost.

    Args:
        body: of the request, for how long the reply may be.
        messages: what goes to the model. Their texts are counted; pictures and tools only by what the
            endpoint says in the end.
        tenant: who pays.
        service: the ports.
        background: does the settling.

    Raises:
        Refused: 429, the tenant has spent the window's tokens.
    """
    budget = budget_of(service.settings)
    prompt = estimated(map(text_of, messages)) if budget else 0
    estimate = prompt + _longest_reply(body)
    since = None
    if budget is not None:
        try:
            async with asyncio.timeout(service.settings.chat_memory_seconds):
                since = await service.tables.hold_tokens(tenant, estimate, budget, service.clock.now())
        except BudgetSpent as exc:
            after = {"Retry-After": str(math.ceil(exc.retry_after or 1))}
            raise Refused(429, exc.reason, str(exc), headers=after) from exc
        except (TablesUnavailable, TimeoutError) as exc:
            _LOG.warning("a chat passes without a look at its tenant's budget: %s", exc or "too slow")
    return Held(tenant, prompt, estimate, since, service, background)


def usage_of(reply: object) -> int | None:
    """Return the tokens that an endpoint says a chat cost; None where it does not say."""
    usage = reply.get("usage") if isinstance(reply, Mapping) else None
    total = usage.get("total_tokens") if isinstance(usage, Mapping) else None
    return total if isinstance(total, int) and total > 0 else None


def _longest_reply(body: Mapping[str, Any]) -> int:
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    choices = body.get("n")
    tokens = most if isinstance(most, int) and most > 0 else REPLY_TOKENS
    return tokens * (choices if isinstance(choices, int) and choices > 0 else 1)


def _noted(_: bool) -> None:  # noqa: FBT001  # a callback's one answer; what fails stays held
    return
