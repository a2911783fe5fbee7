"""Records to bytes and back, vectors to headers and back.

JSON by orjson; vectors little-endian float32. Decoding never half-succeeds: it returns a whole record or
raises one of `Rejected`'s children, which the guard turns into a dead letter.
"""

from datetime import UTC, datetime
from typing import TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import ValidationError

from lamina.streams.errors import MalformedRecord, UnsupportedSchema
from lamina.streams.records import SCHEMA_VERSION, Record

R = TypeVar("R", bound=Record)

Vector = NDArray[np.float32]
"""Shape (dimension,), float32, unit length unless said otherwise."""

Matrix = NDArray[np.float32]
"""Shape (n, dimension), float32, rows of unit length unless said otherwise."""

_LAST_SECOND = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def encode(record: Record) -> bytes:
    """Return the record as JSON."""
    return orjson.dumps(record.model_dump(exclude_none=True))


def decode(kind: type[R], value: bytes | None) -> R:
    """Read one record.

    Raises:
        MalformedRecord: null, not UTF-8 JSON, or not valid as `kind` (the message names the field).
        UnsupportedSchema: written by a newer build.
    """
    if value is None:
        raise MalformedRecord("the value is null")
    try:
        raw = orjson.loads(value)
    except orjson.JSONDecodeError as exc:
        raise MalformedRecord(f"not JSON: {exc}") from exc
    if not isinstance(raw, dict):
        raise MalformedRecord(f"a JSON {type(raw).__name__} where an object is expected")
    version = raw.get("schema_version", SCHEMA_VERSION)
    if _is_newer(version):
        raise UnsupportedSchema(f"schema version {version}; this build reads up to {SCHEMA_VERSION}: upgrade")
    try:
        return kind.model_validate(raw)
    except ValidationError as exc:
        raise MalformedRecord(describe(exc)) from exc


def _is_newer(version: object) -> bool:
    """Tell whether a version, however spelled, is beyond this build's; validation sees to what is none."""
    try:
        return float(str(version)) > SCHEMA_VERSION
    except ValueError:
        return False


def describe(error: ValidationError) -> str:
    """Say in one line which fields are wrong and why."""
    parts = (
        f"{'.'.join(map(str, e['loc'])) or 'record'}: {e['msg']}" for e in error.errors(include_url=False)
    )
    return "; ".join(parts)


def moment_of_seconds(seconds: float) -> datetime:
    """Return the moment, UTC, of what `datetime.timestamp` gave.

    Floats keep tens of microseconds there: what rounding carried into the year 10,000 is the last second.
    """
    return datetime.fromtimestamp(min(seconds, _LAST_SECOND), UTC)


def vector_to_bytes(vector: Vector) -> bytes:
    """Return the vector as little-endian float32."""
    return vector.astype("<f4", copy=False).tobytes()


def vector_from_bytes(raw: bytes) -> Vector:
    """Read a vector that `vector_to_bytes` wrote.

    Raises:
        MalformedRecord: the length is not that of whole float32 numbers.
    """
    if not raw or len(raw) % 4:
        raise MalformedRecord(f"a vector header of {len(raw)} bytes is not float32")
    return np.frombuffer(raw, dtype="<f4").astype(np.float32, copy=False)
