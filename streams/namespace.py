"""Namespaces: `tenant/user`, the key of every topic and the border of every query."""

import re
from typing import NewType
from urllib.parse import quote, unquote

from lamina.streams.errors import WrongKey

Namespace = NewType("Namespace", str)
"""`tenant/user`; the tenant matches `[A-Za-z0-9_-]+`, the user part is percent-encoded."""

_TENANT = re.compile(r"[A-Za-z0-9_-]{1,128}")
_USER = re.compile(r"(?:[A-Za-z0-9_.~-]|%[0-9A-F]{2}){1,768}")


def namespace_of(tenant: str, user: str) -> Namespace:
    """Join a tenant and a user into their namespace.

    Raises:
        WrongKey: the tenant has other characters than letters, digits, `_` and `-`, or the user is empty.
    """
    joined = f"{tenant}/{quote(user, safe='')}"
    return parse_namespace(joined)


def parse_namespace(key: str | bytes | None) -> Namespace:
    """Read a record key as a namespace.

    Raises:
        WrongKey: the key is absent, not UTF-8, or not `tenant/user` in its one canonical spelling.
    """
    if key is None:
        raise WrongKey("the record has no key: send `tenant/user` as the key")
    try:
        text = key.decode() if isinstance(key, bytes) else key
    except UnicodeDecodeError as exc:
        raise WrongKey("the record's key is not UTF-8: send `tenant/user`") from exc
    tenant, slash, user = text.partition("/")
    if not slash or not _TENANT.fullmatch(tenant) or not _USER.fullmatch(user):
        raise WrongKey(f"the key {text[:80]!r} is not `tenant/user` (user percent-encoded)")
    return Namespace(text)


def tenant_of(namespace: Namespace) -> str:
    """Return the tenant part."""
    return namespace.partition("/")[0]


def user_of(namespace: Namespace) -> str:
    """Return the user part, decoded."""
    return unquote(namespace.partition("/")[2])
