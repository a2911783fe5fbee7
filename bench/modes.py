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
ALL_MEM = Mode(
    "all-mem-faithful",
    "All-Mem as published: every turn described at write, topology over turns, no gate, no recurrence",
    intake="described",
    changes={
        "gate_enabled": False,
        "salience": False,
        "count_unit": "exchange",
        "topology": True,
        "topology_kinds": "all",
        "topology_sessions": 3,
        "diagnose": "all",
        "abstraction": "off",
    },
)
EAGER = Mode(
    "eager",
    "one extraction call a turn, as Mem0 works; its second call, which updates, is not made",
    intake="extracted",
    changes={"gate_enabled": False, "salience": False, "topology": False},
)

MODES: dict[str, Mode] = {
    mode.name: mode for mode in (EXTRACTIVE, DEFAULT, DEFAULT_ALL, RECMEM, ALL_MEM, EAGER)
}
"""In the order in which they run: `extractive` first, while the cache of vectors is cold."""
