"""Serial editing: each queued proposal is checked, planned by the engine and carried out on the bank.

All-Mem §3.3, app. B.3–B.4; then abstraction (SimpleMem §2.2). It fails closed: a stale target, a plan that
is unusable or declines, a segment that is not in the evidence leave the bank as it was, and a recorded edit
says so. Nothing is tried twice within a run. The place of an edit in the queue numbers its calls, so that a
run that is repeated asks for the same replies.
"""

from collections.abc import Sequence

from lamina.streams.codec import Vector
from lamina.streams.engine import Proposal
from lamina.streams.grounding import spans_of
from lamina.streams.ports import Claim
from lamina.streams.records import Descriptor, Edit
from lamina.streams.settings import Settings
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.topology_look import View, quoted
from lamina.streams.topology.abstraction import Affinity, groups
from lamina.streams.topology.editing import abstract, applicable, decline, merge, split, update
from lamina.streams.topology.representatives import Part, words_of

MOST_PARTS = 100
"""Parts of one split: their descriptions are numbered within a hundred."""
UNUSABLE = "the planner declined, or its plan is unusable"


async def edit_serially(claim: Claim, view: View, queued: Sequence[Proposal], ports: Ports) -> None:
    """Carry out the queue in its order; the bank and its `edits` tell what became of each.

    Raises:
        ModelUnavailable, BudgetSpent, EmbedderUnavailable: nothing was written.
    """
    for place, proposal in enumerate(queued):
        why = applicable(view.bank, proposal)
        if why is not None:
            decline(view.bank, proposal, why)
        elif proposal.operator == "split":
            await _split(claim, place, view, proposal, ports)
        elif proposal.operator == "merge":
            await _merge(claim, place, view, proposal, ports)
        else:
            await _update(claim, place, view, proposal, ports)


async def _split(claim: Claim, place: int, view: View, proposal: Proposal, ports: Ports) -> None:
    node = view.node(proposal.targets[0])
    if node.unit.spans:
        decline(view.bank, proposal, "the unit is a part of a split already")
        return
    segments = await ports.engine.plan_split(claim, place, node, proposal.reason)
    if segments is None:
        decline(view.bank, proposal, UNUSABLE)
        return
    if len(segments) < 2:  # noqa: PLR2004  # a split is into at least two (All-Mem A.1)
        decline(view.bank, proposal, "the planner keeps it whole", "no_op")
        return
    if len(segments) > MOST_PARTS:
        decline(view.bank, proposal, f"{len(segments)} parts are more than {MOST_PARTS}")
        return
    found = spans_of(segments, node.evidence)
    if found is None:
        decline(view.bank, proposal, "a part is not in the unit's evidence")
        return
    described: list[Descriptor] = []
    turns = {turn.id: turn for turn in node.evidence}
    for part, spans in enumerate(found):
        ordinal = place * MOST_PARTS + part
        described.append(await ports.engine.describe(claim, ordinal, quoted(spans, turns)))
    vectors = await _embedded(described, ports)
    parts = [Part(*each) for each in zip(found, described, vectors, strict=True)]
    split(view.bank, proposal, parts)


async def _merge(claim: Claim, place: int, view: View, proposal: Proposal, ports: Ports) -> None:
    sources = [view.node(key) for key in proposal.targets]
    descriptor = await ports.engine.plan_merge(claim, place, sources, proposal.reason)
    if descriptor is None:
        decline(view.bank, proposal, UNUSABLE)
        return
    (vector,) = await _embedded([descriptor], ports)
    merge(view.bank, proposal, descriptor, vector)


async def _update(claim: Claim, place: int, view: View, proposal: Proposal, ports: Ports) -> None:
    current, superseded = (view.node(key) for key in proposal.targets)
    descriptor = await ports.engine.plan_update(claim, place, current, superseded, proposal.reason)
    if descriptor is None:
        decline(view.bank, proposal, UNUSABLE)
        return
    # A turn's first vector is of its words; its summary gets a second one when it is indexed.
    vector = None if current.unit.kind == "turn" else (await _embedded([descriptor], ports))[0]
    update(view.bank, proposal, descriptor, vector)


async def abstract_related(claim: Claim, view: View, ports: Ports) -> None:
    """Put an abstract over each group of related units with a new one among them (SimpleMem §2.2).

    Looks at the units of the run and their anchors as the edits left them. A group of old units alone was
    looked at when the last of them was new.
    """
    affinity = _affinity(ports.settings)
    if affinity is None:
        return
    bank = view.bank
    new = {context.target.unit.id for context in view.contexts} | bank.touched
    around = {anchor.unit.id for context in view.contexts for anchor in context.anchors}
    units = [bank.units[key] for key in sorted(new | around, key=str)]
    related = [group for group in groups(units, bank.vectors, affinity) if new & set(group.units)]
    for place, group in enumerate(related):
        sources = [view.node(key) for key in group.units]
        descriptor = await ports.engine.abstract(claim, place, sources)
        if descriptor is None:
            reason = f"{UNUSABLE} ({group.reason})"
            edit = Edit(operator="abstract", targets=group.units, outcome="no_op", reason=reason)
            bank.edits.append(edit)
            continue
        (vector,) = await _embedded([descriptor], ports)
        abstract(bank, group, descriptor, vector)


def _affinity(settings: Settings) -> Affinity | None:
    if settings.abstraction == "off":
        return None
    return Affinity(
        settings.abstraction,
        settings.abstraction_threshold,
        settings.abstraction_beta,
        settings.abstraction_decay,
    )


async def _embedded(descriptors: Sequence[Descriptor], ports: Ports) -> list[Vector]:
    """Return the vectors that the index would give units with these descriptions as their text."""
    return list(await ports.embedder.embed([words_of(each).summary for each in descriptors]))
