"""What the gate takes and what it costs: the curve over α, τ and E(·), the rules, the published windows.

Filler and substance are the labels of `bench/data` (a filler turn carries nothing one would ever want
recalled); evidence are the turns that LoCoMo's questions of categories 1–4 cite. Conversations 26, 30, 41
and 42 were looked at while the rules were written; 43, 44 and 47 were not, and stand apart as held out.
"""

import asyncio
import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from time import perf_counter
from typing import Any

import orjson
from rich.console import Group, RenderableType
from rich.table import Table

from lamina.bench.conversation import Conversation
from lamina.bench.locomo import ANSWERABLE, load_locomo
from lamina.streams.gate import (
    GatePolicy,
    Similarity,
    dense_similarity,
    judge,
    judge_windows,
    lexical_similarity,
    score,
)
from lamina.streams.phatic import answers, echoes, is_phatic
from lamina.streams.ports import Embedder
from lamina.streams.salience import salience_of
from lamina.streams.settings import Settings

ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
TAUS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6)
PUBLISHED_TAU = 0.35
SHOWN_ALPHAS = (0.25, 0.5)
"""α of the rows that the printed table shows at the published τ; the JSON holds them all."""
TUNING = frozenset({"26", "30", "41", "42"})
"""Conversations read while the rules were written; every other one is held out."""

SAMPLE = "sample"
LOCOMO = "LoCoMo, all"

_EMBED_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Judgeable:
    """A turn with what is known about it; `label` is `filler`, `substance`, or None where unlabelled."""

    subset: str
    text: str
    previous: tuple[str, ...]
    label: str | None
    evidence: bool


@dataclass(frozen=True, slots=True)
class Row:
    """What one way of gating does to one subset; shares are fractions, None where nothing is of the kind."""

    method: str
    similarity: str
    alpha: float | None
    tau: float | None
    subset: str
    turns: int
    gated: float
    filler: int
    filler_gated: float | None
    substance: int
    substance_lost: float | None
    evidence: int
    evidence_lost: float | None


@dataclass(frozen=True, slots=True)
class Report:
    """Every row, the salience counts by rule (all LoCoMo turns), and the time to judge a turn here."""

    policy: GatePolicy
    rows: tuple[Row, ...]
    salient: dict[str, int]
    salience_turns: int
    microseconds: float
    """Mean wall time of one `judge` on this machine; not comparable between machines."""

    def json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    def find(self, method: str, subset: str, **wanted: Any) -> Row:
        """Return the one row of a method and subset with these values.

        Raises:
            LookupError: no such row, or several.
        """
        found = [
            row
            for row in self.rows
            if row.method == method
            and row.subset == subset
            and all(getattr(row, name) == value for name, value in wanted.items())
        ]
        if len(found) != 1:
            raise LookupError(f"{len(found)} rows of {method} on {subset} with {wanted}")
        return found[0]


def gate_report(data: Path | None, embedder: Embedder | None, policy: GatePolicy | None = None) -> Report:
    """Measure the gate; for callers outside an event loop. See `run_gate`."""
    return asyncio.run(run_gate(data, embedder, policy))


async def run_gate(data: Path | None, embedder: Embedder | None, policy: GatePolicy | None = None) -> Report:
    """Measure the gate on the bundled sample and, where given, on LoCoMo.

    Args:
        data: folder of LoCoMo's JSON files; None: the sample alone.
        embedder: the dense E(·); None: the lexical rows alone.
        policy: the gate that is measured as the default; None: that of the default settings.

    Raises:
        Misconfigured: the folder holds no LoCoMo conversation.
        EmbedderUnavailable: the engine does not answer.
    """
    policy = policy or GatePolicy.of(Settings())
    sessions = sample_sessions()
    conversations = load_locomo(data) if data is not None else []
    sessions += [session for each in conversations for session in locomo_sessions(each)]
    similarities: dict[str, Similarity] = {"lexical": lexical_similarity}
    if embedder is not None:
        texts = sorted({turn.text for session in sessions for turn in session})
        similarities["dense"] = dense_similarity(
            dict(zip(texts, await _embedded(texts, embedder), strict=True))
        )
    salient = Counter(
        rule for each in conversations for turn in each.turns if (rule := salience_of(turn.text))
    )
    return Report(
        policy=policy,
        rows=tuple(gate_curve(sessions, policy, similarities)),
        salient=dict(salient.most_common()),
        salience_turns=sum(len(each.turns) for each in conversations),
        microseconds=_judging_time([turn for session in sessions for turn in session], policy),
    )


async def _embedded(texts: Sequence[str], embedder: Embedder) -> list[Any]:
    rows: list[Any] = []
    for start in range(0, len(texts), _EMBED_AT_ONCE):
        rows.extend(await embedder.embed(texts[start : start + _EMBED_AT_ONCE]))
    return rows


def sample_sessions() -> list[list[Judgeable]]:
    """Return the bundled sample conversation, by session, with its labels."""
    labels = {row["message_id"]: row["label"] for row in _labels("sample_labels.csv")}
    sessions: dict[str, list[Judgeable]] = {}
    for line in _data("sample_conversation.jsonl").splitlines():
        message = orjson.loads(line)
        session = sessions.setdefault(message["run_id"], [])
        previous = tuple(turn.text for turn in session)
        label = labels.get(message["message_id"])
        session.append(Judgeable(SAMPLE, message["content"], previous, label, evidence=False))
    return list(sessions.values())


def locomo_sessions(conversation: Conversation) -> list[list[Judgeable]]:
    """Return a LoCoMo conversation by session, with the bundled labels and its evidence."""
    labels = {
        row["turn"]: row["label"]
        for row in _labels("locomo_gate_labels.csv")
        if row["conversation"] == conversation.id
    }
    subset = "LoCoMo, tuning" if conversation.id in TUNING else "LoCoMo, held out"
    evidence = conversation.evidence(ANSWERABLE)
    return [
        [
            Judgeable(
                subset=subset,
                text=turn.text,
                previous=tuple(each.text for each in turns[:place]),
                label=labels.get(turn.id),
                evidence=turn.id in evidence,
            )
            for place, turn in enumerate(turns)
        ]
        for turns in conversation.sessions().values()
    ]


def gate_curve(
    sessions: Sequence[Sequence[Judgeable]],
    policy: GatePolicy,
    similarities: dict[str, Similarity],
    alphas: Sequence[float] = ALPHAS,
    taus: Sequence[float] = TAUS,
) -> Iterable[Row]:
    """Yield the rows: the rules, the default gate; for each E(·), α and τ: H, H behind the rules, windows.

    Args:
        sessions: turns by session, in order; `previous` holds the whole session before a turn.
        policy: the default gate, whose window also bounds H_prev of every other row.
        similarities: E(·) by name; the default gate is measured with each.
        alphas: α to try.
        taus: τ to try.
    """
    turns = [turn for session in sessions for turn in session]
    rules = [_by_rules(turn, policy) for turn in turns]
    immune = [_immune(turn, policy) for turn in turns]
    yield from _rows("phatic rule alone", turns, [reason == "phatic" for reason in rules])
    yield from _rows("rules alone", turns, [reason is not None for reason in rules])
    for name, similarity in similarities.items():
        verdicts = [judge(turn.text, turn.previous, policy, similarity) for turn in turns]
        gated = [not verdict.keep for verdict in verdicts]
        yield from _rows("gate (default)", turns, gated, name, policy.alpha, policy.tau)
        entity = [score(turn.text, _window(turn, policy), 1.0, similarity) for turn in turns]
        novelty = [score(turn.text, _window(turn, policy), 0.0, similarity) for turn in turns]
        for alpha in alphas:
            alone = [alpha * new + (1 - alpha) * far for new, far in zip(entity, novelty, strict=True)]
            windows = [
                verdict.score
                for session in sessions
                for verdict in judge_windows(
                    [turn.text for turn in session], GatePolicy(alpha, 0.0, policy.window), similarity
                )
            ]
            for tau in taus:
                yield from _rows("H alone", turns, [h < tau for h in alone], name, alpha, tau)
                both = [
                    reason is not None or (h < tau and not safe)
                    for reason, h, safe in zip(rules, alone, immune, strict=True)
                ]
                yield from _rows("rules and H", turns, both, name, alpha, tau)
                yield from _rows("published windows", turns, [h < tau for h in windows], name, alpha, tau)


def _window(turn: Judgeable, policy: GatePolicy) -> tuple[str, ...]:
    return turn.previous[max(0, len(turn.previous) - policy.window + 1) :]


def _by_rules(turn: Judgeable, policy: GatePolicy) -> str | None:
    before = _window(turn, policy)
    if _immune(turn, policy) or not echoes(turn.text, before):
        return None
    return "phatic" if is_phatic(turn.text) else "echo"


def _immune(turn: Judgeable, policy: GatePolicy) -> bool:
    return salience_of(turn.text) is not None or answers(turn.text, _window(turn, policy))


def _rows(
    method: str,
    turns: Sequence[Judgeable],
    gated: Sequence[bool],
    similarity: str = "",
    alpha: float | None = None,
    tau: float | None = None,
) -> Iterable[Row]:
    within: dict[str, list[tuple[Judgeable, bool]]] = {}
    for turn, out in zip(turns, gated, strict=True):
        within.setdefault(turn.subset, []).append((turn, out))
        if turn.subset != SAMPLE:
            within.setdefault(LOCOMO, []).append((turn, out))
    for subset, pairs in within.items():
        filler = [out for turn, out in pairs if turn.label == "filler"]
        substance = [out for turn, out in pairs if turn.label == "substance"]
        evidence = [out for turn, out in pairs if turn.evidence]
        yield Row(
            method=method,
            similarity=similarity,
            alpha=alpha,
            tau=tau,
            subset=subset,
            turns=len(pairs),
            gated=_share([out for _, out in pairs]) or 0.0,
            filler=len(filler),
            filler_gated=_share(filler),
            substance=len(substance),
            substance_lost=_share(substance),
            evidence=len(evidence),
            evidence_lost=_share(evidence),
        )


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None


def _judging_time(turns: Sequence[Judgeable], policy: GatePolicy) -> float:
    begun = perf_counter()
    for turn in turns:
        judge(turn.text, turn.previous, policy)
    return (perf_counter() - begun) / len(turns) * 1e6


def _data(name: str) -> str:
    return (files("lamina.bench") / "data" / name).read_text(encoding="utf-8")


def _labels(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(_data(name))))


def gate_tables(report: Report) -> RenderableType:
    """Return the figures as tables: the ways of gating at the published τ, then the curves over α and τ."""
    return Group(_methods(report), _curve(report, "H alone"), _curve(report, "rules and H"), _footer(report))


def _methods(report: Report) -> Table:
    table = Table(title=f"Ways of gating (H alone and windows at the published τ = {PUBLISHED_TAU})")
    for name in (
        "subset",
        "method",
        "E",
        "α",
        "τ",
        "turns",
        "gated",
        "filler gated",
        "substance lost",
        "evidence lost",
    ):
        table.add_column(name, justify="left" if name in {"subset", "method", "E"} else "right")
    shown = [
        row
        for row in report.rows
        if row.tau is None
        or row.method == "gate (default)"
        or (row.tau == PUBLISHED_TAU and row.alpha in SHOWN_ALPHAS and row.method != "rules and H")
    ]
    for row in sorted(shown, key=lambda row: row.subset):
        table.add_row(
            row.subset,
            row.method,
            row.similarity or "–",
            _number(row.alpha),
            _number(row.tau),
            str(row.turns),
            _percent(row.gated),
            _of(row.filler_gated, row.filler),
            _of(row.substance_lost, row.substance),
            _of(row.evidence_lost, row.evidence),
        )
    return table


def _curve(report: Report, method: str) -> Table:
    subsets = {row.subset for row in report.rows}
    subset = LOCOMO if LOCOMO in subsets else SAMPLE
    table = Table(title=f"{method}, {subset}: filler gated / substance lost / evidence lost, % of each")
    table.add_column("E")
    table.add_column("α", justify="right")
    for tau in TAUS:
        table.add_column(f"τ {tau:g}", justify="right")
    rows = [row for row in report.rows if row.method == method and row.subset == subset]
    for key in dict.fromkeys((row.similarity, row.alpha) for row in rows):
        line = [row for row in rows if (row.similarity, row.alpha) == key]
        table.add_row(key[0], _number(key[1]), *(_triple(row) for row in line))
    return table


def _footer(report: Report) -> str:
    rules = ", ".join(f"{rule} {count}" for rule, count in report.salient.items()) or "none"
    return (
        f"Default: α = {report.policy.alpha:g}, τ = {report.policy.tau:g}, W = {report.policy.window}. "
        f"Salient LoCoMo turns, of {report.salience_turns}: {rules}. "
        f"Judging a turn took {report.microseconds:.0f} µs here."
    )


def _triple(row: Row) -> str:
    shares = (row.filler_gated, row.substance_lost, row.evidence_lost)
    return "/".join("–" if share is None else f"{share * 100:.0f}" for share in shares)


def _of(share: float | None, count: int) -> str:
    return "–" if share is None else f"{_percent(share)} of {count}"


def _percent(share: float) -> str:
    return f"{share * 100:.2f} %"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"
