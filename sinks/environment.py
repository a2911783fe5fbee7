"""Settings from the environment: `LAMINA_` + a field's name in capitals."""

from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import ValidationError

from lamina.streams.codec import describe
from lamina.streams.errors import Misconfigured
from lamina.streams.settings import Settings

PREFIX = "LAMINA_"


def settings_from(environment: Mapping[str, str], **overrides: Any) -> Settings:
    """Build the settings from environment variables, then from overrides that are not None.

    Raises:
        Misconfigured: a value that is not allowed, or a `LAMINA_` variable that is no setting (a typo).
    """
    values: dict[str, Any] = {}
    for variable, value in environment.items():
        if variable.startswith(PREFIX):
            values[variable.removeprefix(PREFIX).lower()] = value
    if "api_keys" in values:
        try:
            values["api_keys"] = orjson.loads(values["api_keys"])
        except orjson.JSONDecodeError as exc:
            raise Misconfigured(f'LAMINA_API_KEYS is not JSON like {{"key": "tenant"}}: {exc}') from exc
    values.update({name: value for name, value in overrides.items() if value is not None})
    try:
        return Settings.model_validate(values)
    except ValidationError as exc:
        raise Misconfigured(f"settings: {describe(exc)} (variables start with {PREFIX})") from exc
