"""Settings from the environment: `LAMINA_` + a field's name in capitals."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from lamina.streams.errors import Misconfigured, WrongKey
from lamina.streams.namespace import namespace_of
from lamina.streams.settings import Settings

PREFIX = "LAMINA_"

NOT_SETTINGS = frozenset({"LAMINA_API_KEY"})
"""Variables that the command line's client reads itself."""


def settings_from(environment: Mapping[str, str], **overrides: Any) -> Settings:
    """Build the settings from environment variables, then from overrides that are not None.

    Raises:
        Misconfigured: a value that is not allowed, or a `LAMINA_` variable that is no setting (a typo); the
            message names the variable.
    """
    values: dict[str, Any] = {
        variable.removeprefix(PREFIX).lower(): value
        for variable, value in environment.items()
        if variable.startswith(PREFIX) and variable not in NOT_SETTINGS
    }
    if "api_keys" in values:
        try:
            values["api_keys"] = orjson.loads(values["api_keys"])
        except orjson.JSONDecodeError as exc:
            raise Misconfigured(f'LAMINA_API_KEYS is not JSON like {{"key": "tenant"}}: {exc}') from exc
    values.update({name: value for name, value in overrides.items() if value is not None})
    try:
        settings = Settings.model_validate(values)
    except ValidationError as exc:
        raise Misconfigured("; ".join(map(_sentence, exc.errors(include_url=False)))) from exc
    for tenant in (settings.tenant, *settings.api_keys.values()):
        try:
            namespace_of(tenant, "user")
        except WrongKey as exc:
            raise Misconfigured(
                f"LAMINA_TENANT or LAMINA_API_KEYS names the tenant {tenant!r}: "
                "a tenant is up to 128 letters, digits, `_` and `-`"
            ) from exc
    return settings


def _sentence(error: ErrorDetails) -> str:
    """Name the variable and what is wrong with it, never its value: it may be a secret."""
    name = str(error["loc"][0]) if error["loc"] else ""
    variable = PREFIX + name.upper()
    if error["type"] != "extra_forbidden":
        return f"{variable}: {error['msg']}"
    close = get_close_matches(name, Settings.model_fields, n=1)
    hint = f"did you mean {PREFIX}{close[0].upper()}?" if close else "docs/settings.md lists them"
    return f"{variable} is no setting: {hint}"
