"""A small OpenAI-compatible embedding endpoint over real HTTP, on a thread."""

import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

DIMENSION = 64
KEY = "the-key"


@dataclass
class Reply:
    """What the endpoint answers instead of embeddings, once."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b'{"error": {"message": "no"}}'
    seconds_per_byte: float = 0.0


@dataclass
class Endpoint:
    """The running endpoint: what it was asked, and what it is to answer next."""

    url: str = ""
    requests: list[Any] = field(default_factory=list)
    replies: deque[Reply] = field(default_factory=deque)


def words_vector(text: str) -> list[float]:
    """Texts with words in common have similar vectors; not of unit length."""
    vector = np.zeros(DIMENSION)
    for word in text.lower().split():
        seed = int.from_bytes(blake2b(word.encode(), digest_size=4).digest(), "little")
        vector += np.random.default_rng(seed).normal(size=DIMENSION)
    return vector.tolist()


@contextmanager
def running() -> Iterator[Endpoint]:
    """Serve on a free port of this machine until the end of the block."""
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            endpoint.requests.append(request)
            if endpoint.replies:
                reply = endpoint.replies.popleft()
            elif self.path != "/v1/embeddings":
                reply = Reply(404)
            elif self.headers["authorization"] != f"Bearer {KEY}":
                reply = Reply(401)
            elif "" in request["input"]:
                reply = Reply(400)
            else:
                items = [
                    {"object": "embedding", "index": index, "embedding": words_vector(text)}
                    for index, text in enumerate(request["input"])
                ]
                # the index orders a reply, not the place
                reply = Reply(body=json.dumps({"object": "list", "data": items[::-1]}).encode())
            self.send_response(reply.status)
            for name, value in {"content-type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            try:
                if reply.seconds_per_byte:
                    for byte in reply.body:
                        self.wfile.write(bytes([byte]))
                        time.sleep(reply.seconds_per_byte)
                else:
                    self.wfile.write(reply.body)
            except OSError:
                self.close_connection = True  # the client gave up, as some tests want

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
