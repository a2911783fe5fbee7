"""Leaves as the embedded store keeps them: one text in a point's payload.

A shelf is filled from the texts of a whole namespace while a question waits, so reading one is made cheap: a
payload of many fields takes ten times as long to come out of the engine as a payload of one.

A text is a line of JSON, then the token vectors, one character for each number.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import numpy as np
import orjson
from numpy.typing import NDArray

from lamina.streams.codec import moment_of_seconds
from lamina.streams.late_interaction import TokenVectors
from lamina.streams.ports import Before, Leaf, Point
from lamina.streams.shelf import Entry

_FIRST = np.uint8(35)
"""The character of 0: after the control characters and the quotation mark, which JSON would escape. That of
the largest, `SCALE` of `lamina.streams.late_interaction`, is then 255."""


def text_of(point: Point, leaf: Leaf) -> str:
    """Return what is kept of a turn."""
    head: list[Any] = [point.session, point.speaker, point.said_at.timestamp(), _fields(leaf), None]
    vectors = [leaf.tokens]
    if leaf.before is not None:
        last = leaf.before
        head[-1] = [last.turn.hex, last.speaker, last.said_at.timestamp(), _fields(last.leaf)]
        vectors.append(last.leaf.tokens)
    numbers = [_characters(each.vectors) for each in vectors if each is not None]
    return "\n".join((orjson.dumps(head).decode(), "".join(numbers)))


def entries_of(texts: Iterable[tuple[UUID, str]]) -> list[Entry]:
    """Return what is put on a shelf, given turns with what is kept of them."""
    heads, tails = [], []
    for turn, text in texts:
        head, _, tail = text.partition("\n")
        heads.append((turn, orjson.loads(head)))
        tails.append(tail)
    reader = _Reader(_numbers("".join(tails)))
    return [
        Entry(turn, session, speaker, said_at, reader.leaf(fields, before))
        for turn, (session, speaker, said_at, fields, before) in heads
    ]


def _fields(leaf: Leaf) -> list[Any]:
    if leaf.tokens is None:
        return [leaf.ordinal, " ".join(leaf.stems), leaf.seen, leaf.traits, None, 0, 0]
    pieces = b64encode(leaf.tokens.pieces.astype("<u2").tobytes()).decode()
    count, width = leaf.tokens.vectors.shape
    return [leaf.ordinal, " ".join(leaf.stems), leaf.seen, leaf.traits, pieces, count, width]


class _Reader:
    """Makes leaves of fields, taking their vectors from the numbers of all texts, one after the other."""

    def __init__(self, numbers: NDArray[np.int8]) -> None:
        self._numbers = numbers
        self._at = 0

    def leaf(self, fields: list[Any], before: list[Any] | None) -> Leaf:
        ordinal, stems, seen, traits, pieces, count, width = fields
        tokens = None
        if pieces is not None:
            end = self._at + count * width
            vectors = self._numbers[self._at : end].reshape(count, width)
            self._at = end
            tokens = TokenVectors(np.frombuffer(b64decode(pieces), "<u2"), vectors)
        last = None
        if before is not None:
            turn, speaker, said_at, of_last = before
            leaf = self.leaf(of_last, None)
            last = Before(UUID(turn), speaker, moment_of_seconds(said_at), leaf)
        return Leaf(ordinal, tuple(stems.split()), tuple(seen), tuple(traits), tokens, last)


def _characters(vectors: NDArray[np.int8]) -> str:
    """Write numbers as characters: base64 would be a third longer.

    Small numbers, of either sign, are ASCII and so one byte each: 2·v, or −2·v − 1 where v is negative.
    """
    numbers = vectors.astype(np.int16)
    return (((numbers << 1) ^ (numbers >> 15)).astype(np.uint8) + _FIRST).tobytes().decode("latin-1")


def _numbers(text: str) -> NDArray[np.int8]:
    """Read what `_characters` wrote."""
    numbers = np.frombuffer(text.encode("latin-1"), np.uint8) - _FIRST
    return ((numbers >> 1) ^ -(numbers & 1)).view(np.int8)
