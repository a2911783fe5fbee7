"""The metric catalogue: every metric with its kind, meaning and labels, in one place.

Labels come from small closed sets; a user, session or tenant id is never one. `lamina.sinks.prometheus`
exports them, `docs/metrics.md` is generated from here.
"""

from dataclasses import dataclass
from typing import Literal

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
MODEL_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
SCORES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its full name with unit, its kind, what it means, its labels and buckets."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


TURNS = Metric("lamina_turns_total", "counter", "Turns that left a step, by outcome.", ("step", "outcome"))
STEP_SECONDS = Metric("lamina_step_seconds", "histogram", "Time to process one batch.", ("step",), SECONDS)
BATCH_SIZE = Metric("lamina_batch_size", "histogram", "Records taken as one batch.", ("step",), SIZES)
LAG = Metric("lamina_lag_records", "gauge", "Records published and not yet committed.", ("step",))
OLDEST_AGE = Metric(
    "lamina_oldest_unprocessed_seconds", "gauge", "Age of the oldest turn that is not in a terminal state."
)
GATE_SCORE = Metric(
    "lamina_gate_score", "histogram", "Information score of judged turns.", ("outcome",), SCORES
)
PROMOTIONS = Metric(
    "lamina_promotions_total", "counter", "Clusters promoted, by what promoted them.", ("reason",)
)
MERGES = Metric("lamina_merges_total", "counter", "Exchanges found to belong to a known thread.")
MERGES_WAITING = Metric("lamina_merges_waiting", "gauge", "Exchanges waiting in a thread for its next merge.")
COMMANDS = Metric("lamina_commands", "gauge", "Commands in the journal, by state.", ("state",))
COMMAND_SECONDS = Metric(
    "lamina_command_seconds", "histogram", "Time to carry out one command.", ("kind",), SECONDS
)
DERIVED = Metric("lamina_derived_units_total", "counter", "Units written by consolidation.", ("kind",))
LLM_CALLS = Metric(
    "lamina_llm_calls_total",
    "counter",
    "Calls to the language model, by what became of them.",
    ("purpose", "model", "outcome"),
)
LLM_TOKENS = Metric(
    "lamina_llm_tokens_total",
    "counter",
    "Tokens of every attempt, by direction.",
    ("purpose", "model", "direction"),
)
LLM_SECONDS = Metric(
    "lamina_llm_seconds",
    "histogram",
    "Time of one call, its repair included.",
    ("purpose", "model"),
    MODEL_SECONDS,
)
LLM_REPEATED = Metric(
    "lamina_llm_repeated_total", "counter", "Calls begun again: a crash took them in flight.", ("purpose",)
)
LLM_REUSED = Metric(
    "lamina_llm_reused_total", "counter", "Stored replies used again, not paid.", ("purpose",)
)
COMMANDS_PUT_OFF = Metric(
    "lamina_commands_put_off_total", "counter", "Commands set to wait, by reason.", ("kind", "reason")
)
COMMANDS_FINISHED = Metric(
    "lamina_commands_finished_total", "counter", "Commands that ended, by state.", ("kind", "state")
)
DIAGNOSES = Metric(
    "lamina_topology_diagnoses_total",
    "counter",
    "Neighbourhoods, by whether they were diagnosed.",
    ("outcome",),
)
EDITS = Metric("lamina_topology_edits_total", "counter", "Topology edits.", ("operator", "outcome"))
BUFFER_WAITING = Metric("lamina_buffer_waiting", "gauge", "Units that topology has not looked at.")
THETA_SIM = Metric(
    "lamina_theta_sim", "histogram", "θ_sim that exchanges were counted with.", ("mode",), SCORES
)
OUTBOX_WAITING = Metric("lamina_outbox_waiting", "gauge", "Committed rows not yet published.")
INDEXED = Metric("lamina_indexed_units_total", "counter", "Units copied to the vector store.", ("action",))
INDEX_WAITING = Metric("lamina_index_waiting", "gauge", "Committed units not yet in the vector store.")
DEAD_LETTERS = Metric(
    "lamina_dead_letters_total", "counter", "Records sent to the dead letters.", ("step", "reason")
)
RETRIES = Metric("lamina_retries_total", "counter", "Batches retried, by fault.", ("step", "reason"))
EMBEDDED_TEXTS = Metric(
    "lamina_embedded_texts_total", "counter", "Texts the embedder answered.", ("engine", "source")
)
REQUEST_SECONDS = Metric(
    "lamina_request_seconds", "histogram", "Time to answer an HTTP request.", ("route", "status"), SECONDS
)
RECALL_SECONDS = Metric(
    "lamina_recall_seconds", "histogram", "Time of one recall stage.", ("strategy", "stage"), SECONDS
)
CHATS = Metric("lamina_chats_total", "counter", "Chats, by what was done to their history.", ("context",))
CHATS_REMEMBERED = Metric(
    "lamina_chats_remembered_total",
    "counter",
    "What was said and replied in chats, by whether memory took it.",
    ("what", "outcome"),
)

CATALOGUE: tuple[Metric, ...] = (
    TURNS,
    STEP_SECONDS,
    BATCH_SIZE,
    LAG,
    OLDEST_AGE,
    GATE_SCORE,
    PROMOTIONS,
    MERGES,
    MERGES_WAITING,
    COMMANDS,
    COMMAND_SECONDS,
    DERIVED,
    LLM_CALLS,
    LLM_TOKENS,
    LLM_SECONDS,
    LLM_REPEATED,
    LLM_REUSED,
    COMMANDS_PUT_OFF,
    COMMANDS_FINISHED,
    DIAGNOSES,
    EDITS,
    BUFFER_WAITING,
    THETA_SIM,
    OUTBOX_WAITING,
    INDEXED,
    INDEX_WAITING,
    DEAD_LETTERS,
    RETRIES,
    EMBEDDED_TEXTS,
    REQUEST_SECONDS,
    RECALL_SECONDS,
    CHATS,
    CHATS_REMEMBERED,
)
