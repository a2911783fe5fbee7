"""Faults, each with its remedy.

```
LaminaError
├── Transient   → RETRY         the dependency is away; waiting mends it
├── Rejected    → DEAD_LETTER   this record can never be processed
└── Fatal       → STOP          this process can never process anything
```

A door translates its library's errors into these once. The guard (`lamina.agents.guard`) is the one
place that acts on the remedy.
"""

from enum import StrEnum
from typing import ClassVar


class Remedy(StrEnum):
    """What the guard does with a fault."""

    RETRY = "retry"
    DEAD_LETTER = "dead_letter"
    STOP = "stop"


class LaminaError(Exception):
    """Root of every fault that Lamina raises on purpose."""

    remedy: ClassVar[Remedy]
    reason: ClassVar[str]
    """Short closed-set name, used as a metric label and in dead letters."""


class Transient(LaminaError):
    """A dependency does not answer now; the same call later may succeed.

    `retry_after` is the delay in seconds that the dependency asked for, where it did.
    """

    remedy = Remedy.RETRY
    reason = "transient"

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BrokerUnavailable(Transient):
    """The broker did not acknowledge a record in time."""

    reason = "broker_unavailable"


class TablesUnavailable(Transient):
    """The database refused, timed out or is locked."""

    reason = "tables_unavailable"


class StoreUnavailable(Transient):
    """The vector store did not answer."""

    reason = "store_unavailable"


class EmbedderUnavailable(Transient):
    """The embedding endpoint did not answer, or asked us to wait."""

    reason = "embedder_unavailable"


class ModelUnavailable(Transient):
    """The language model did not answer in time, refused for now, or its connection broke.

    `paid` are the tokens of an attempt before the one that failed; `in_doubt` says that this one may have
    been paid as well: it was under way, and nobody knows how it ended.
    """

    reason = "model_unavailable"

    def __init__(
        self, message: str, *, retry_after: float | None = None, paid: int = 0, in_doubt: bool = False
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.paid = paid
        self.in_doubt = in_doubt


class BudgetSpent(Transient):
    """The tenant's tokens of this window are spent; `retry_after` is the time to the next one."""

    reason = "budget_spent"


class SandboxBusy(Transient):
    """No process is free to run a program of `deep`."""

    reason = "sandbox_busy"


class Rejected(LaminaError):
    """The record itself is at fault; it is kept, with its bytes and this reason."""

    remedy = Remedy.DEAD_LETTER
    reason = "rejected"


class MalformedRecord(Rejected):
    """Bytes that are not a valid record of the topic: not JSON, not UTF-8, a missing field, a null value."""

    reason = "malformed"


class UnsupportedSchema(Rejected):
    """A record of a schema version newer than this build knows."""

    reason = "newer_schema"


class WrongKey(Rejected):
    """A record whose key is not a namespace (`tenant/user`), or not that of its value."""

    reason = "wrong_key"


class InvalidTurn(Rejected):
    """A turn that breaks a rule of the doors: no content, too much of it, an unknown role."""

    reason = "invalid_turn"


class UnusableReply(Rejected):
    """The language model answered, and the answer cannot be read as what was asked for."""

    reason = "unusable_reply"


class Fatal(LaminaError):
    """Nothing this process does can succeed; an operator must act, and the message says how."""

    remedy = Remedy.STOP
    reason = "fatal"


class WrongDimension(Fatal):
    """The embedder's vectors do not fit the store's."""

    reason = "wrong_dimension"


class Misconfigured(Fatal):
    """A setting, port, folder or topic is not usable as configured."""

    reason = "misconfigured"
