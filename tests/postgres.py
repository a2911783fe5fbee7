"""A PostgreSQL server of the tests' own: Debian's binaries on a free port, in a folder that is removed."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import asyncpg

HOW_TO = "PostgreSQL is not installed: `apt-get install postgresql` and run the tests again"

_USER = "postgres"
"""Debian's package makes this user; the server refuses to run as root."""


@dataclass(frozen=True)
class Server:
    """A running server that trusts whoever asks."""

    port: int

    def url(self, database: str) -> str:
        return f"postgresql+asyncpg://{_USER}@127.0.0.1:{self.port}/{database}"

    async def new_database(self) -> str:
        """Create an empty database and return its URL."""
        name = f"t{uuid4().hex}"
        await self.run(f"CREATE DATABASE {name}")
        return self.url(name)

    async def run(self, statement: str) -> None:
        connection = await asyncpg.connect(user=_USER, host="127.0.0.1", port=self.port, database="postgres")
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


def installed() -> Path | None:
    """Return the folder of the newest server's programs."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[-3])
    )
    return folders[-1].parent if folders else None


@contextmanager
def running(programs: Path, *, durable: bool = False) -> Iterator[Server]:
    """Run a server until the block ends. `durable` makes commits wait for the disk, as in production."""
    folder = Path(tempfile.mkdtemp(prefix="lamina-postgres-"))
    as_server = ["setpriv", "--pdeathsig=INT"]  # a killed test run takes its server with it
    if os.geteuid() == 0:
        as_server += [f"--reuid={_USER}", f"--regid={_USER}", "--init-groups"]
        shutil.chown(folder, _USER, _USER)
    data = folder / "data"
    initdb: list[str | Path] = [programs / "initdb", "-D", data, "-U", _USER, "-A", "trust", "-E", "UTF8"]
    initdb.append("--no-sync")
    if float(programs.parts[-2]) >= 15:
        # Texts sort as people sort them, as on many servers: what must sort by code point has to say so.
        initdb += ["--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"]
    subprocess.run(
        [*as_server, *initdb],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "60"}
    if not durable:
        settings["fsync"] = "off"
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [*as_server, programs / "postgres", "-D", data, "-p", str(port), *options],
            stdout=log,
            stderr=log,
            cwd=folder,
        )
    try:
        _wait(server, [programs / "pg_isready", "-h", "127.0.0.1", "-p", str(port)], folder / "log")
        yield Server(port)
    finally:
        server.send_signal(signal.SIGINT)  # fast shutdown: ends sessions, does not wait for them
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(server: subprocess.Popen[bytes], ready: list[str | Path], log: Path) -> None:
    deadline = time.monotonic() + 60
    while subprocess.run(ready, check=False, capture_output=True).returncode != 0:
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"PostgreSQL did not start: {log.read_text()}")
        time.sleep(0.1)
