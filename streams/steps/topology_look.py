"""What topology looks at: buffered units in their neighbourhoods, and the bank that edits work on.

The buffer holds ids only (All-Mem §3.2); this dereferences them. A unit that was archived since it was
buffered is represented by what stands for it now. Neighbours are those of its semantic links, which the
write made and later edits kept pointing at visible units, filled up to k by a search.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lamina.streams.codec import Vector
from lamina.streams.engine import Neighbourhood, Node
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Query
from lamina.streams.records import Command, Kind, Link, LinkType, Span, Unit
from lamina.streams.recurrence import Thread
from lamina.streams.settings import Settings
from lamina.streams.steps.ports import Ports
from lamina.streams.topology.bank import Bank, Limits, key_of
from lamina.streams.topology.values import layer_of

MOST_GENERATIONS = 8
"""Version links followed up from an archived unit; one is usual, as versions are linked to all ancestors."""
WIDER = 4
"""How many times k is searched where turns that came later are to be left out."""
_AROUND: tuple[LinkType, ...] = ("temporal", "semantic", "version", "sibling")
_SEMANTIC: tuple[LinkType, ...] = ("semantic",)
_VERSION: tuple[LinkType, ...] = ("version",)
KINDS: tuple[Kind, ...] = ("turn", "episode", "fact", "abstract")


@dataclass(slots=True, eq=False)
class View:
    """The neighbourhoods of one run, and the bank of all their units."""

    contexts: tuple[Neighbourhood, ...]
    bank: Bank

    def node(self, unit: UUID) -> Node:
        """Return a unit of the bank as it stands now, with its evidence."""
        return node_of(self.bank.units[unit], self.bank.turns)


async def look(command: Command, ports: Ports, now: datetime) -> View:
    """Read the neighbourhoods of a command's units.

    Raises:
        TablesUnavailable, StoreUnavailable, EmbedderUnavailable: nothing was written.
    """
    settings, namespace = ports.settings, command.namespace
    targets = await _targets(command, ports)
    vectors = await _vectors(targets, ports)
    anchors = await _anchors(command, targets, vectors, ports)
    units = {unit.id: unit for unit in targets}
    units |= {unit.id: unit for near in anchors.values() for unit in near}
    links = await _links(namespace, units, ports)
    units |= await _linked(namespace, units, links, ports)
    vectors |= await _vectors(
        [unit for unit in units.values() if unit.visible and unit.id not in vectors], ports
    )
    turns = await _turns(namespace, units.values(), ports)
    bank = Bank(
        command=command,
        engine=ports.engine.name,
        now=now,
        units=units,
        vectors=vectors,
        links={key_of(link): link for link in links},
        threads={thread.id: thread for thread in await _threads(namespace, units, ports)},
        turns=turns,
        kinds=settings.topology_kinds,
        limits=Limits(settings.semantic_links, settings.sibling_links, settings.merge_redundancy),
    )
    contexts = tuple(
        Neighbourhood(node_of(target, turns), tuple(node_of(unit, turns) for unit in anchors[target.id]))
        for target in targets
    )
    return View(contexts, bank)


def node_of(unit: Unit, turns: Mapping[UUID, Unit]) -> Node:
    """Return a unit with its evidence in time order; of a turn that it rests on in part, that part alone."""
    if unit.kind == "turn":
        return Node(unit, (unit,))
    parts = {turn.id: turn for turn in quoted(unit.spans, turns)}
    evidence = [turns[key] for key in unit.evidence if key in turns]
    return Node(
        unit,
        tuple(
            parts.get(turn.id, turn)
            for turn in sorted(evidence, key=lambda turn: (turn.said_at, turn.position))
        ),
    )


def quoted(spans: Iterable[Span], turns: Mapping[UUID, Unit]) -> list[Unit]:
    """Return the known turns of the spans, in the order of the spans, each with its parts as its text."""
    parts: dict[UUID, list[str]] = {}
    for span in spans:
        if span.turn in turns:
            parts.setdefault(span.turn, []).append(turns[span.turn].text[span.start : span.end])
    return [turns[key].model_copy(update={"text": "\n".join(texts)}) for key, texts in parts.items()]


def _allowed(unit: Unit, settings: Settings) -> bool:
    return unit.visible and (settings.topology_kinds == "all" or unit.kind != "turn")


async def _targets(command: Command, ports: Ports) -> list[Unit]:
    """Return the buffered units, or what stands for those archived meanwhile, each once, in their order."""
    units = await ports.tables.units(command.namespace, command.units)
    stand_in = await _standing_for([u.id for u in units.values() if not u.visible], command.namespace, ports)
    found: dict[UUID, Unit] = {}
    for key in command.units:
        if key in units:
            for unit in stand_in.get(key, [units[key]]):
                if _allowed(unit, ports.settings):
                    found.setdefault(unit.id, unit)
    return list(found.values())


async def _standing_for(
    archived: Collection[UUID], namespace: Namespace, ports: Ports
) -> dict[UUID, list[Unit]]:
    """Return, for each archived unit, the nearest visible units whose version links lead to it."""
    found: dict[UUID, list[Unit]] = {key: [] for key in archived}
    fronts: dict[UUID, set[UUID]] = {key: {key} for key in archived}
    for _ in range(MOST_GENERATIONS):
        if not fronts:
            break
        reached = {key for front in fronts.values() for key in front}
        links = await ports.tables.links_to(namespace, reached, _VERSION)
        newer: dict[UUID, set[UUID]] = {}
        for link in links:
            newer.setdefault(link.target, set()).add(link.source)
        units = await ports.tables.units(namespace, {link.source for link in links})
        following: dict[UUID, set[UUID]] = {}
        for key, front in fronts.items():
            above = {source for each in front for source in newer.get(each, ())}
            found[key] = [
                units[each] for each in sorted(above, key=str) if each in units and units[each].visible
            ]
            if above and not found[key]:
                following[key] = above
        fronts = following
    return found


async def _anchors(
    command: Command, targets: Sequence[Unit], vectors: Mapping[UUID, Vector], ports: Ports
) -> dict[UUID, list[Unit]]:
    """Return each target's k visible anchors of its layer: linked ones first, then the nearest (eq. 4).

    Turns that came after the command are left out: a run that is repeated must show an engine the same
    neighbourhood, since its stored replies are used again. Hence the wider search.
    """
    if not targets:
        return {}
    settings, namespace = ports.settings, command.namespace
    linked: dict[UUID, list[UUID]] = {}
    for link in _strongest(
        await ports.tables.links_from(namespace, [unit.id for unit in targets], _SEMANTIC)
    ):
        linked.setdefault(link.source, []).append(link.target)
    most = settings.topology_anchors * (WIDER if settings.topology_kinds == "all" else 1) + 1
    queries = [Query(namespace, vectors[u.id], _kinds_of(u, settings), most) for u in targets]
    hits = await ports.store.search(queries)
    near = {
        unit.id: dict.fromkeys((*linked.get(unit.id, ()), *(hit.id for hit in found)))
        for unit, found in zip(targets, hits, strict=True)
    }
    units = await ports.tables.units(namespace, {key for keys in near.values() for key in keys})
    return {
        unit.id: [
            units[key]
            for key in near[unit.id]
            if key in units
            and key != unit.id
            and _allowed(units[key], settings)
            and not (units[key].kind == "turn" and units[key].position > command.position)
            and layer_of(units[key].kind) == layer_of(unit.kind)
        ][: settings.topology_anchors]
        for unit in targets
    }


def _strongest(links: Iterable[Link]) -> list[Link]:
    return sorted(links, key=lambda link: (-link.weight, str(link.target)))


def _kinds_of(unit: Unit, settings: Settings) -> tuple[Kind, ...]:
    """Return the kinds that may be edited together with a unit: those of its layer."""
    kinds = tuple(kind for kind in KINDS if layer_of(kind) == layer_of(unit.kind))
    return kinds if settings.topology_kinds == "all" else tuple(kind for kind in kinds if kind != "turn")


async def _links(namespace: Namespace, units: Collection[UUID], ports: Ports) -> list[Link]:
    """Return the links of the units, and the version links of what they replaced."""
    leaving = await ports.tables.links_from(namespace, units)
    entering = await ports.tables.links_to(namespace, units, _AROUND)
    replaced = {link.target for link in leaving if link.type == "version"}
    older = await ports.tables.links_from(namespace, replaced, _VERSION) if replaced else []
    return list({key_of(link): link for link in (*leaving, *entering, *older)}.values())


async def _linked(
    namespace: Namespace, units: Collection[UUID], links: Sequence[Link], ports: Ports
) -> dict[UUID, Unit]:
    """Return the units at the other end of semantic and temporal links, and the archived ones below."""
    ends = {end for link in links if link.type != "evidence" for end in (link.source, link.target)}
    return await ports.tables.units(namespace, ends - set(units))


async def _turns(namespace: Namespace, units: Iterable[Unit], ports: Ports) -> dict[UUID, Unit]:
    keys = {key for unit in units if unit.visible for key in unit.evidence}
    turns = await ports.tables.units(namespace, keys) if keys else {}
    return turns | {unit.id: unit for unit in units if unit.kind == "turn"}


async def _threads(namespace: Namespace, units: Mapping[UUID, Unit], ports: Ports) -> list[Thread]:
    episodes = [unit.id for unit in units.values() if unit.kind == "episode"]
    if not episodes:
        return []
    async with ports.tables.transaction([namespace]) as tx:
        return await tx.threads_of(namespace, episodes)


async def _vectors(units: Sequence[Unit], ports: Ports) -> dict[UUID, Vector]:
    """Return the units' vectors; what the store does not hold (yet) is embedded from its text."""
    known = await ports.store.vectors([unit.id for unit in units])
    missing = [unit for unit in units if unit.id not in known]
    if missing:
        texts = [unit.spoken if unit.kind == "turn" else unit.text for unit in missing]
        rows = await ports.embedder.embed(texts)
        known |= dict(zip([unit.id for unit in missing], rows, strict=True))
    return known
