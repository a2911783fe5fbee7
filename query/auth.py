"""Who asks: the tenant, from the credential alone."""

import hmac
from typing import Annotated

from fastapi import Depends, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from lamina.query.errors import Refused
from lamina.query.service import Doors

_BEARER = HTTPBearer(auto_error=False, description="`Authorization: Bearer KEY`")
_HEADER = APIKeyHeader(name="X-API-Key", auto_error=False, description="`X-API-Key: KEY`")


def tenant_for(key: str, keys: dict[str, str]) -> str | None:
    """Return the key's tenant. Every key is compared, in constant time, so the time taken tells nothing."""
    found = None
    for known, tenant in keys.items():
        if hmac.compare_digest(known.encode(), key.encode()):
            found = tenant
    return found


async def _authenticate(  # async, or FastAPI would call it in a thread
    doors: Doors,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)],
    header: Annotated[str | None, Security(_HEADER)],
) -> str:
    keys = doors.settings.api_keys
    if not keys:
        return doors.settings.tenant
    key = bearer.credentials if bearer is not None else header
    tenant = None if key is None else tenant_for(key, keys)
    if tenant is None:
        sentence = (
            "no API key: send `Authorization: Bearer KEY`" if key is None else "the API key is not known"
        )
        raise Refused(401, "unauthorized", sentence, headers={"WWW-Authenticate": "Bearer"})
    return tenant


Tenant = Annotated[str, Depends(_authenticate)]
"""The caller's tenant, as a parameter of a route; without a valid key the answer is 401."""
