"""What the drift gate saves and what it misses: edits of a run behind it beside those of a run without."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from lamina.bench.construction_figures import EditMade, Figures

DIAGNOSED = frozenset({"split", "merge", "update"})
"""Edits that a diagnosis proposes; abstracts are found by affinity, whatever is diagnosed."""


@dataclass(frozen=True, slots=True)
class DriftKept:
    """Both runs beside each other; an edit is the same where operator and evidence are."""

    diagnoses_all: int
    """Neighbourhoods diagnosed without the gate: one call each."""
    diagnoses_drift: int
    edits_all: int
    """Executed splits, merges and updates without the gate."""
    kept: int
    """Of these, those that the gated run made too."""
    missed: tuple[EditMade, ...]
    added: int
    """Edits that only the gated run made."""

    @property
    def saved_share(self) -> float | None:
        """Fraction of the diagnosis calls that the gate saves; None where there was none."""
        return 1 - self.diagnoses_drift / self.diagnoses_all if self.diagnoses_all else None

    @property
    def kept_share(self) -> float | None:
        """Fraction of the edits that it keeps; None where there was none."""
        return self.kept / self.edits_all if self.edits_all else None

    def json(self, names: Mapping[UUID, str]) -> dict[str, Any]:
        """Return everything as plain values; `names` gives the turns their names in the data."""
        return {
            "diagnoses_all": self.diagnoses_all,
            "diagnoses_drift": self.diagnoses_drift,
            "saved_share": self.saved_share,
            "edits_all": self.edits_all,
            "kept": self.kept,
            "kept_share": self.kept_share,
            "added": self.added,
            "missed": [
                {
                    "operator": edit.operator,
                    "reason": edit.reason,
                    "turns": sorted(names.get(turn, str(turn)) for turn in edit.rests_on),
                }
                for edit in self.missed
            ],
        }


def drift_kept(everything: Figures, gated: Figures) -> DriftKept:
    """Compare a run that diagnosed every neighbourhood with one behind the drift gate."""
    alls, ours = _edits(everything), _edits(gated)
    missing = alls - ours
    missed = []
    for edit in everything.made:
        if missing[edit.operator, edit.rests_on]:
            missing[edit.operator, edit.rests_on] -= 1
            missed.append(edit)
    return DriftKept(
        diagnoses_all=everything.diagnoses["diagnosed"],
        diagnoses_drift=gated.diagnoses["diagnosed"],
        edits_all=alls.total(),
        kept=(alls & ours).total(),
        missed=tuple(missed),
        added=(ours - alls).total(),
    )


def _edits(figures: Figures) -> Counter[tuple[str, frozenset[UUID]]]:
    return Counter((edit.operator, edit.rests_on) for edit in figures.made if edit.operator in DIAGNOSED)
