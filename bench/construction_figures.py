"""What building one memory led to, as figures that add up over conversations."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from uuid import UUID

from lamina.bench.counted import Bill
from lamina.sinks.in_memory import InMemoryMetrics
from lamina.streams.metrics import DIAGNOSES, MERGES
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Tables
from lamina.streams.records import Kind, Operator, Unit
from lamina.streams.recoverability import HOPS, recoverability

KINDS: tuple[Kind, ...] = ("turn", "episode", "fact", "abstract")
EVERYTHING = 1_000_000
"""More entries than a journal of one conversation has."""


@dataclass(frozen=True, slots=True)
class EditMade:
    """An executed topology edit, known by what it rests on: ids of derived units differ between runs."""

    operator: Operator
    rests_on: frozenset[UUID]
    """Turns that are the evidence of its targets."""
    reason: str


@dataclass(slots=True)
class Figures:
    """Counts of one conversation in one mode, or of several added up."""

    conversations: int = 0
    turns: int = 0
    gated: int = 0
    visible: Counter[str] = field(default_factory=Counter)
    """Visible units by kind."""
    archived: int = 0
    commands: Counter[str] = field(default_factory=Counter)
    """Commands by kind."""
    unfinished: int = 0
    """Commands that are neither applied, skipped nor without effect at the end."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Commands by what made them due."""
    merged: int = 0
    """Exchanges that joined a known thread."""
    diagnoses: Counter[str] = field(default_factory=Counter)
    """Neighbourhoods that the drift gate held back (`gated`) and that were diagnosed (`diagnosed`)."""
    edits: Counter[str] = field(default_factory=Counter)
    """Topology edits by `operator outcome`."""
    calls: Counter[str] = field(default_factory=Counter)
    tokens_in: Counter[str] = field(default_factory=Counter)
    tokens_out: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    """Wall time from the first turn to the last command, store writes included."""
    slowest: float = 0.0
    """Seconds of the slowest conversation."""
    model_seconds: float = 0.0
    """Seconds of the calls, added up (calls at once count each); 0 for the rehearsal model."""
    reached: list[int] = field(default_factory=lambda: [0] * len(HOPS))
    """Archived units within 1, 2, 3 and 4 links of a visible one."""
    unreachable: int = 0
    made: list[EditMade] = field(default_factory=list)
    """Executed topology edits."""

    @property
    def coverage(self) -> tuple[float, ...]:
        """Cov(1) to Cov(4) as fractions; 1 where nothing is archived (All-Mem app. G)."""
        return tuple(reached / self.archived if self.archived else 1.0 for reached in self.reached)

    @property
    def tokens(self) -> int:
        """Tokens in and out over all purposes."""
        return self.tokens_in.total() + self.tokens_out.total()

    def add(self, other: "Figures") -> None:
        """Add another conversation's figures."""
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.slowest = max(self.slowest, other.slowest)
        self.reached = [ours + theirs for ours, theirs in zip(self.reached, other.reached, strict=True)]


_SUMMED = tuple(each.name for each in fields(Figures) if each.name not in {"slowest", "reached"})
"""Fields whose values add up by `+`: numbers, counters and lists."""


def total(several: Iterable[Figures]) -> Figures:
    """Add figures up."""
    added = Figures()
    for each in several:
        added.add(each)
    return added


async def figures_of(
    namespace: Namespace, tables: Tables, metrics: InMemoryMetrics, bill: Bill, seconds: float
) -> Figures:
    """Read the figures of one finished conversation."""
    tally = await tables.tally(namespace)
    graph = await tables.graph(namespace)
    visible = Counter(graph.kinds[unit] for unit, shown in graph.visible.items() if shown)
    recovered = recoverability(graph)
    entries = await tables.journal(namespace, limit=EVERYTHING)
    edits = [edit for entry in entries if entry.command.kind == "topology" for edit in entry.edits]
    executed = [edit for edit in edits if edit.outcome == "executed"]
    named = {unit for edit in executed for unit in edit.targets}
    units = await tables.units(namespace, named)
    made = [
        EditMade(edit.operator, _evidence([units[t] for t in edit.targets if t in units]), edit.reason)
        for edit in executed
    ]
    return Figures(
        conversations=1,
        turns=sum(tally.turns.values()),
        gated=tally.turns.get("gated", 0),
        visible=Counter({kind: visible[kind] for kind in KINDS}),
        archived=recovered.archived,
        commands=Counter(entry.command.kind for entry in entries),
        unfinished=tally.open_commands,
        reasons=Counter(entry.command.reason for entry in entries),
        merged=int(metrics.value(MERGES)),
        diagnoses=Counter(
            {which: int(metrics.value(DIAGNOSES, outcome=which)) for which in ("gated", "diagnosed")}
        ),
        edits=Counter(f"{edit.operator} {edit.outcome}" for edit in edits),
        calls=Counter(bill.calls),
        tokens_in=Counter(bill.tokens_in),
        tokens_out=Counter(bill.tokens_out),
        seconds=seconds,
        slowest=seconds,
        model_seconds=bill.seconds,
        reached=[sum(far <= hops for far in recovered.hops.values()) for hops in HOPS],
        unreachable=len(recovered.unreachable),
        made=made,
    )


def _evidence(units: Iterable[Unit]) -> frozenset[UUID]:
    """Return the turns that units rest on; a turn rests on itself."""
    return frozenset(turn for unit in units for turn in (unit.evidence or (unit.id,)))
