"""The folders of the embedded system: checked, created, and held by one process at a time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path, user_data_path

from lamina.streams.errors import Misconfigured
from lamina.streams.settings import Settings


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the embedded system keeps its data and its weights."""

    data: Path
    cache: Path

    @property
    def database_file(self) -> Path:
        """The SQLite database of the embedded system."""
        return self.data / "lamina.db"

    def database_url(self, settings: Settings) -> str:
        """Return the database that the settings name, else the embedded one, as a SQLAlchemy URL."""
        return settings.database or f"sqlite+aiosqlite:///{self.database_file}"

    @property
    def address_file(self) -> Path:
        """Holds the URL of the running system, its process id, and what tells it from later ones."""
        return self.data / "run" / "url"


def folders_of(settings: Settings) -> Folders:
    """Return the folders that the settings name, or the platform's own for this user."""
    data = Path(settings.data_dir) if settings.data_dir else user_data_path("lamina")
    cache = Path(settings.cache_dir) if settings.cache_dir else user_cache_path("lamina")
    return Folders(data.expanduser().absolute(), cache.expanduser().absolute())


def writable(folder: Path, setting: str) -> None:
    """Create a folder and make sure that it can be written.

    Raises:
        Misconfigured: it cannot be; the message names the setting to change.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".writable-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as exc:
        raise Misconfigured(
            f"{folder} cannot be written ({exc.strerror}): choose another folder with {setting}"
        ) from exc


@contextmanager
def held(folders: Folders) -> Iterator[None]:
    """Hold the data folder for this process, so that two systems never write it at once.

    Raises:
        Misconfigured: not writable, or another process holds it.
    """
    writable(folders.data, "--data-dir (LAMINA_DATA_DIR)")
    lock = FileLock(folders.data / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as exc:
        raise Misconfigured(
            f"another lamina uses {folders.data}: stop it, use --url, or choose another --data-dir"
        ) from exc
    try:
        yield
    finally:
        lock.release()
