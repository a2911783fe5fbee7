"""Fixtures of the doors' tests."""

import os
from pathlib import Path

import platformdirs
import pytest

from lamina.sinks.weights import ensure_weights


@pytest.fixture(scope="session")
def weights_cache() -> Path:
    """The user's own cache folder with the weights in it: they are fetched once, not once a run."""
    chosen = os.environ.get("LAMINA_CACHE_DIR")
    cache = Path(chosen) if chosen else platformdirs.user_cache_path("lamina")
    ensure_weights(cache)
    return cache
