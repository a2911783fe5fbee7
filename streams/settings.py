"""Every setting, frozen, with its unit and its reason. `docs/settings.md` is generated from here.

Each field is read from the environment variable `LAMINA_` + its name in capitals, by
`lamina.sinks.environment`; nothing in `streams` reads the environment.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """One frozen object that every process is wired from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Where things are
    broker: str = Field(default="", description="Kafka bootstrap servers, `host:port,…`; empty: embedded")
    database: str = Field(
        default="", description="SQLAlchemy URL (async driver); empty: SQLite in the data dir"
    )
    store: str = Field(default="", description="Socket of a running store child (path); empty: start one")
    store_cache_mb: int = Field(
        default=512, ge=1, description="Memory of the store child for namespaces that were asked lately"
    )
    store_warm_mb: int = Field(
        default=1024, ge=0, description="Most of its files that the store child maps at the start; 0: none"
    )
    data_dir: str = Field(
        default="", description="Folder of the embedded system; empty: the user's data folder"
    )
    cache_dir: str = Field(
        default="", description="Folder of converted weights; empty: the user's cache folder"
    )
    cluster: str = Field(default="local", description="Name of the Kafka cluster, part of ids from offsets")
    topic_prefix: str = Field(default="lamina", description="Prefix of every topic", pattern=r"^[a-z0-9-]+$")
    http_host: str = Field(default="127.0.0.1", description="Address the query service listens on")
    http_port: int = Field(default=8321, ge=0, le=65535, description="Its port; 0 takes a free one")
    api_keys: dict[str, str] = Field(
        default_factory=dict, description="API key → tenant, as JSON; empty: one tenant, loopback only"
    )
    tenant: str = Field(default="local", description="The one tenant where no API keys are set")

    # Faust
    replication: int = Field(default=1, ge=1, description="Replication factor of topics that Lamina creates")
    create_topics: bool = Field(default=True, description="Create missing topics at start-up")
    session_timeout_seconds: float = Field(
        default=30.0, ge=1, description="Group session timeout (the embedded broker uses 2)"
    )
    batch_size: int = Field(default=64, ge=1, le=1024, description="Most records a step takes as one batch")
    batch_within_seconds: float = Field(
        default=0.05, gt=0, description="Longest wait for a batch to fill: the latency a quiet hop adds"
    )
    buffer_size: int = Field(default=512, ge=16, description="Records a step holds before it stops polling")
    drain_seconds: float = Field(default=20.0, ge=0, description="Time in-flight work has at shutdown")
    watchdog_seconds: float = Field(
        default=120.0, ge=0, description="A loop stuck for so long ends the process; 0: never"
    )
    retry_max_seconds: float = Field(default=30.0, gt=0, description="Longest pause between two retries")
    unknown_fault_attempts: int = Field(
        default=3, ge=1, description="Tries before an unknown fault is poison"
    )

    # gate
    gate_alpha: float = Field(
        default=0.25, ge=0, le=1, description="α: weight of new entities (SimpleMem eq. 1)"
    )
    gate_tau: float = Field(
        default=0.2, ge=0, le=1, description="τ: scores below are gated (SimpleMem eq. 2)"
    )
    gate_window: int = Field(
        default=10, ge=2, le=100, description="W: turns judged together (SimpleMem §3.1)"
    )
    gate_similarity: Literal["lexical", "dense"] = Field(
        default="lexical", description="E(·) of the gate: hashed words, or the embedder"
    )
    gate_enabled: bool = Field(default=True, description="Off: every turn is admitted, with its score")

    # embed
    embedder: Literal["onnx", "openai"] = Field(default="onnx", description="Embedding engine")
    embed_threads: int = Field(default=2, ge=1, description="Threads of the ONNX engine")
    embed_precision: Literal["int8", "fp32"] = Field(default="int8", description="Weights of the ONNX engine")
    embed_cache_texts: int = Field(
        default=10_000, ge=0, description="Texts whose vectors are kept in memory: about 10 KB each"
    )
    openai_base_url: str = Field(default="", description="OpenAI-compatible embedding endpoint")
    openai_api_key: str = Field(default="", description="Its key", repr=False)
    openai_embed_model: str = Field(default="text-embedding-3-small", description="Its model")
    openai_embed_dimension: int = Field(default=1536, ge=1, description="Its dimension")
    openai_timeout_seconds: float = Field(default=30.0, gt=0, description="Hard limit of one call")

    # remember
    semantic_links: int = Field(
        default=8, ge=0, le=64, description="Out-degree cap of semantic links (All-Mem)"
    )
    count_unit: Literal["exchange", "turn"] = Field(default="exchange", description="What recurrence counts")
    theta_sim: float | Literal["adaptive"] = Field(
        default=0.7, description="θ_sim: cosine from which two are similar; `adaptive`: set per namespace"
    )
    theta_count: int = Field(
        default=5,
        ge=1,
        description="θ_count: similar exchanges that promote a cluster; 1: every exchange is consolidated",
    )
    salience: bool = Field(
        default=True, description="What matters is promoted without recurring; off: RecMem as published"
    )
    merge_size: int = Field(default=4, ge=1, description="Exchanges that make a thread's merge due at once")
    merge_idle_seconds: float = Field(
        default=900.0, gt=0, description="Quiet time after which what matters, or opens a thread, is written"
    )
    merge_wait_seconds: float = Field(
        default=604_800.0,
        gt=0,
        description="Quiet time after which any other merge is due; turns are found at once",
    )
    recurrence_cache_exchanges: int = Field(
        default=50_000, ge=0, description="Exchanges whose vectors a worker caches over all namespaces"
    )

    # consolidate
    executors: int = Field(default=4, ge=1, description="Commands carried out at once, one per namespace")
    lease_seconds: float = Field(default=60.0, gt=0, description="Lease of a namespace's lane")

    llm_model: str = Field(
        default="", description="Chat model that consolidates and answers; empty: by rules (extractive)"
    )
    llm_base_url: str = Field(default="", description="OpenAI-compatible endpoint; empty: OpenAI's own")
    llm_api_key: str = Field(default="", description="Its key", repr=False)
    llm_timeout_seconds: float = Field(
        default=60.0, gt=0, description="Hard limit of one call, the repair its own"
    )
    llm_thinking_tokens: int = Field(
        default=0, ge=0, description="Added to every reply's limit, for models that think within it"
    )
    llm_calls_at_once: int = Field(default=20, ge=1, description="Calls of one process on their way at once")
    llm_budget_tokens: int = Field(
        default=0,
        ge=0,
        description="Tokens a tenant may spend per window, checked before a call; 0: no limit",
    )
    llm_budget_window_seconds: float = Field(default=86_400.0, gt=0, description="The window of that budget")
    llm_command_attempts: int = Field(
        default=3, ge=1, description="Unusable replies after which a command is skipped"
    )
    llm_retry_seconds: float = Field(
        default=30.0, gt=0, description="Wait of a command whose model does not answer and names no delay"
    )
    episodic: Literal["fused", "faithful", "direct"] = Field(
        default="fused",
        description="One call for episodes and facts, RecMem's separate calls, or these with the facts of "
        "the turns alone (RecMem §4.3)",
    )
    resolution: bool = Field(
        default=True,
        description="Index turns with references and dates resolved (SimpleMem eq. 3); off: as said",
    )
    known_facts: int = Field(default=10, ge=0, description="Known facts shown to the refiner (RecMem eq. 8)")

    # topology
    topology: bool = Field(default=True, description="Edit what was consolidated (All-Mem); off: never")
    topology_kinds: Literal["derived", "all"] = Field(
        default="derived", description="What topology may archive: derived units, or turns too (All-Mem)"
    )
    topology_sessions: int = Field(
        default=3, ge=1, description="Sessions after which topology looks (All-Mem)"
    )
    topology_buffer: int = Field(default=64, ge=2, description="Buffered units after which it looks at once")
    topology_idle_seconds: float = Field(default=3600.0, gt=0, description="Quiet time after which it looks")
    topology_anchors: int = Field(
        default=10, ge=1, description="k: anchors of a neighbourhood (All-Mem eq. 4)"
    )
    diagnose: Literal["drift", "all"] = Field(
        default="drift",
        description="Neighbourhoods that are diagnosed: with a measured signal, or all (All-Mem)",
    )
    topology_split: bool = Field(default=True, description="Split (All-Mem §3.3); off: never")
    topology_merge: bool = Field(default=True, description="Merge (All-Mem §3.3); off: never")
    topology_update: bool = Field(default=True, description="Update (All-Mem §3.3); off: never")
    theta_split: float = Field(default=0.9, ge=0, le=1, description="θ_op: confidence that accepts a split")
    theta_merge: float = Field(default=0.9, ge=0, le=1, description="θ_op: confidence that accepts a merge")
    theta_update: float = Field(
        default=0.9, ge=0, le=1, description="θ_op: confidence that accepts an update"
    )
    merge_redundancy: float = Field(
        default=0.7, ge=0, le=1, description="Mean cosine to the centroid of the others that a merge needs"
    )
    sibling_links: int = Field(
        default=8, ge=1, le=64, description="Out-degree cap of sibling links (All-Mem)"
    )
    abstraction: Literal["pairwise", "mean", "off"] = Field(
        default="pairwise", description="What triggers an abstract: affinity of each pair, or mean similarity"
    )
    abstraction_threshold: float = Field(
        default=0.85, ge=0, le=1, description="τ_cluster: affinity that abstracts (SimpleMem table 6)"
    )
    abstraction_beta: float = Field(
        default=0.7, ge=0, le=1, description="β: weight of similarity against closeness in time (ours)"
    )
    abstraction_decay: float = Field(
        default=0.1, ge=0, description="λ: decay per day of distance (SimpleMem table 6; the day is ours)"
    )

    # recall
    k_sub: int = Field(default=10, ge=1, description="Exchanges that `tiers` takes (RecMem §3.5)")
    k_epi: int = Field(default=5, ge=0, description="Episodes that `tiers` takes")
    k_sem: int = Field(default=10, ge=0, description="Facts that `tiers` takes")
    top_k_max: int = Field(default=1000, ge=1, description="Largest top_k a request may ask for")

    # chat: the OpenAI-compatible proxy
    chat_enabled: bool = Field(
        default=True, description="Off: no chat proxy, even where an endpoint is configured"
    )
    chat_base_url: str = Field(
        default="", description="Endpoint that the chat proxy passes to; empty: `LAMINA_LLM_BASE_URL`"
    )
    chat_api_key: str = Field(
        default="", description="Its key; empty: `LAMINA_LLM_API_KEY`, never for another endpoint", repr=False
    )
    chat_model: str = Field(
        default="", description="Model of chats that name none, or `lamina`; empty: `LAMINA_LLM_MODEL`"
    )
    chat_timeout_seconds: float = Field(
        default=600.0, gt=0, description="Longest silence of that endpoint within one answer"
    )
    chat_calls_at_once: int = Field(default=64, ge=1, description="Chats of one process on their way at once")
    chat_threshold_characters: int = Field(
        default=20_000, ge=0, description="Longest history that goes to the model whole (RLM-Memory §4.1)"
    )
    chat_last_messages: int = Field(
        default=10, ge=1, description="Messages at the end of a longer history that go with the context"
    )
    chat_context_tokens: int = Field(
        default=2_000, ge=1, le=100_000, description="Most tokens of memory added to a chat"
    )
    chat_recall: Literal["beyond", "always"] = Field(
        default="beyond", description="Add memory beyond that (RLM-Memory), or to short histories too"
    )
    chat_memory_seconds: float = Field(
        default=5.0, gt=0, description="Longest that a chat waits for memory; it goes on without"
    )
    chat_marks_days: float = Field(
        default=90.0,
        gt=0,
        description="Age at which a chat's marks are dropped: older messages are known by their ids alone",
    )

    # deep
    deep_programs: int = Field(
        default=12, ge=1, description="Programs of one question, then an answer is forced (RLM-Memory §4.1)"
    )
    deep_calls: int = Field(default=250, ge=1, description="Calls of one question, a sub-query each one")
    deep_tokens: int = Field(
        default=400_000, ge=1, description="Tokens of one question, estimated as bytes ÷ 4"
    )
    deep_seconds: float = Field(
        default=240.0, gt=0, description="Time of one question; a forced answer comes on top"
    )
    deep_workers: int = Field(
        default=20,
        ge=1,
        le=100,
        description="Sub-queries of one question at once (RLM-Memory §4.3), within `LLM_CALLS_AT_ONCE`",
    )
    deep_turns: int = Field(
        default=10_000, ge=1, description="Turns that are read, the newest: they are held in memory"
    )
    deep_characters: int = Field(
        default=4_000_000, ge=1, description="Characters of those turns together: about a million tokens"
    )
    deep_sub_query_characters: int = Field(
        default=40_000, ge=1000, description="Characters of a text for one sub-query: about 10,000 tokens"
    )
    deep_output_characters: int = Field(
        default=8000, ge=100, description="Characters of a program's output that the model is shown"
    )
    deep_program_seconds: float = Field(
        default=5.0, gt=0, le=60, description="Execution time of one program, waiting aside"
    )
    deep_program_calls: int = Field(default=500, ge=1, description="Calls of one program to its host")
    deep_memory_mb: int = Field(default=128, ge=16, description="Memory of one program (MB)")
    deep_at_once: int = Field(
        default=4, ge=1, description="Questions read at once by one process; others are told to come again"
    )
