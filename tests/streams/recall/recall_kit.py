"""A memory with vectors, links and clocks that a test sets, over real SQLite tables and an exact store."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

import numpy as np

from lamina.sinks.in_memory import InMemoryStore
from lamina.streams.namespace import namespace_of
from lamina.streams.ports import Point
from lamina.streams.recall.found import Asked, Filters, Sources
from lamina.streams.records import Link, Status, Unit
from lamina.streams.steps.index import leaf_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ADA = namespace_of("t", "ada")
ROOT = UUID("00000000-0000-0000-0000-00000000a11a")
QUESTION = np.array([1.0, 0.0, 0.0], np.float32)


def id_of(name):
    return uuid5(ROOT, name)


def a_unit(name, *, kind="turn", minute=0, **fields):
    return Unit(
        **{
            "id": id_of(name),
            "namespace": ADA,
            "kind": kind,
            "session": "s",
            "ordinal": minute,
            "position": minute + 1,
            "speaker": "ada" if kind == "turn" else "",
            "text": name,
            "said_at": NOON + timedelta(minutes=minute),
            "recorded_at": NOON,
            "status": Status.REMEMBERED,
            **fields,
        }
    )


def archived(name, **fields):
    return a_unit(name, visible=False, **fields)


def at(cosine):
    """Return a vector of that cosine with the question."""
    return np.array([cosine, np.sqrt(1 - cosine**2), 0.0], np.float32)


class Told:
    """An embedder that gives the vectors it was told, by text; it keeps what it was asked."""

    name = "told"
    dimension = 3
    token_width = 0

    def __init__(self):
        self.vectors = {}
        self.texts = []

    async def embed(self, texts: Sequence[str]):
        self.texts += texts
        return np.stack([self.vectors.get(text, at(0.0)) for text in texts]).astype(np.float32)

    async def embed_turns(self, turns):
        raise AssertionError("recall embeds no turns")

    async def close(self):
        pass


class Memory:
    """Tables, a store and an embedder."""

    def __init__(self, tables):
        self.tables = tables
        self.store = InMemoryStore(3)
        self.embedder = Told()

    @property
    def sources(self):
        return Sources(self.store, self.tables, self.embedder)

    async def keep(self, *units: tuple[Unit, float | np.ndarray | None]):
        """Keep units with a vector, or a cosine with the question; None: not in the store."""
        by_namespace: dict[str, list[Unit]] = {}
        for unit, _ in units:
            by_namespace.setdefault(unit.namespace, []).append(unit)
        for namespace, some in by_namespace.items():
            async with self.tables.transaction([namespace]) as tx:
                await tx.insert_units(some)
        await self.point(*units)

    async def point(self, *units):
        await self.store.upsert(
            [
                Point(
                    unit.id,
                    unit.namespace,
                    unit.kind,
                    unit.session,
                    unit.speaker,
                    unit.said_at,
                    at(vector) if isinstance(vector, float) else np.asarray(vector, np.float32),
                    leaf=leaf_of(unit, None) if unit.kind == "turn" else None,
                )
                for unit, vector in units
                if vector is not None
            ]
        )

    async def link(self, *links):
        """Keep (source, type, target) or (source, type, target, weight), by name."""
        async with self.tables.transaction([ADA]) as tx:
            await tx.insert_links(
                [
                    Link(
                        namespace=ADA,
                        source=id_of(source),
                        target=id_of(target),
                        type=kind,
                        weight=weight[0] if weight else 1.0,
                    )
                    for source, kind, target, *weight in links
                ]
            )


def asked(text="?", *, filters=None, top_k=None, namespace=ADA, when=NOON + timedelta(days=1)):
    return Asked(text, QUESTION, namespace, when, filters or Filters(), top_k)


def names(found):
    return [one.unit.text for one in found]
