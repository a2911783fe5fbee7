"""Parameters and ablation switches of the strategies, validated where a request brings them.

The defaults are the papers', or ours where the paper publishes none; each strategy's module says which.
Upper bounds keep one question from reading a whole namespace.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Strategy = Literal["auto", "tiers", "adaptive", "topology", "chain"]
"""The names by which a strategy is chosen."""


class _Parameters(BaseModel):
    """Frozen, and strict: an unknown name is an error, so a typo never passes for a setting."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Auto(_Parameters):
    """Of `auto` (ours)."""

    nearest: int = Field(default=100, ge=1, le=500, description="candidates by vector")
    words: int = Field(default=100, ge=0, le=500, description="candidates by BM25; 0: words count nowhere")
    around: int = Field(default=1, ge=0, le=3, description="neighbours of each candidate, on each side")
    turns: int = Field(
        default=20, ge=1, le=200, description="most turns, where the request does not say how many results"
    )
    derived: int = Field(default=10, ge=0, le=100, description="most facts, episodes and abstracts")
    late_interaction: bool = Field(default=True, description="false: without the turns' token vectors")


class Tiers(_Parameters):
    """Of `tiers` (RecMem §3.5): other budgets than the settings'; 0 leaves a tier out (§4.3)."""

    exchanges: int | None = Field(default=None, ge=0, le=200, description="k_sub; null: the setting's")
    episodes: int | None = Field(default=None, ge=0, le=200, description="k_epi; null: the setting's")
    facts: int | None = Field(default=None, ge=0, le=200, description="k_sem; null: the setting's")


class Adaptive(_Parameters):
    """Of `adaptive` (SimpleMem §2.3)."""

    cosine_weight: float = Field(default=0.5, ge=0, le=1, description="λ1, of the cosine")
    lexical_weight: float = Field(
        default=0.5, ge=0, le=1, description="λ2, of BM25 over the candidates' best"
    )
    base: int = Field(default=3, ge=1, le=20, description="k_base, results of the simplest question")
    delta: float = Field(default=17 / 3, ge=0, le=20, description="δ, how much complexity deepens")
    candidates: int = Field(default=200, ge=1, le=1000, description="nearest units that are scored")
    depth: bool = Field(default=True, description="false: as many results for every question, of all kinds")
    fixed: int = Field(default=10, ge=1, le=100, description="results without adaptive depth")
    consolidation: bool = Field(default=True, description="false: turns alone, nothing derived")
    constraints: bool = Field(default=True, description="false: dates and names in the question do not bind")


class Topology(_Parameters):
    """Of `topology` (All-Mem §3.4)."""

    anchors: int = Field(default=10, ge=1, le=100, description="k, nearest units of the visible surface")
    hops: int = Field(default=4, ge=0, le=8, description="H_q, most links from an anchor")
    candidates: int = Field(
        default=40, ge=1, le=200, description="L, most units that are ranked, anchors too"
    )
    results: int = Field(default=16, ge=1, le=200, description="K, most results")
    visibility: bool = Field(default=True, description="false: anchors among archived units too (slow)")
    recovery: bool = Field(default=True, description="false: version and sibling links are not followed")
    priority: bool = Field(default=True, description="false: links of all types are alike")
    expansion: bool = Field(default=True, description="false: anchors alone")


Gate = Literal["product", "query", "context", "weighted"]
Context = Literal["text", "mean", "last"]


class Chain(_Parameters):
    """Of `chain` (Chain-of-Memory §3.2)."""

    pool: int = Field(default=20, ge=1, le=100, description="K, nearest turns that chains are made of")
    anchors: int = Field(default=3, ge=1, le=10, description="L, number of chains")
    beta: float = Field(
        default=0.5, ge=0, le=1, description="β, a chain ends where the score falls below β·former"
    )
    gate: Gate = Field(default="product", description="what the next turn is chosen by")
    weight: float = Field(
        default=0.5, ge=0, le=1, description="of the question, where the gate is `weighted`"
    )
    context: Context = Field(
        default="text", description="a chain's vector: its text embedded, the mean of its turns, or the last"
    )
    truncation: bool = Field(default=True, description="false: a chain takes the whole pool")
    chained: bool = Field(default=True, description="false: the pool by cosine, no chains")


class Deep(_Parameters):
    """Of `deep` (RLM-Memory §4): less than the settings allow; None: all of it."""

    programs: int | None = Field(default=None, ge=1, description="most programs")
    calls: int | None = Field(default=None, ge=1, description="most calls of the model")
    tokens: int | None = Field(default=None, ge=1, description="most tokens, estimated as bytes ÷ 4")
    seconds: float | None = Field(default=None, gt=0, description="most seconds")


class Options(_Parameters):
    """The parameters of every strategy; only those of the chosen one are read."""

    auto: Auto = Field(default_factory=Auto)
    tiers: Tiers = Field(default_factory=Tiers)
    adaptive: Adaptive = Field(default_factory=Adaptive)
    topology: Topology = Field(default_factory=Topology)
    chain: Chain = Field(default_factory=Chain)
    deep: Deep = Field(default_factory=Deep)
