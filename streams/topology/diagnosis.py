"""From proposals to queues: confidence gate, Norm, and the order of editing (All-Mem §3.3, app. B.1–B.2).

Nothing here changes the bank. A proposal that is not queued becomes a skipped edit that says why.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from lamina.streams.engine import Proposal
from lamina.streams.records import Edit, Unit
from lamina.streams.settings import Settings
from lamina.streams.topology.values import layer_of, opposed, same_pair, since

MOST_MERGED = 4
"""Most units of one merge (All-Mem app. C.2)."""
ORDER = {"split": 0, "merge": 1, "update": 2}
"""Disentangle, then deduplicate, then refresh what is current (All-Mem §3.3)."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """θ_op: the confidence from which an operator's proposals are accepted (All-Mem B.2); None: never."""

    split: float | None = 0.9
    merge: float | None = 0.9
    update: float | None = 0.9

    @classmethod
    def of_settings(cls, settings: Settings) -> "Thresholds":
        """Read the thresholds; an operator that is switched off has none (All-Mem app. E)."""
        return cls(
            settings.theta_split if settings.topology_split else None,
            settings.theta_merge if settings.topology_merge else None,
            settings.theta_update if settings.topology_update else None,
        )

    def of(self, operator: Literal["split", "merge", "update"]) -> float | None:
        """Return an operator's threshold."""
        return {"split": self.split, "merge": self.merge, "update": self.update}[operator]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a run will try, in order, and what it will not."""

    queued: tuple[Proposal, ...]
    """Split, then merge, then update; the most confident first, then by ids (ours)."""
    skipped: tuple[Edit, ...]


def queue(
    diagnosed: Iterable[Sequence[Proposal]],
    units: Mapping[UUID, Unit],
    thresholds: Thresholds,
    kinds: Literal["derived", "all"],
) -> Diagnosis:
    """Accept, normalise and order the proposals of all neighbourhoods.

    Args:
        diagnosed: per neighbourhood, as the engine returned them; any ids, arities and confidences.
        units: the bank as it stands before the first edit.
        thresholds: θ per operator.
        kinds: `derived` keeps turns visible and leaves episodes' versions to the episodic worker.
    """
    best: dict[tuple[str, tuple[UUID, ...]], Proposal] = {}
    skipped: list[Edit] = []
    for proposal in (_canonical(one) for found in diagnosed for one in found):
        why = _below(proposal, thresholds) or invalid(proposal, units, kinds)
        if why is not None:
            skipped.append(skip(proposal, why))
            continue
        key = (proposal.operator, proposal.targets)
        if key not in best or best[key].confidence < proposal.confidence:
            best[key] = proposal
    queued = sorted(best.values(), key=_place)
    return Diagnosis(tuple(queued), tuple(skipped))


def invalid(proposal: Proposal, units: Mapping[UUID, Unit], kinds: Literal["derived", "all"]) -> str | None:
    """Return why a proposal with canonical targets is not valid for these units; None: it is (Norm).

    Ours beyond All-Mem B.2: layers do not mix, facts that exclude each other are not one, an older unit
    does not supersede a newer one, and with `derived` a turn is never archived, an episode never updated.
    """
    unknown = [key for key in proposal.targets if key not in units]
    if unknown:
        return f"names {unknown[0]}, which is not in its neighbourhood"
    targets = [units[key] for key in proposal.targets]
    if kinds == "derived" and any(unit.kind == "turn" for unit in targets):
        return "names a turn, and turns stay visible"
    if len({layer_of(unit.kind) for unit in targets}) > 1:
        return "names units of different kinds"
    match proposal.operator:
        case "split":
            return _invalid_split(targets)
        case "merge":
            return _invalid_merge(targets)
        case "update":
            return _invalid_update(targets, kinds)


def skip(proposal: Proposal, why: str) -> Edit:
    """Return the record of a proposal that was not carried out."""
    return Edit(
        operator=proposal.operator,
        targets=proposal.targets,
        outcome="skipped",
        reason=f"{why} (proposed: {proposal.reason})" if proposal.reason else why,
        confidence=proposal.confidence,
    )


def _place(proposal: Proposal) -> tuple[int, float, list[str]]:
    return (ORDER[proposal.operator], -proposal.confidence, [str(key) for key in proposal.targets])


def _canonical(proposal: Proposal) -> Proposal:
    """Return the proposal with each id once, sorted; the order of an update is its meaning and stays."""
    targets = proposal.targets
    if proposal.operator != "update":
        targets = tuple(sorted(set(targets), key=str))
    return Proposal(proposal.operator, targets, proposal.reason, proposal.confidence)


def _below(proposal: Proposal, thresholds: Thresholds) -> str | None:
    theta = thresholds.of(proposal.operator)
    if theta is None:
        return f"{proposal.operator} is switched off"
    if not 0 <= proposal.confidence <= 1:  # also NaN
        return f"confidence {proposal.confidence} is not between 0 and 1"
    if proposal.confidence < theta:
        return f"confidence {proposal.confidence:.2f} is below {theta:.2f}"
    return None


def _invalid_split(targets: list[Unit]) -> str | None:
    if len(targets) != 1:
        return f"a split takes one unit, not {len(targets)}"
    return None if targets[0].visible else "the unit is archived"


def _invalid_merge(targets: list[Unit]) -> str | None:
    if not 2 <= len(targets) <= MOST_MERGED:  # noqa: PLR2004 (a merge is of at least two)
        return f"a merge takes 2 to {MOST_MERGED} units, not {len(targets)}"
    if not all(unit.visible for unit in targets):
        return "one of the units is archived"
    if any(opposed(one, other) for one in targets for other in targets):
        return "the facts exclude each other"
    return None


def _invalid_update(targets: list[Unit], kinds: Literal["derived", "all"]) -> str | None:
    if len(targets) != 2 or targets[0].id == targets[1].id:  # noqa: PLR2004 (current and superseded)
        return "an update takes a current and a superseded unit"
    current, superseded = targets
    if not current.visible:
        return "the current unit is archived"
    if kinds == "derived" and current.kind == "episode":
        return "episodes get new versions from the episodic worker alone"
    if current.kind == "fact" and not same_pair(current, superseded):
        return "the facts are not about the same subject and relation"
    if since(current) < since(superseded):
        return "the current unit is older than the superseded one"
    return None
