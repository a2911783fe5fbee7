"""The listener of the query service."""

import asyncio
import gc
import socket

import pytest
from fastapi import FastAPI

from lamina.agents.http_server import bind, serving
from lamina.streams.errors import Misconfigured


async def test_what_is_accepted_sends_at_once():
    listener = bind("127.0.0.1", 0)
    accepted: asyncio.Queue[int] = asyncio.Queue()

    async def note(_reader, writer):
        sock = writer.get_extra_info("socket")
        accepted.put_nowait(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(note, sock=listener):
        _, writer = await asyncio.open_connection(*listener.getsockname())
        assert await accepted.get() != 0
        writer.close()


async def test_a_taken_port_is_told():
    first = bind("127.0.0.1", 0)
    with first:
        first.listen()
        with pytest.raises(Misconfigured, match="choose another"):
            bind("127.0.0.1", first.getsockname()[1])


async def test_what_stood_at_the_start_is_not_walked_through_again():
    before = gc.get_freeze_count()
    listener = bind("127.0.0.1", 0)
    try:
        with listener:
            async with serving(FastAPI(), listener):
                assert gc.get_freeze_count() > before
            assert gc.get_freeze_count() == 0
    finally:
        gc.unfreeze()
