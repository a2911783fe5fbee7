"""Serve the query service from a loop that others use too."""

import asyncio
import contextlib
import gc
import socket
from collections.abc import AsyncIterator, Iterator

import uvicorn
from fastapi import FastAPI

from lamina.streams.errors import Misconfigured

GRACE_SECONDS = 5
"""Time that requests have to end at shutdown: one whose rest never comes must not hold us."""


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to the process it is a part of."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


@contextlib.asynccontextmanager
async def serving(api: FastAPI, listener: socket.socket) -> AsyncIterator[str]:
    """Serve on a socket that `bind` gave until the block ends; yields the URL."""
    host, bound = listener.getsockname()[:2]
    config = uvicorn.Config(
        api, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=GRACE_SECONDS
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started and not task.done():  # noqa: ASYNC110  # uvicorn has no event for it
            await asyncio.sleep(0.01)
        # What stands by now stays: no request shall wait while a full collection walks through it all.
        gc.collect()
        gc.freeze()
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{bound}"
    finally:
        server.should_exit = True
        await task
        gc.unfreeze()


def bind(host: str, port: int) -> socket.socket:
    """Take an address; whoever takes it closes it.

    Raises:
        Misconfigured: the port is taken, or the address is not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, so that asyncio sets TCP_NODELAY on what it accepts: without, a response's body waits for
    # the client's late acknowledgement of its headers, 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as exc:
        listener.close()
        raise Misconfigured(
            f"cannot listen on {host}:{port} ({exc.strerror}): "
            "choose another with --port (LAMINA_HTTP_PORT; 0 takes a free one)"
        ) from exc
    return listener
