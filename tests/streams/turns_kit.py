"""Turns for the tests of what is extracted from them."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from lamina.streams.namespace import Namespace
from lamina.streams.records import Unit

SAID_AT = datetime(2026, 5, 4, 14, 0, tzinfo=UTC)


def a_turn(text, *, number=1, speaker="Nora", role="user", said_at=None, session="s", **fields):
    return Unit(
        id=UUID(int=number),
        namespace=Namespace("tenant/nora"),
        kind="turn",
        session=session,
        ordinal=number - 1,
        position=number,
        role=role,
        speaker=speaker,
        text=text,
        said_at=said_at or SAID_AT + timedelta(minutes=number),
        recorded_at=SAID_AT,
        **fields,
    )


def turns_of(*texts, **fields):
    return [a_turn(text, number=number, **fields) for number, text in enumerate(texts, start=1)]
