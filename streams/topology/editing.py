"""The deterministic executor: split, merge, update and abstract on a bank (All-Mem §3.3, app. A, B.3–B.4).

Each function checks first and fails closed: what does not hold becomes a skipped edit, a plan that declines
a no-op, and the bank stays as it was. Archiving only toggles visibility; no text of a turn, no evidence and
no version link is ever removed. Ids, order and ties are fixed, so the same plans give the same rows.
"""

from collections.abc import Callable, Sequence
from typing import Literal
from uuid import UUID

import numpy as np

from lamina.streams.codec import Vector
from lamina.streams.engine import Proposal
from lamina.streams.records import Descriptor, Edit, Kind, Operator, Unit
from lamina.streams.recurrence import Thread
from lamina.streams.topology.abstraction import Group
from lamina.streams.topology.bank import Bank, Draft
from lamina.streams.topology.diagnosis import invalid
from lamina.streams.topology.representatives import (
    Part,
    evidence_of,
    grounded,
    representative,
    sibling,
    validity_end,
    words_of,
)
from lamina.streams.topology.rewiring import (
    copy_semantic,
    link_siblings,
    link_temporal,
    link_versions,
    redirect,
)
from lamina.streams.topology.values import layer_of
from lamina.streams.vector_table import DECIMALS, unit_length


def applicable(bank: Bank, proposal: Proposal) -> str | None:
    """Return why a queued proposal is stale; None: its planner may be asked (All-Mem B.3).

    Ids exist, visibility and arity still hold, and no unit of it was changed earlier in the run. For a merge
    the redundancy check comes before the planner too (A.4).
    """
    why = invalid(proposal, bank.units, bank.kinds)
    if why is not None:
        return f"stale: {why}"
    changed = next((key for key in proposal.targets if key in bank.touched), None)
    if changed is not None:
        return f"stale: {changed} was changed earlier in this run"
    return _not_redundant(bank, proposal.targets) if proposal.operator == "merge" else None


def redundancy(bank: Bank, sources: Sequence[UUID]) -> float | None:
    """Return how alike units are: the mean cosine of each to the centroid of the others.

    Leaving the unit itself out is ours. With it, two units of cosine c have mean √((1 + c) / 2) to their
    centroid: unrelated ones (c = 0) would reach 0.71 and pass a check at 0.7. None: a vector is unknown.
    """
    if len(sources) < 2 or any(key not in bank.vectors for key in sources):  # noqa: PLR2004 (of others)
        return None
    rows = np.stack([bank.vectors[key] for key in sources])
    total = rows.sum(axis=0)
    return round(float(np.mean([row @ unit_length(total - row) for row in rows])), DECIMALS)


def decline(
    bank: Bank, proposal: Proposal, why: str, outcome: Literal["skipped", "no_op"] = "skipped"
) -> Edit:
    """Record that a proposal was not carried out: stale or unusable (`skipped`), or declined (`no_op`)."""
    edit = _edit(proposal, outcome, why)
    bank.edits.append(edit)
    return edit


def split(bank: Bank, proposal: Proposal, parts: Sequence[Part]) -> Edit:
    """Replace a unit by visible siblings, one per part (All-Mem A.1).

    Args:
        bank: changed in place.
        proposal: of one target.
        parts: verbatim parts with their descriptors; equal ones count once. Fewer than two decline.
    """
    if why := applicable(bank, proposal):
        return decline(bank, proposal, why)
    (target,) = proposal.targets
    parent = bank.units[target]
    distinct = list({part.spans: part for part in parts if part.spans}.values())
    if len(distinct) < 2:  # noqa: PLR2004 (a split is into at least two)
        return decline(bank, proposal, f"the plan has {len(distinct)} part(s)", "no_op")
    if not all(grounded(part.spans, parent, bank.turns) for part in distinct):
        return decline(bank, proposal, "a part is not in the unit's evidence")
    if not all(part.descriptor.summary.strip() for part in distinct):
        return decline(bank, proposal, "a part has no description")
    draft = Draft(bank)
    for part in distinct:
        draft.create(sibling(bank, parent, part), part.vector)
    siblings = tuple(draft.created)
    draft.archive(target)
    for each in siblings:
        link_versions(draft, each, (target,))
        _link_evidence(draft, each)
    link_siblings(draft, siblings)
    link_temporal(draft, target, siblings)
    redirect(draft, target, siblings)
    copy_semantic(draft, (target,), siblings)
    draft.replace_heads(target, _nearest_to_thread(bank, siblings))
    return draft.finish(_edit(proposal, "executed", proposal.reason))


def merge(bank: Bank, proposal: Proposal, descriptor: Descriptor, vector: Vector) -> Edit:
    """Put redundant units under one new representative (All-Mem A.2).

    Args:
        bank: changed in place.
        proposal: of two to four targets.
        descriptor: the canonical one; without a summary the merge declines.
        vector: `dense` of its summary, unit length.
    """
    if why := applicable(bank, proposal):
        return decline(bank, proposal, why)
    if not descriptor.summary.strip():
        return decline(bank, proposal, "the plan has no description", "no_op")
    kind = layer_of(bank.units[proposal.targets[0]].kind)
    return _replace(
        bank, proposal.targets, kind, descriptor, vector, _edit(proposal, "executed", proposal.reason)
    )


def update(bank: Bank, proposal: Proposal, descriptor: Descriptor, vector: Vector | None) -> Edit:
    """Refresh the current unit and archive the one that it supersedes (All-Mem A.3).

    An unchanged descriptor skips the rewrite only: the older unit is archived all the same (app. C.5). The
    text of a turn is what was said and stays; its summary is refreshed.

    Args:
        bank: changed in place.
        proposal: targets are (current, superseded).
        descriptor: of the current unit; without a summary the edit is skipped.
        vector: of the refreshed description, unit length; None keeps the current one (a turn's `dense` is of
            its words).
    """
    if why := applicable(bank, proposal):
        return decline(bank, proposal, why)
    if not descriptor.summary.strip():
        return decline(bank, proposal, "the plan has no description")
    newer, older = proposal.targets
    current, superseded = bank.units[newer], bank.units[older]
    draft = Draft(bank)
    refreshed = _refreshed(current, words_of(descriptor))
    if refreshed is not None:
        draft.revise(refreshed)
        if vector is not None:
            bank.vectors[newer] = vector
    if superseded.visible:
        draft.archive(older, valid_to=validity_end(superseded, current))
    link_versions(draft, newer, (older,))
    redirect(draft, older, (newer,))
    draft.replace_heads(older, lambda _: newer)
    bank.touched |= {newer, older}
    edit = draft.finish(_edit(proposal, "executed", proposal.reason))
    if edit.before or edit.added:
        return edit
    bank.edits.pop()
    return decline(bank, proposal, "it was superseded already and nothing changed", "no_op")


def abstract(bank: Bank, group: Group, descriptor: Descriptor, vector: Vector) -> Edit:
    """Archive related units under a new abstract (SimpleMem §2.2, eq. 6), with version links to each.

    Units that this run created or refreshed may be abstracted; what is archived may not.
    """
    made = Edit(operator="abstract", targets=group.units, outcome="executed", reason=group.reason)
    why = None if all(bank.visible(key) for key in group.units) else "stale: one of the units is archived"
    if why is None and bank.kinds == "derived" and any(bank.units[key].kind == "turn" for key in group.units):
        why = "names a turn, and turns stay visible"
    if why is None and not descriptor.summary.strip():
        why = "the plan has no description"
    if why is not None:
        skipped = made.model_copy(update={"outcome": "skipped", "reason": f"{why} ({group.reason})"})
        bank.edits.append(skipped)
        return skipped
    return _replace(bank, group.units, "abstract", descriptor, vector, made)


def _replace(
    bank: Bank, keys: tuple[UUID, ...], kind: Kind, descriptor: Descriptor, vector: Vector, edit: Edit
) -> Edit:
    draft = Draft(bank)
    new = representative(bank, [bank.units[key] for key in keys], kind, descriptor)
    draft.create(new, vector)
    for key in keys:
        draft.archive(key)
    link_versions(draft, new.id, keys)
    _link_evidence(draft, new.id)
    for key in keys:
        redirect(draft, key, (new.id,))
    copy_semantic(draft, keys, (new.id,))
    for key in keys:
        draft.replace_heads(key, lambda _: new.id)
    return draft.finish(edit)


def _refreshed(unit: Unit, descriptor: Descriptor) -> Unit | None:
    """Return the unit with a new descriptor and the next version; None where nothing changed."""
    field = "summary" if unit.kind == "turn" else "text"
    old = words_of(Descriptor(summary=getattr(unit, field) or "", keywords=unit.keywords))
    if old == descriptor:
        return None
    return unit.model_copy(
        update={field: descriptor.summary, "keywords": descriptor.keywords, "version": unit.version + 1}
    )


def _link_evidence(draft: Draft, unit: UUID) -> None:
    for turn in evidence_of(draft.bank.units[unit]):
        draft.link(unit, turn, "evidence")


def _nearest_to_thread(bank: Bank, units: Sequence[UUID]) -> Callable[[Thread], UUID]:
    return lambda thread: bank.nearest(thread.total, units)


def _not_redundant(bank: Bank, sources: Sequence[UUID]) -> str | None:
    alike = redundancy(bank, sources)
    if alike is None:
        return "the vector of a unit is unknown"
    if alike < bank.limits.redundancy:
        return f"redundancy {alike:.2f} is below {bank.limits.redundancy:.2f}"
    return None


def _edit(proposal: Proposal, outcome: Literal["executed", "skipped", "no_op"], reason: str) -> Edit:
    if outcome != "executed" and proposal.reason:
        reason = f"{reason} (proposed: {proposal.reason})"
    operator: Operator = proposal.operator
    return Edit(
        operator=operator,
        targets=proposal.targets,
        outcome=outcome,
        reason=reason,
        confidence=proposal.confidence,
    )
