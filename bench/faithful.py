"""Two ways of building memory that pay one call for every turn: All-Mem's, and the eager one of Mem0.

Both keep the pipeline's gate step (off: it only gives turns their place) and its `remember`, with no exchange
to count, so that turns lie in the same tables and the same store as in every other mode.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from pydantic import BaseModel

from lamina.bench.counted import CountedModel
from lamina.streams.identity import derived_id
from lamina.streams.llm import Prompt
from lamina.streams.prompts import describe, extract
from lamina.streams.prompts.refine import Fact
from lamina.streams.records import Admitted, Embedded, Link, Placement, Unit
from lamina.streams.resolution import read
from lamina.streams.steps.embed import EmbeddedTurn, embed
from lamina.streams.steps.gate import gate
from lamina.streams.steps.index import index
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.remember import RecurrenceCache, remember

R = TypeVar("R", bound=BaseModel)


class Described:
    """All-Mem's writing (§3.2, app. C.1): every turn is described, and its descriptor is what is embedded."""

    def __init__(self, ports: Ports, model: CountedModel) -> None:
        self._ports = ports
        self._model = model
        self._cache = RecurrenceCache(ports.settings.recurrence_cache_exchanges)

    async def __call__(self, batch: Sequence[Placement]) -> None:
        """Take one batch of turns; what topology is to look at is issued, not carried out."""
        admitted = (await gate(batch, self._ports)).forwarded
        units = await asyncio.gather(*(self._describe(each) for each in admitted))
        namespaces = {unit.namespace for unit in units}
        async with self._ports.tables.transaction(namespaces) as tx:
            await tx.update_units(units)
        vectors = await self._ports.embedder.embed([_descriptor(unit) for unit in units])
        turns = [
            EmbeddedTurn(Embedded(unit=unit, previous=each.previous, after=each.after), vector, exchange=None)
            for each, unit, vector in zip(admitted, units, vectors, strict=True)
        ]
        await remember(turns, self._ports, self._cache)

    async def _describe(self, admitted: Admitted) -> Unit:
        turn = admitted.unit
        before = (admitted.previous,) if admitted.previous else ()
        reply = await _reply(self._model, describe.prompt([turn], [read(turn, before)]))
        if reply is None or not reply.summary.strip():
            return turn.model_copy(update={"summary": turn.spoken})
        return turn.model_copy(update={"summary": reply.summary, "keywords": tuple(reply.keywords)})


class Extracted:
    """The eager way (Mem0): the facts of every turn, each stored as it comes."""

    def __init__(self, ports: Ports, model: CountedModel) -> None:
        self._ports = ports
        self._model = model
        self._cache = RecurrenceCache(ports.settings.recurrence_cache_exchanges)

    async def __call__(self, batch: Sequence[Placement]) -> None:
        """Take one batch of turns and store what they state."""
        admitted = (await gate(batch, self._ports)).forwarded
        turns = await embed(admitted, self._ports)
        await remember([replace(turn, exchange=None) for turn in turns], self._ports, self._cache)
        found = await asyncio.gather(*(self._extract(each) for each in admitted))
        facts = [fact for each in found for fact in each]
        if facts:
            await self._store(facts)

    async def _extract(self, admitted: Admitted) -> list[Unit]:
        before = [admitted.previous] if admitted.previous else []
        reply = await _reply(self._model, extract.prompt(admitted.unit, before))
        stated = reply.facts if reply is not None else []
        return [self._fact(admitted.unit, fact, place) for place, fact in enumerate(stated) if fact.text]

    def _fact(self, turn: Unit, fact: Fact, ordinal: int) -> Unit:
        return Unit(
            id=derived_id(turn.namespace, turn.id, ordinal),
            namespace=turn.namespace,
            kind="fact",
            session=turn.session,
            ordinal=ordinal,
            position=turn.position,
            text=fact.text,
            subject=fact.subject,
            relation=fact.relation,
            object=fact.object,
            evidence=(turn.id,),
            said_at=turn.said_at,
            valid_from=_day(fact.valid_from) or turn.said_at,
            recorded_at=self._ports.clock.now(),
            engine=self._model.name,
        )

    async def _store(self, facts: Sequence[Unit]) -> None:
        rows = await self._ports.embedder.embed([fact.text for fact in facts])
        vectors = {fact.id: row for fact, row in zip(facts, rows, strict=True)}
        namespaces = {fact.namespace for fact in facts}
        links = [
            Link(namespace=fact.namespace, source=fact.id, target=turn, type="evidence")
            for fact in facts
            for turn in fact.evidence
        ]
        async with self._ports.tables.transaction(namespaces) as tx:
            await tx.insert_units(facts)
            await tx.insert_links(links)
            await tx.record_changes([(fact, "created") for fact in facts], self._ports.clock.now())
        await index(namespaces, vectors, self._ports)


async def _reply(model: CountedModel, prompt: Prompt[R]) -> R | None:
    """Return a model's reply; None where it cannot be read."""
    completion = await model.complete(prompt, repair=True)
    return None if completion.fault is not None else prompt.reply.model_validate_json(completion.text)


def _descriptor(unit: Unit) -> str:
    return " ".join([unit.summary or unit.text, *unit.keywords])


def _day(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None
    except ValueError:
        return None
