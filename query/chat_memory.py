"""What a chat asks of memory: what is not remembered yet, to remember it, to recall.

Turns are accepted exactly as `POST /v1/memories` accepts them (`lamina.query.accept`). With them are made
*marks* (`lamina.query.chat_history`), for the last message of each request and for its reply: a message that
is marked, and all before it in its conversation, was accepted. So a history that comes again is known by its
end, and what an outage left out is remembered when the client sends it the next time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from lamina.query.accept import accept
from lamina.query.answer_models import ContextRequest
from lamina.query.chat_history import Spoken, again, fitting, reply_to
from lamina.query.chat_request import Whose
from lamina.query.models import MAX_MESSAGES, MAX_QUERY_CHARACTERS, AddMemories, Message
from lamina.query.recall import context
from lamina.query.service import Service
from lamina.streams.identity import event_id_for_key

SAME_REQUEST = timedelta(minutes=30)
"""The same request within this time is a retry, or asks for another reply: what it says was said once."""

_LATEST = 8
"""Messages at the end of a history that are looked for first: mostly the reply before is known."""

_AT_ONCE = 1000
"""Then so many at a time."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of what was said: all accepted, but for what no turn can hold."""

    event: UUID | None = None
    """Of the request's own message."""
    last_id: str | None = None
    """The id under which that was remembered."""
    left_out: int = 0
    """Messages of more than 256 KB."""


async def unseen(spoken: Sequence[Spoken], whose: Whose, service: Service) -> list[Spoken]:
    """Return the messages at the end that no earlier request brought, in order.

    Raises:
        TablesUnavailable: nobody knows.
    """
    stop, size = len(spoken), _LATEST
    while stop:
        start = max(0, stop - size)
        ids = [_mark_id(one.marks.sought, whose) for one in spoken[start:stop]]
        marked = await service.tables.marked(ids)
        known = [index for index, one in enumerate(ids, start) if one in marked]
        if known:
            return list(spoken[known[-1] + 1 :])
        stop, size = start, _AT_ONCE
    return list(spoken)


async def remember_said(
    spoken: Sequence[Spoken], missing: Sequence[Spoken], fresh: Spoken | None, whose: Whose, service: Service
) -> Kept:
    """Accept what a request says for the first time.

    Args:
        spoken: all that its history says.
        missing: what of it no earlier request brought.
        fresh: its own message; where the very request came before, it is told from a retry by time.
        whose: the memory.
        service: the ports.

    Raises:
        LaminaError: as `accept` does; nothing is marked, so the next request brings it again.
    """
    old = [one for one in missing if one is not fresh]
    said = [*old, *([fresh] if fresh else [])]
    whole = fitting(old)
    parts = [whole[first : first + MAX_MESSAGES] for first in range(0, len(whole), MAX_MESSAGES)]
    own = fitting([fresh] if fresh else [])
    # Made with what is accepted last: everything before it was accepted then.
    marks = _marks_of(spoken[-1], whose) if said else []
    for number, part in enumerate(parts, 1):
        is_last = number == len(parts) and not own
        await _accept(part, whose, service, marks if is_last else [])
    event = last_id = None
    if own:
        last_id = await _id_now(own[0], whose, service)
        event = await _accept(own, whose, service, marks, last_id)
    elif marks and not parts:
        await service.tables.mark(whose.namespace, marks, service.clock.now())
    return Kept(event, last_id, len(said) - len(whole) - len(own))


async def remember_reply(
    text: str, spoken: Sequence[Spoken], kept: Kept, whose: Whose, service: Service
) -> bool:
    """Accept the model's reply to a request whose own words are remembered; False: it has no words.

    Raises:
        LaminaError: as `accept` does; the next request brings the reply again.
    """
    reply = reply_to(spoken, text, kept.last_id)
    if reply is None:
        return False
    await _accept([reply], whose, service, _marks_of(reply, whose))
    return True


async def recalled(question: str, whose: Whose, service: Service) -> str:
    """Return what memory holds on a question, packed as `POST /v1/context` packs it; empty: nothing.

    Raises:
        LaminaError: memory does not answer.
    """
    body = ContextRequest(
        query=question[:MAX_QUERY_CHARACTERS],
        user_id=whose.user,
        max_tokens=service.settings.chat_context_tokens,
    )
    return (await context(body, whose.tenant, service)).context


async def _accept(
    some: Sequence[Spoken],
    whose: Whose,
    service: Service,
    marks: Sequence[UUID],
    message_id: str | None = None,
) -> UUID:
    ids = [message_id or one.id for one in some]
    body = AddMemories(
        messages=[
            Message(role=one.role, content=one.text, name=one.name, message_id=own)
            for one, own in zip(some, ids, strict=True)
        ],
        user_id=whose.user,
        run_id=whose.run,
    )
    # An id names everything said before it, so the last one names the whole request.
    key = ids[-1] if len(some) == 1 else f"{ids[0]} {ids[-1]}"
    return (await accept(body, key, whose.tenant, service, marks)).event_id


async def _id_now(fresh: Spoken, whose: Whose, service: Service) -> str:
    """Return the id for a request's own message: its own, unless the very request came long before."""
    now = service.clock.now()
    period = int(now.timestamp() // SAME_REQUEST.total_seconds())
    newest = again(fresh.id, str(period))
    events = {
        candidate: event_id_for_key(whose.tenant, candidate)
        for candidate in (fresh.id, newest, again(fresh.id, str(period - 1)))
    }
    before = await service.tables.requests(events.values())
    if events[fresh.id] not in before:
        return fresh.id
    for candidate, event in events.items():
        known = before.get(event)
        if known is not None and now - known.accepted_at <= SAME_REQUEST:
            return candidate
    return newest


def _marks_of(one: Spoken, whose: Whose) -> list[UUID]:
    return [_mark_id(mark, whose) for mark in (one.marks.near, one.marks.alone)]


def _mark_id(mark: str, whose: Whose) -> UUID:
    return event_id_for_key(whose.tenant, f"chat-mark:{mark}")
