"""The ways of building memory that `lamina bench construction` sets side by side."""

from dataclasses import dataclass, field
from typing import Any, Literal

from lamina.streams.settings import Settings


@dataclass(frozen=True, slots=True)
class Mode:
    """One way of building memory: who writes it, on what, and the settings that differ from the caller's."""

    name: str
    says: str
    """What it is, in one line."""
    writer: Literal["model", "rules"] = "model"
    """`rules`: the extractive engine, which calls no model."""
    intake: Literal["flow", "described", "extracted"] = "flow"
    """`flow`: the pipeline; `described`, `extracted`: one call a turn (`lamina.bench.faithful`)."""
    changes: dict[str, Any] = field(default_factory=dict)

    def settings(self, base: Settings) -> Settings:
        """Return the settings of this mode."""
        return base.model_copy(update=self.changes)


EXTRACTIVE = Mode("extractive", "the default by rules: no model is called", writer="rules")
DEFAULT = Mode("default", "gate, recurrence, salience, fused calls, topology behind the drift gate")
DEFAULT_ALL = Mode(
    "default-all",
    "the default, but every neighbourhood is diagnosed (what the drift gate is measured against)",
    changes={"diagnose": "all"},
)
RECMEM = Mode(
    "recmem-faithful",
    "RecMem as published: no gate, no salience, a call per merge, episodes and facts apart, no topology",
    changes={
        "gate_enabled": False,
        "salience": False,
        "merge_size": 1,
        "episodic": "faithful",
        "topology": False,
    },
)
RECMEM_DIRECT = Mode(
    "recmem-direct",
    "the same, but facts are drawn from the turns with no episode as reference (RecMem §4.3)",
    changes={**RECMEM.changes, "episodic": "direct"},
)
ALL_MEM_CHANGES: dict[str, Any] = {
    "gate_enabled": False,
    "salience": False,
    "count_unit": "exchange",
    "topology": True,
    "topology_kinds": "all",
    "topology_sessions": 3,
    "abstraction": "off",
}
ALL_MEM = Mode(
    "all-mem-faithful",
    "All-Mem as published: every turn described at write, topology over turns, no gate, no recurrence",
    intake="described",
    changes={**ALL_MEM_CHANGES, "diagnose": "all"},
)
ALL_MEM_DRIFT = Mode(
    "all-mem-drift",
    "the same behind the drift gate: its savings where there are thousands of neighbourhoods",
    intake="described",
    changes={**ALL_MEM_CHANGES, "diagnose": "drift"},
)
EAGER = Mode(
    "eager",
    "one extraction call a turn, as Mem0 works; its second call, which updates, is not made",
    intake="extracted",
    changes={"gate_enabled": False, "salience": False, "topology": False},
)

MODES: dict[str, Mode] = {
    mode.name: mode
    for mode in (EXTRACTIVE, DEFAULT, DEFAULT_ALL, RECMEM, RECMEM_DIRECT, ALL_MEM, ALL_MEM_DRIFT, EAGER)
}
"""In the order in which they run: `extractive` first, while the cache of vectors is cold."""

DRIFT_PAIRS = ((DEFAULT_ALL.name, DEFAULT.name), (ALL_MEM.name, ALL_MEM_DRIFT.name))
"""Modes that differ in `diagnose` alone: all, then drift."""
