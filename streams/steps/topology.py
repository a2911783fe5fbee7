"""topology: look at buffered units in their neighbourhoods and repair the bank (All-Mem §3.3, algorithm 1).

 look ─▶ drift gate ─▶ diagnose (at once) ─▶ confidence gate, Norm ─▶ split, merge, update (serially)
      ─▶ abstract ─▶ one transaction with the end of the command ─▶ index

Nothing is written before the end, and nothing in between is kept but the engine's stored replies: a run that
was cut short is repeated from the start and pays for none of them again. Units that topology writes are not
buffered: the run that wrote them has just looked at them (ours).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from uuid import UUID

from lamina.streams.codec import Vector
from lamina.streams.engine import Neighbourhood, Proposal
from lamina.streams.metrics import DERIVED, DIAGNOSES, EDITS
from lamina.streams.ports import Claim, Transaction
from lamina.streams.records import Edit, Unit
from lamina.streams.recurrence import Thread
from lamina.streams.steps.index import index
from lamina.streams.steps.outcome import Outcome
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.topology_edits import abstract_related, edit_serially
from lamina.streams.steps.topology_look import View, look
from lamina.streams.topology.bank import Bank
from lamina.streams.topology.diagnosis import Thresholds, queue
from lamina.streams.topology.drift import signals


async def edit_topology(claim: Claim, ports: Ports) -> Outcome:
    """Diagnose the command's units and carry out what was accepted.

    Every edit is in the journal with its reason and confidence, those that were skipped or declined too.

    Args:
        claim: the command under lease; this owner alone consolidates in the namespace.
        ports: the outside.

    Raises:
        TablesUnavailable, StoreUnavailable, EmbedderUnavailable, ModelUnavailable, BudgetSpent: the command
            stays open, and carrying it out again asks for nothing that was answered.
    """
    namespace = claim.command.namespace
    # What the last command wrote must be findable before its successor looks for neighbours.
    if await ports.tables.has_unindexed([namespace]):
        await index([namespace], {}, ports)
    view = await look(claim.command, ports, ports.clock.now())
    drifting = await _drifting(view, ports)
    diagnosed = await _diagnose(claim, [context for context, _ in drifting], ports)
    thresholds = Thresholds.of_settings(ports.settings)
    accepted = queue(diagnosed, view.bank.units, thresholds, ports.settings.topology_kinds)
    view.bank.edits += accepted.skipped
    await edit_serially(claim, view, accepted.queued, ports)
    await abstract_related(claim, view, ports)
    plan = _plan(view, drifting, diagnosed, ports)
    outcome = await _write(claim, view.bank, plan, ports)
    if outcome.state != "lost":
        _measure(view, len(drifting), ports)
        await index([namespace], _known(view.bank), ports)
    return outcome


async def _drifting(view: View, ports: Ports) -> list[tuple[Neighbourhood, str]]:
    """Return the neighbourhoods that are diagnosed, each with why: a measured signal, or the setting."""
    if ports.settings.diagnose == "all":
        return [(context, "all are diagnosed") for context in view.contexts]
    episodes = [context.target for context in view.contexts if context.target.unit.kind == "episode"]
    vectors = view.bank.vectors | await ports.store.vectors(
        {turn.id for node in episodes for turn in node.evidence}
    )
    measured = [(context, signals(context, vectors)) for context in view.contexts]
    return [(context, "; ".join(each.reason for each in found)) for context, found in measured if found]


async def _diagnose(
    claim: Claim, contexts: Sequence[Neighbourhood], ports: Ports
) -> list[tuple[Proposal, ...]]:
    """Return the proposals of each neighbourhood; an engine that returns another number of them gave none."""
    if not contexts:
        return []
    diagnosed = await ports.engine.diagnose(claim, contexts)
    return diagnosed if len(diagnosed) == len(contexts) else [() for _ in contexts]


async def _write(claim: Claim, bank: Bank, plan: Mapping[str, Any], ports: Ports) -> Outcome:
    """Write the run and the end of its command in one transaction."""
    namespace = claim.command.namespace
    executed = any(edit.outcome == "executed" for edit in bank.edits)
    state: Literal["applied", "no_op"] = "applied" if executed else "no_op"
    note = _note(plan, bank.edits)
    rows = bank.rows()
    async with ports.tables.transaction([namespace]) as tx:
        if not await tx.finish_command(claim, state, plan, edits=bank.edits, note=note):
            return Outcome("lost")
        await tx.insert_units(rows.inserted)
        await tx.update_units(await _on_fresh_rows(rows.updated, tx))
        await tx.delete_links(rows.removed)
        await tx.insert_links(rows.added)
        if rows.threads:
            await tx.save_recurrence(namespace, (), await _on_fresh_threads(rows.threads, bank, tx))
        await tx.record_changes(rows.changes, ports.clock.now())
    return Outcome(state, note)


async def _on_fresh_rows(updated: Sequence[Unit], tx: Transaction) -> list[Unit]:
    """Return the rows to write. Of a turn only visibility and descriptor change, on the row as it is now.

    Derived units change under the lane alone; a turn's status may have moved on since it was read.
    """
    rows = await tx.units([unit.id for unit in updated if unit.kind == "turn"])
    return [
        rows[unit.id].model_copy(update={field: getattr(unit, field) for field in _DESCRIPTOR})
        if unit.id in rows
        else unit
        for unit in updated
    ]


_DESCRIPTOR = ("visible", "summary", "keywords", "version")


async def _on_fresh_threads(moved: Sequence[Thread], bank: Bank, tx: Transaction) -> list[Thread]:
    """Return the threads with their new heads; exchanges may have joined them since they were read."""
    before = {head for edit in bank.edits for heads in edit.heads.values() for head in heads}
    heads = {thread.id: thread.heads for thread in moved}
    fresh = await tx.threads_of(bank.command.namespace, before)
    return [replace(thread, heads=heads[thread.id]) for thread in fresh if thread.id in heads]


def _plan(
    view: View,
    drifting: Sequence[tuple[Neighbourhood, str]],
    diagnosed: Sequence[Sequence[Proposal]],
    ports: Ports,
) -> dict[str, Any]:
    """Return what the journal keeps of the diagnosis: who was asked what, why, and what it proposed."""
    return {
        "engine": ports.engine.name,
        "looked_at": len(view.contexts),
        "diagnosed": [
            {
                "unit": str(context.target.unit.id),
                "signal": signal,
                "proposals": [
                    {
                        "operator": proposal.operator,
                        "targets": [str(key) for key in proposal.targets],
                        "reason": proposal.reason,
                        "confidence": proposal.confidence,
                    }
                    for proposal in proposals
                ],
            }
            for (context, signal), proposals in zip(drifting, diagnosed, strict=True)
        ],
    }


def _note(plan: Mapping[str, Any], edits: Sequence[Edit]) -> str | None:
    """Return why a run changed nothing."""
    if any(edit.outcome == "executed" for edit in edits):
        return None
    if not plan["looked_at"]:
        return "none of the units is visible any more"
    if edits:
        return f"none of {len(edits)} proposed edits was carried out"
    if not plan["diagnosed"]:
        return f"no sign of drift around {plan['looked_at']} units"
    return f"no edit was proposed around {len(plan['diagnosed'])} units"


def _known(bank: Bank) -> dict[UUID, Vector]:
    """Return the vectors of what is to be indexed; a turn's is left to the index, which knows its context."""
    rows = bank.rows()
    return {
        unit.id: bank.vectors[unit.id]
        for unit in (*rows.inserted, *rows.updated)
        if unit.visible and unit.kind != "turn" and unit.id in bank.vectors
    }


def _measure(view: View, diagnosed: int, ports: Ports) -> None:
    metrics = ports.metrics
    metrics.count(DIAGNOSES, diagnosed, outcome="diagnosed")
    metrics.count(DIAGNOSES, len(view.contexts) - diagnosed, outcome="gated")
    for edit in view.bank.edits:
        metrics.count(EDITS, operator=edit.operator, outcome=edit.outcome)
    for unit in view.bank.rows().inserted:
        metrics.count(DERIVED, kind=unit.kind)
