"""The ablations of every strategy, as rows of `lamina bench recall --ablations`.

One thing differs from the row that a line names. Most differ in the question's options and are asked of the
same memory; those that differ in how memory is built have one of their own. The memories of this benchmark
are written by rules, without a language model, and what rules write little of (facts, abstracts, topology
edits) cannot make much of a difference here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.bench.modes import ALL_MEM_CHANGES
from lamina.bench.recall_strategies import STRATEGIES, Strategy, asking
from lamina.streams.recall.options import Adaptive, Auto, Chain, Options, Tiers, Topology

_ALL_MEM: Mapping[str, Any] = {**ALL_MEM_CHANGES, "diagnose": "all", "theta_count": 1_000_000}
"""All-Mem's own bank: turns alone, each looked at; nothing recurs often enough to be consolidated."""
_MEAN = Chain(context="mean")
"""The base of the rows of `chain`: the published context embeds every chain again at every step."""


def _auto(says: str, **options: Any) -> Strategy:
    return Strategy(says, asking("auto", Options(auto=Auto(**options))))


def _tiers(says: str, built: Mapping[str, Any] | None = None, **options: int) -> Strategy:
    return Strategy(says, asking("tiers", Options(tiers=Tiers(**options))), built or {})


def _adaptive(says: str, built: Mapping[str, Any] | None = None, **options: Any) -> Strategy:
    return Strategy(says, asking("adaptive", Options(adaptive=Adaptive(**options))), built or {})


def _topology(says: str, **options: bool) -> Strategy:
    return Strategy(says, asking("topology", Options(topology=Topology(**options))))


def _all_mem(says: str, **settings: bool) -> Strategy:
    return Strategy(says, asking("topology", Options()), {**_ALL_MEM, **settings})


def _chain(says: str, **options: Any) -> Strategy:
    return Strategy(says, asking("chain", Options(chain=_MEAN.model_copy(update=options))))


ABLATIONS: Mapping[str, Mapping[str, Strategy]] = {
    "auto": {
        "auto-no-late-interaction": _auto(
            "auto by the cosine of whole turns; weights fitted for that", late_interaction=False
        ),
        "auto-no-words": _auto("auto without BM25 and shared words; weights as they are", words=0),
        "auto-no-neighbours": _auto(
            "auto without the candidates' neighbours in the pool; weights as they are", around=0
        ),
        "auto-no-derived": _auto("auto without facts, episodes and abstracts", derived=0),
    },
    "tiers": {
        "tiers-no-subconscious": _tiers("tiers without exchanges (RecMem §4.3)", exchanges=0),
        "tiers-no-episodic": _tiers("tiers without episodes (RecMem §4.3)", episodes=0),
        "tiers-no-semantic": _tiers("tiers without facts and abstracts (RecMem §4.3)", facts=0),
        "tiers-direct-extraction": _tiers(
            "tiers over exchanges and facts alone, facts drawn from every exchange whether it recurs or not "
            "(after RecMem §4.3; the rules never look at an episode)",
            {"theta_count": 1, "episodic": "direct"},
            episodes=0,
        ),
    },
    "adaptive": {
        "adaptive-no-segmentation": _adaptive(
            "adaptive over turns as they were said: no gate, no references or dates resolved (SimpleMem "
            "table 4, first stage)",
            {"gate_enabled": False, "resolution": False},
        ),
        "adaptive-no-abstracts": _adaptive(
            "adaptive over a memory that abstracts nothing (SimpleMem table 4, second stage)",
            {"abstraction": "off"},
        ),
        "adaptive-no-consolidation": _adaptive("adaptive over turns, nothing derived", consolidation=False),
        "adaptive-no-depth": _adaptive(
            "adaptive with 10 results of all kinds for every question (SimpleMem table 4, third stage)",
            depth=False,
        ),
        "adaptive-no-constraints": _adaptive(
            "adaptive where dates and names in the question do not bind (eq. 7 without its last term)",
            constraints=False,
        ),
    },
    "topology": {
        "topology-no-visibility": _topology(
            "topology with archived units among the anchors (All-Mem app. E)", visibility=False
        ),
        "topology-no-recovery": _topology(
            "topology without version and sibling links (All-Mem app. E)", recovery=False
        ),
        "topology-no-priority": _topology("topology with links of all types alike (app. E)", priority=False),
        "topology-no-expansion": _topology("topology by its anchors alone (app. E)", expansion=False),
        "topology-all-mem": _all_mem(
            "topology over All-Mem's own bank: turns alone, no gate, every neighbourhood diagnosed, turns "
            "archived; what the next three differ from"
        ),
        "topology-no-split": _all_mem("topology-all-mem without Split (app. E)", topology_split=False),
        "topology-no-merge": _all_mem("topology-all-mem without Merge (app. E)", topology_merge=False),
        "topology-no-update": _all_mem("topology-all-mem without Update (app. E)", topology_update=False),
    },
    "chain": {
        "chain-mean": _chain(
            "chain with the mean of a chain's turns for its context, which takes a fiftieth of the time; "
            "K = 20, β = 0.5: what the rows below differ from"
        ),
        "chain-last": _chain("chain-mean with the last turn for context", context="last"),
        "chain-query-only": _chain("chain-mean, gate cos(m, q) (CoM table 3)", gate="query"),
        "chain-context-only": _chain("chain-mean, gate cos(m, C) (table 3)", gate="context"),
        "chain-weighted": _chain("chain-mean, gate ½cos(m, q) + ½cos(m, C) (table 3)", gate="weighted"),
        "chain-no-truncation": _chain("chain-mean, chains take the whole pool (figure 3)", truncation=False),
        "chain-top-k": _chain("the pool by cosine, no chains (figure 3)", chained=False),
        **{
            f"chain-k-{pool}": _chain(f"chain-mean with K = {pool} (figure 4)", pool=pool)
            for pool in (1, 5, 10, 50)
        },
        **{
            f"chain-beta-{beta}": _chain(f"chain-mean with β = {beta} ({source})", beta=beta)
            for beta, source in ((0.3, "table 4"), (0.7, "table 4"), (0.9, "ours"))
        },
    },
}
"""By strategy and name, in the order shown."""

BASES: Mapping[str, str] = {name: of for of, each in ABLATIONS.items() for name in each}
"""The strategy of each ablation."""

ROWS: Mapping[str, Strategy] = {
    row: strategy
    for name, own in STRATEGIES.items()
    for row, strategy in ((name, own), *ABLATIONS.get(name, {}).items())
}
"""Every row of the benchmark in the order shown: each strategy, then its ablations."""


def with_ablations(names: Sequence[str]) -> list[str]:
    """Return these strategies and baselines, each followed by its ablations, none twice."""
    return list(dict.fromkeys(row for name in names for row in (name, *ABLATIONS.get(name, {}))))
