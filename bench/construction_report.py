"""The construction benchmark's report: as tables for a terminal, and as plain data."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from lamina.bench.construction_figures import KINDS, Figures, total
from lamina.bench.drift_kept import DriftKept, drift_kept
from lamina.bench.modes import DRIFT_PAIRS, MODES

MOST_MISSED = 20
"""Missed edits that the printed report lists; the JSON holds all."""


@dataclass(frozen=True, slots=True)
class Report:
    """Figures by mode and conversation, and what they were made with."""

    figures: Mapping[str, Mapping[str, Figures]]
    tokenizer: str
    model: str
    embedder: str
    store: str
    machine: str
    turns: Mapping[UUID, str]
    """Names of the turns, "26/D3:7", by id."""

    @property
    def totals(self) -> dict[str, Figures]:
        """Each mode's figures over all conversations."""
        return {mode: total(rows.values()) for mode, rows in self.figures.items()}

    @property
    def drift(self) -> dict[str, DriftKept]:
        """The drift gate's savings, by the gated mode, where both modes of a pair were run."""
        totals = self.totals
        return {
            gated: drift_kept(totals[everything], totals[gated])
            for everything, gated in DRIFT_PAIRS
            if everything in totals and gated in totals
        }

    def json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "tokenizer": self.tokenizer,
            "model": self.model,
            "embedder": self.embedder,
            "store": self.store,
            "machine": self.machine,
            "modes": [
                {
                    "mode": mode,
                    **_plain(self.totals[mode]),
                    "by_conversation": {name: _plain(each) for name, each in rows.items()},
                }
                for mode, rows in self.figures.items()
            ],
            "drift": {mode: kept.json(self.turns) for mode, kept in self.drift.items()},
        }

    def tables(self) -> RenderableType:
        """Return the totals, each mode's conversations, its calls by purpose, and the drift gate."""
        parts: list[RenderableType] = [self._totals()]
        parts += [_conversations(mode, rows) for mode, rows in self.figures.items()]
        parts.append(self._purposes())
        parts += [self._drift(mode, kept) for mode, kept in self.drift.items()]
        parts += [f"{mode}: {MODES[mode].says}" for mode in self.figures]
        parts.append(
            f"Tokens counted by {self.tokenizer}; model: {self.model}; embedder: {self.embedder}; "
            f"store: {self.store}; {self.machine}."
        )
        return Group(*parts)

    def _totals(self) -> Table:
        table = _table("All conversations", ("mode", *_COLUMNS))
        for mode, figures in self.totals.items():
            table.add_row(mode, *_cells(figures))
        return table

    def _purposes(self) -> Table:
        table = _table("Calls by purpose", ("mode", "purpose", "calls", "tokens in", "tokens out", "a call"))
        for mode, figures in self.totals.items():
            for purpose, calls in figures.calls.most_common():
                read, written = figures.tokens_in[purpose], figures.tokens_out[purpose]
                each = (read + written) / calls
                table.add_row(mode, purpose, str(calls), f"{read:,}", f"{written:,}", f"{each:,.0f}")
        return table

    def _drift(self, mode: str, drift: DriftKept) -> str:
        saved, kept = _percent(drift.saved_share), _percent(drift.kept_share)
        diagnoses = f"{drift.diagnoses_drift} diagnoses instead of {drift.diagnoses_all} ({saved} saved)"
        edits = f"{drift.kept} of {drift.edits_all} edits kept ({kept}), {drift.added} made only behind it"
        lines = [f"Drift gate of {mode}: {diagnoses}, {edits}."]
        for edit in drift.missed[:MOST_MISSED]:
            turns = ", ".join(sorted(self.turns.get(turn, str(turn)) for turn in edit.rests_on))
            lines.append(f"  missed: {edit.operator} over {turns}: {edit.reason}")
        if len(drift.missed) > MOST_MISSED:
            lines.append(f"  … and {len(drift.missed) - MOST_MISSED} more")
        return "\n".join(lines)


_COLUMNS = (
    "turns",
    "gated",
    "epis.",
    "facts",
    "abstr.",
    "archived",
    "promote",
    "merge",
    "topol.",
    "diagn.",
    "held",
    "edits",
    "calls",
    "k tok.",
    "seconds",
    "Cov(1…4) %",
    "lost",
)


def _cells(figures: Figures) -> tuple[str, ...]:
    executed = sum(count for edit, count in figures.edits.items() if edit.endswith(" executed"))
    commands = figures.commands
    return (
        str(figures.turns),
        str(figures.gated),
        *(str(figures.visible[kind]) for kind in KINDS if kind != "turn"),
        str(figures.archived),
        *(str(commands[kind]) for kind in ("promote", "merge", "topology")),
        str(figures.diagnoses["diagnosed"]),
        str(figures.diagnoses["gated"]),
        str(executed),
        str(figures.calls.total()),
        f"{figures.tokens / 1000:,.0f}",
        f"{figures.seconds:.1f}",
        "/".join(f"{share * 100:.0f}" for share in figures.coverage),
        str(figures.unreachable),
    )


def _conversations(mode: str, rows: Mapping[str, Figures]) -> Table:
    table = _table(mode, ("conversation", *_COLUMNS))
    for name, figures in rows.items():
        table.add_row(name, *_cells(figures))
    return table


def _table(title: str, headings: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 0), pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left")
    return table


def _plain(figures: Figures) -> dict[str, Any]:
    return {
        "conversations": figures.conversations,
        "turns": figures.turns,
        "gated": figures.gated,
        "units": figures.visible.total() + figures.archived,
        "visible": dict(figures.visible),
        "archived": figures.archived,
        "commands": dict(figures.commands),
        "commands_by_reason": dict(figures.reasons),
        "commands_unfinished": figures.unfinished,
        "promotions": figures.commands["promote"],
        "exchanges_merged": figures.merged,
        "diagnoses": dict(figures.diagnoses),
        "edits": _edits(figures.edits),
        "llm_calls": figures.calls.total(),
        "tokens_in": figures.tokens_in.total(),
        "tokens_out": figures.tokens_out.total(),
        "by_purpose": {
            purpose: {
                "llm_calls": calls,
                "tokens_in": figures.tokens_in[purpose],
                "tokens_out": figures.tokens_out[purpose],
            }
            for purpose, calls in figures.calls.items()
        },
        "seconds": round(figures.seconds, 3),
        "seconds_slowest_conversation": round(figures.slowest, 3),
        "model_seconds": round(figures.model_seconds, 3),
        "coverage": [round(share, 4) for share in figures.coverage],
        "unreachable": figures.unreachable,
    }


def _edits(counted: Counter[str]) -> dict[str, dict[str, int]]:
    edits: dict[str, dict[str, int]] = {}
    for name, count in sorted(counted.items()):
        operator, _, outcome = name.partition(" ")
        edits.setdefault(operator, {})[outcome] = count
    return edits


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
