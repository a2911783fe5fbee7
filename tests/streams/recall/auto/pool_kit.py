"""Small pools of which only what a test is about is set."""

from datetime import UTC, datetime
from uuid import UUID

import numpy as np

from lamina.streams.recall.auto.features import FEATURES, features, match_of
from lamina.streams.recall.auto.pool import Pool
from lamina.streams.recall.auto.question import Question
from lamina.streams.recall.auto.traits import TRAITS

NOON = datetime(2023, 10, 15, 12, tzinfo=UTC)
DAY = 24 * 3600.0
NOTHING = Question(when=False, count=False, who=False, what=False, speaker=None, start=None, end=None)


def a_pool(n, *, traits=(), **fields):
    """Return n turns of one session, one after the other, that nothing tells apart."""
    columns = np.zeros((n, len(TRAITS)), np.uint8)
    for row, told in enumerate(traits):
        columns[row] = told
    return Pool(
        **{
            "ids": tuple(UUID(int=place + 1) for place in range(n)),
            "session": np.zeros(n, np.int32),
            "ordinal": np.arange(n, dtype=np.int32),
            "speaker": np.zeros(n, np.int32),
            "said_at": np.full(n, NOON.timestamp()),
            "cosine": np.zeros(n, np.float32),
            "words": np.zeros(n, np.float32),
            "info": np.zeros(n, np.float32),
            "traits": columns,
            "similarity": None,
            "idf": np.zeros(0, np.float32),
            "speakers": ("Ada", "Bo"),
            "latest": NOON.timestamp(),
            **{
                name: np.asarray(value, np.float32) if isinstance(value, list) else value
                for name, value in fields.items()
            },
        }
    )


def with_tokens(rows, idf, **fields):
    """Return a pool with a similarity of each question token (row) with each turn."""
    similarity = np.array(rows, np.float32)
    return a_pool(similarity.shape[1], similarity=similarity, idf=np.array(idf, np.float32), **fields)


def column(name, pool, question=NOTHING):
    names = FEATURES[match_of(pool)]
    return features(question, pool)[:, names.index(name)].tolist()


def z(*values):
    deviation = np.std(values)
    return ((np.array(values) - np.mean(values)) / deviation).tolist() if deviation else [0.0] * len(values)
