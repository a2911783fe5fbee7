"""What `embedded` carries: vectors in the headers, read back as they were written."""

from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID

import numpy as np
import pytest

from lamina.agents.embed import from_record, to_record
from lamina.streams.errors import MalformedRecord
from lamina.streams.late_interaction import TokenVectors, quantised
from lamina.streams.namespace import namespace_of
from lamina.streams.records import Embedded, Unit
from lamina.streams.steps.embed import EmbeddedTurn

ADA = namespace_of("t", "ada")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def a_turn(tokens, before=None):
    unit = Unit(
        id=UUID(int=1), namespace=ADA, kind="turn", session="s", text="Hi", said_at=NOON, recorded_at=NOON
    )
    dense = np.array([0.6, 0.8], np.float32)
    return EmbeddedTurn(Embedded(unit=unit), dense, dense[::-1].copy(), tokens, before)


def message_of(record, **headers):
    return SimpleNamespace(
        key=record.key.encode(), value=record.value, headers=list({**record.headers, **headers}.items())
    )


def test_a_turn_is_read_as_it_was_written():
    tokens = TokenVectors(np.array([7, 300], np.uint16), quantised(np.eye(3, 4, dtype=np.float32)))
    turn = a_turn(tokens, TokenVectors(np.array([9], np.uint16), quantised(np.eye(1, 4, dtype=np.float32))))
    read = from_record(message_of(to_record(turn)), 2, 4)
    assert read.record == turn.record
    assert read.dense.tolist() == turn.dense.tolist()
    assert read.exchange.tolist() == turn.exchange.tolist()
    assert read.tokens.pieces.tolist() == [7, 300]
    assert np.array_equal(read.tokens.vectors, tokens.vectors)
    assert np.array_equal(read.before.vectors, turn.before.vectors)
    assert read.before.pieces.tolist() == [9]


def test_a_turn_without_tokens_is_read_whatever_the_embedder_gives():
    assert from_record(message_of(to_record(a_turn(None))), 2, 4).tokens is None
    assert from_record(message_of(to_record(a_turn(None))), 2, 0).tokens is None


def test_tokens_of_another_width_go_to_the_dead_letters():
    record = to_record(a_turn(None))
    with pytest.raises(MalformedRecord, match="4 int8"):
        from_record(message_of(record, tokens=b"12345", **{"tokens-pieces": b"ab"}), 2, 4)
