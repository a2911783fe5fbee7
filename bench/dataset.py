"""Which data set a path holds, told from its content."""

from pathlib import Path

import orjson

from lamina.bench.conversation import Dataset
from lamina.bench.locomo import conversations_of, load_locomo
from lamina.bench.longmemeval import instances_of
from lamina.streams.errors import Misconfigured


def load(data: Path) -> Dataset:
    """Read LoCoMo (a folder, one of its files, or `locomo10.json`) or a LongMemEval file.

    Raises:
        Misconfigured: it is neither, or a conversation in it is not as it should be.
    """
    if not data.is_file():
        return Dataset("LoCoMo", "turn", tuple(load_locomo(data)))
    try:
        raw = orjson.loads(data.read_bytes())
    except orjson.JSONDecodeError as exc:
        raise Misconfigured(f"{data} is no JSON: {exc}; pass LoCoMo or a LongMemEval file") from exc
    if isinstance(raw, list) and raw and isinstance(raw[0], dict) and "haystack_sessions" in raw[0]:
        return Dataset("LongMemEval", "session", tuple(instances_of(raw, data)))
    return Dataset("LoCoMo", "turn", tuple(conversations_of(raw, data)))
