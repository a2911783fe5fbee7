"""Weights of `auto` that never saw a conversation: for each that they were fitted on, those of the others.

With the shipped weights a benchmark would rank conversations that took part in the fit. `lamina bench fusion
--write` keeps, beside the shipped weights, those of each fold.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from lamina.bench.fusion import Validated
from lamina.streams.recall.auto.features import Match

FOLDS_FILE = Path(__file__).with_name("data") / "fusion_folds.json"
"""The weights of the folds, in this installation."""


def unseen(conversation: str, match: Match) -> Mapping[str, float] | None:
    """Return the weights fitted on the conversations but this one.

    Args:
        conversation: its name, as the loader of LoCoMo gives it.
        match: what question and turns are matched by.

    Returns:
        Weights by feature, for `rank`; None for a conversation that took no part: the shipped ones are right.
    """
    weights: Mapping[str, float] | None = _folds().get(match, {}).get(conversation)
    return weights


def write_folds(validated: tuple[Validated, ...], file: Path = FOLDS_FILE) -> None:
    """Write the weights of each fold; matches that were not fitted keep what the file holds."""
    held: dict[str, Any] = orjson.loads(file.read_bytes()) if file.exists() else {}
    for one in validated:
        held[one.match] = {
            left_out: {name: round(weight, 4) for name, weight in weights.items()}
            for left_out, weights in one.folds.items()
        }
    file.write_bytes(orjson.dumps(held, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    _folds.cache_clear()


@cache
def _folds() -> dict[str, dict[str, dict[str, float]]]:
    if not FOLDS_FILE.exists():
        return {}
    found: dict[str, dict[str, dict[str, float]]] = orjson.loads(FOLDS_FILE.read_bytes())
    return found
