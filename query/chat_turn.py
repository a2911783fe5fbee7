"""One chat request and memory: what goes to the model, and what becomes of what was said."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from lamina.query.chat_background import Background, Outcome, outcome_of
from lamina.query.chat_history import Message, Spoken, fresh_in, spoken_in
from lamina.query.chat_memory import Kept, recalled, remember_reply, remember_said, unseen
from lamina.query.chat_request import Chat, Whose
from lamina.query.chat_window import Given, arranged
from lamina.query.service import Service
from lamina.streams.metrics import CHATS, CHATS_REMEMBERED

CONTEXT_HEADER = "X-Lamina-Context"
REMEMBERED_HEADER = "X-Lamina-Remembered"
FAULT_HEADER = "X-Lamina-Fault"
EVENT_HEADER = "X-Lamina-Event-Id"

LONGEST_FAULT = 300
"""Characters of a fault that a header repeats."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Turn:
    """A request on its way: its messages for the model, and memory's work beside it."""

    messages: Sequence[Message]
    given: Given
    whose: Whose | None
    spoken: Sequence[Spoken]
    said: asyncio.Future[Outcome[Kept]] | None
    """None where nothing is to be remembered."""
    fault: str | None
    service: Service
    background: Background

    async def outcome_of_said(self) -> Outcome[Kept]:
        """Wait a moment for what was said to be accepted."""
        if self.said is None:
            return Outcome(fault=self.fault)
        return await self._in_time(self.said)

    async def outcome_of_reply(self, text: str, said: Outcome[Kept]) -> Outcome[bool]:
        """Accept the reply, if what it answers was: a client that hangs up meanwhile does not undo it."""
        if said.value is None or self.whose is None:
            return Outcome(fault=said.fault)
        work = remember_reply(text, self.spoken, said.value, self.whose, self.service)
        return await self._in_time(self.background.begin(work, _noting("reply", self.service)))

    async def _in_time(self, work: asyncio.Future[Outcome[T]]) -> Outcome[T]:
        """Wait no longer than a chat may wait; the work goes on."""
        outcome = await outcome_of(asyncio.shield(work), self.service.settings.chat_memory_seconds)
        return Outcome(fault=outcome.fault) if outcome.value is None else outcome.value

    def headers(self, said: Outcome[Kept], reply: Outcome[bool] | None = None) -> dict[str, str]:
        """Tell a client what memory did."""
        headers: dict[str, str] = {CONTEXT_HEADER: self.given}
        if self.whose is None:
            return headers
        kept = [name for name, one in (("said", said.value), ("reply", reply and reply.value)) if one]
        headers[REMEMBERED_HEADER] = ", ".join(kept) or "nothing"
        if said.value is not None and said.value.event is not None:
            headers[EVENT_HEADER] = str(said.value.event)
        left_out = said.value.left_out if said.value else 0
        faults = [
            self.fault,
            said.fault,
            reply.fault if reply else None,
            f"{left_out} messages of more than 256 KB are not remembered" if left_out else None,
        ]
        sentence = "; ".join(dict.fromkeys(fault for fault in faults if fault))
        if sentence:
            headers[FAULT_HEADER] = header_of(sentence)
        return headers


async def prepare(chat: Chat, service: Service, background: Background) -> Turn:
    """Ask memory, choose what the model sees, and begin to remember what was said. Raises no fault of memory.

    Memory is asked first: what a request says is no answer to itself.
    """
    turn = await _prepared(chat, service, background)
    service.metrics.count(CHATS, context=turn.given)
    return turn


async def _prepared(chat: Chat, service: Service, background: Background) -> Turn:
    if chat.whose is None:
        return Turn(chat.messages, "off", None, (), None, None, service, background)
    spoken = spoken_in(chat.whose.conversation, chat.messages)
    fresh = fresh_in(spoken, chat.messages)
    older = spoken[:-1] if fresh is not None else spoken
    settings = service.settings
    missing = await outcome_of(unseen(older, chat.whose, service), settings.chat_memory_seconds)
    if missing.value is None:
        return Turn(
            chat.messages, "unavailable", chat.whose, spoken, None, missing.fault, service, background
        )
    whose, fault = chat.whose, None

    async def recall(question: str) -> str | None:
        nonlocal fault
        found = await outcome_of(recalled(question, whose, service), settings.chat_memory_seconds)
        fault = found.fault
        return found.value

    given = await arranged(
        chat.messages,
        recall,
        missing=[one.index for one in missing.value],
        threshold=settings.chat_threshold_characters,
        last=settings.chat_last_messages,
        always=settings.chat_recall == "always",
    )
    said = None
    if chat.writes:
        work = remember_said(spoken, missing.value, fresh, whose, service)
        said = background.begin(work, _noting("said", service))
    return Turn(given.messages, given.given, whose, spoken, said, fault, service, background)


def _noting(what: Literal["said", "reply"], service: Service) -> Callable[[bool], None]:
    """Return what counts whether memory took something."""

    def note(kept: bool) -> None:  # noqa: FBT001  # a callback's one answer
        outcome = "kept" if kept else "failed"
        service.metrics.count(CHATS_REMEMBERED, what=what, outcome=outcome)

    return note


def header_of(sentence: str) -> str:
    """Return a sentence as a header can carry it: one line, ASCII, not long."""
    return " ".join(sentence.split()).encode("ascii", "replace").decode()[:LONGEST_FAULT]
