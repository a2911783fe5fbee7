"""Fill tables and store with many namespaces of turns, as the pipeline would leave them, only faster.

Embedding every turn would take most of the time, so vectors come from a pool: `POOL` turns are embedded for
real, each in the light of the one before, and every unit says the text of one of them with a number of its
own. Its vector is the pool's, moved a little, so that no two units lie at the same distance of a question.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lamina.bench.latency_texts import SPEAKERS, turns
from lamina.streams.codec import Matrix, Vector
from lamina.streams.identity import turn_id_from_message
from lamina.streams.late_interaction import TokenVectors
from lamina.streams.namespace import Namespace, namespace_of
from lamina.streams.records import Link, Status, Unit
from lamina.streams.steps.index import index, leaf_of
from lamina.streams.steps.ports import Ports

POOL = 2_000
"""Turns that are embedded for real."""
BLOCK = 256
"""Units written in one transaction."""
SESSION = 22
"""Turns of a session: LoCoMo's mean."""
MOVED = 0.1
"""Length of what is added to a vector before it has unit length again: a cosine of 0.995 to the pool's."""

_BEGINNING = datetime(2023, 1, 1, 9, tzinfo=UTC)
_LARGE, _SMALL = "large", "small"


@dataclass(frozen=True, slots=True)
class Layout:
    """How many units there are and how they are spread: one large namespace and many small ones."""

    large: int
    """Units of the large namespace."""
    small: int
    """Units of each small one."""
    smalls: int
    """How many small ones."""

    @classmethod
    def of(cls, units: int) -> "Layout":
        """Spread units as the issue states it: a fifth in one namespace, the rest in ones of 200."""
        return cls(units // 5, 200, (units - units // 5) // 200)

    @property
    def units(self) -> int:
        """All units together."""
        return self.large + self.small * self.smalls

    def users(self, size: int) -> tuple[str, ...]:
        """Return the users whose namespaces have `size` units."""
        large = (_LARGE,) if size == self.large else ()
        return large + (tuple(f"{_SMALL}-{n}" for n in range(self.smalls)) if size == self.small else ())


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """Turns with their vectors, row by row."""

    texts: Sequence[str]
    vectors: Matrix
    tokens: tuple[TokenVectors, ...]
    """Empty where the embedder gives none."""


async def fill(layout: Layout, ports: Ports, told: Callable[[int], None]) -> None:
    """Write every unit of a layout, with its temporal link, and copy it to the store.

    Args:
        layout: what is written; users are of the settings' tenant.
        ports: empty tables and an empty store.
        told: of the number of units of each block.

    Raises:
        EmbedderUnavailable, TablesUnavailable, StoreUnavailable: something does not answer.
    """
    pool = await _pool(ports)
    chance = np.random.default_rng(1)
    for size in sorted({layout.large, layout.small}, reverse=True):
        for user in layout.users(size):
            namespace = namespace_of(ports.settings.tenant, user)
            first = int(chance.integers(len(pool.texts)))
            for begin in range(0, size, BLOCK):
                places = range(begin, min(begin + BLOCK, size))
                await _write(namespace, places, first, pool, chance, ports)
                told(len(places))


async def _pool(ports: Ports) -> _Pool:
    texts = turns(POOL)
    spoken = [f"{SPEAKERS[n % len(SPEAKERS)]}: {text}" for n, text in enumerate(texts)]
    embedded = await ports.embedder.embed_turns(list(zip([None, *spoken[:-1]], spoken, strict=True)))
    return _Pool(texts, embedded.turn, embedded.tokens or ())


async def _write(
    namespace: Namespace, places: range, first: int, pool: _Pool, chance: np.random.Generator, ports: Ports
) -> None:
    """Write some turns of a namespace; place n says the pool's text `first` + n."""
    rows = [(first + n) % len(pool.texts) for n in places]
    moved = pool.vectors[rows] + _directions(chance, len(rows), pool.vectors.shape[1]) * MOVED
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    units = [_unit(namespace, n, f"{pool.texts[row]} ({n})") for n, row in zip(places, rows, strict=True)]
    links = [
        Link(
            namespace=namespace,
            source=unit.id,
            target=turn_id_from_message(namespace, str(n - 1)),
            type="temporal",
        )
        for n, unit in zip(places, units, strict=True)
        if n % SESSION
    ]
    async with ports.tables.transaction([namespace]) as tx:
        await tx.advance(namespace, len(units))
        await tx.insert_units(units)
        await tx.insert_links(links)
    ids = [unit.id for unit in units]
    vectors: dict[UUID, Vector] = dict(zip(ids, moved.astype(np.float32), strict=True))
    leaves = {
        unit.id: leaf_of(unit, pool.tokens[row] if pool.tokens else None)
        for unit, row in zip(units, rows, strict=True)
    }
    await index([namespace], vectors, ports, leaves=leaves)


def _unit(namespace: Namespace, place: int, text: str) -> Unit:
    at = _BEGINNING + timedelta(days=place // SESSION, minutes=place % SESSION)
    return Unit(
        id=turn_id_from_message(namespace, str(place)),
        namespace=namespace,
        kind="turn",
        session=f"session_{place // SESSION}",
        ordinal=place % SESSION,
        position=place + 1,
        role="user" if place % 2 == 0 else "assistant",
        speaker=SPEAKERS[place % len(SPEAKERS)],
        text=text,
        said_at=at,
        recorded_at=at,
        status=Status.REMEMBERED,
        score=0.5,
        reason="novel",
    )


def _directions(chance: np.random.Generator, rows: int, dimension: int) -> NDArray[np.float64]:
    """Return rows of unit length."""
    drawn = chance.standard_normal((rows, dimension))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return drawn
