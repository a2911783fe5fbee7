"""What the embedded store promises beyond the port: durability, coming back, refusing a wrong model."""

import asyncio
import os
import signal
import struct
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from qdrant_edge import Distance, EdgeConfig, EdgeShard, EdgeVectorParams, UpdateOperation
from qdrant_edge import Point as EdgePoint

from lamina.sinks import qdrant_edge
from lamina.sinks.edge_protocol import MAX_FRAME_BYTES, pack
from lamina.sinks.edge_shard import SHARD, open_store
from lamina.sinks.edge_warm import warm
from lamina.sinks.qdrant_edge import connect_edge, open_edge
from lamina.streams.errors import Misconfigured, StoreUnavailable, WrongDimension
from lamina.streams.namespace import Namespace
from lamina.streams.ports import Point, Query

ANA = Namespace("acme/ana")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DIMENSION = 32


def points(start, stop):
    vectors = np.random.default_rng(start).standard_normal((stop - start, DIMENSION)).astype(np.float32)
    return [
        Point(UUID(int=start + n), ANA, "turn", "s1", "Ana", NOON, vector) for n, vector in enumerate(vectors)
    ]


def ids(start, stop):
    return {UUID(int=n) for n in range(start, stop)}


def nearest(point):
    return Query(ANA, point.dense, ("turn",), 1)


def socket_of(data_dir):
    from pathlib import Path

    return Path((data_dir / "run" / "store.address").read_text())


@pytest.fixture
async def store(tmp_path):
    store = await open_edge(tmp_path, "hash", DIMENSION)
    yield store
    await store.close()


async def kill(store):
    os.kill(store.child.pid, signal.SIGKILL)
    assert await store.child.wait() == -signal.SIGKILL


async def retried(call):
    async with asyncio.timeout(20):
        while True:
            try:
                return await call()
            except StoreUnavailable:
                await asyncio.sleep(0.01)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells what is mapped")
def test_the_files_of_an_open_shard_are_mapped_ahead_up_to_a_limit(tmp_path):
    store = open_store(tmp_path, DIMENSION, "hash", 1 << 20)
    try:
        whole = warm(tmp_path / SHARD, 1 << 40)
        assert whole > 0
        assert warm(tmp_path / SHARD, whole - 1) < whole
        assert warm(tmp_path / SHARD, 0) == 0
        assert warm(tmp_path / "elsewhere", 1 << 40) == 0
    finally:
        store.close()


async def test_acknowledged_points_survive_sigkill(store):
    written = points(1, 301)
    await store.upsert(written)
    await store.delete(ids(1, 11))
    await kill(store)

    assert await retried(store.count) == 290
    assert await store.present(ids(1, 301)) == ids(11, 301)
    [[hit]] = await store.search([nearest(written[100])])
    assert hit.id == written[100].id


async def test_acknowledged_points_survive_sigkill_in_the_middle_of_writing(store):
    acknowledged = set()

    async def write():
        with pytest.raises(StoreUnavailable):
            for start in range(1, 1_000_000, 50):
                await store.upsert(points(start, start + 50))
                acknowledged.update(ids(start, start + 50))

    writing = asyncio.create_task(write())
    for _ in range(3):
        while len(acknowledged) < 500:
            await asyncio.sleep(0.001)
        await kill(store)
        await writing
        assert await retried(lambda: store.present(acknowledged)) == acknowledged
        acknowledged.clear()
        writing = asyncio.create_task(write())
    await store.close()
    await writing


async def test_the_points_of_a_run_are_there_in_the_next(tmp_path):
    store = await open_edge(tmp_path, "hash", DIMENSION)
    await store.upsert(points(1, 101))
    await store.close()

    store = await open_edge(tmp_path, "hash", DIMENSION)

    assert await store.present(ids(1, 101)) == ids(1, 101)
    await store.close()


async def test_calls_under_way_fail_as_unavailable_when_the_child_dies_and_it_comes_back(store):
    [point] = points(1, 2)
    await store.upsert([point])
    os.kill(store.child.pid, signal.SIGSTOP)
    calls = [asyncio.create_task(store.search([nearest(point)])) for _ in range(5)]
    await asyncio.sleep(0.05)
    first = store.child.pid

    await kill(store)

    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
    assert [[h.id for h in hits] for hits in await retried(lambda: store.search([nearest(point)]))] == [
        [point.id]
    ]
    assert store.child.pid != first


async def test_many_callers_start_one_child_only(store, tmp_path):
    await kill(store)

    outcomes = await asyncio.gather(*(retried(store.count) for _ in range(20)))

    assert outcomes == [0] * 20
    assert store.child.alive


async def test_a_hung_store_is_unavailable_after_the_call_limit(store, monkeypatch):
    monkeypatch.setattr(qdrant_edge, "_CALL_SECONDS", 0.2)
    os.kill(store.child.pid, signal.SIGSTOP)

    with pytest.raises(StoreUnavailable, match=r"did not answer within 0\.2 s"):
        await store.count()
    os.kill(store.child.pid, signal.SIGCONT)
    assert await retried(store.count) == 0


async def test_searches_and_upserts_at_once_all_answer_right(store):
    known = points(1, 101)
    await store.upsert(known)

    async def search(n):
        for point in known[n::10]:
            [[hit]] = await store.search([nearest(point)])
            assert (hit.id, hit.score) == (point.id, pytest.approx(1, abs=1e-5))

    async def write(n):
        await store.upsert(points(1000 * n, 1000 * n + 500))

    await asyncio.gather(*(search(n) for n in range(10)), *(write(n) for n in range(1, 5)))
    assert await store.count() == 2100


async def test_another_dimension_or_model_is_refused_with_both_and_the_remedy(tmp_path):
    store = await open_edge(tmp_path, "minilm/int8", DIMENSION)
    await store.close()

    with pytest.raises(WrongDimension) as fault:
        await open_edge(tmp_path, "minilm/int8", 64)
    assert "holds vectors of minilm/int8 with dimension 32" in str(fault.value)
    assert "dimension 64 was asked for" in str(fault.value)
    assert "LAMINA_DATA_DIR" in str(fault.value)
    assert "lamina reindex" in str(fault.value)
    with pytest.raises(WrongDimension, match="minilm/fp32"):
        await open_edge(tmp_path, "minilm/fp32", DIMENSION)

    store = await open_edge(tmp_path, "minilm/int8", DIMENSION)
    await store.close()


async def test_a_running_store_is_used_by_its_socket_and_outlives_the_connection(store, tmp_path):
    await store.upsert(points(1, 11))

    other = await connect_edge(socket_of(tmp_path), "hash", DIMENSION)
    assert await other.count() == 10
    await other.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await other.count()
    with pytest.raises(WrongDimension, match=f"holds vectors of hash with dimension {DIMENSION}"):
        await connect_edge(socket_of(tmp_path), "hash", 64)

    assert await store.count() == 10


async def test_a_connected_store_follows_a_restart(store, tmp_path):
    other = await connect_edge(socket_of(tmp_path), "hash", DIMENSION)
    await store.upsert(points(1, 11))
    await kill(store)
    await retried(store.count)

    assert await retried(other.count) == 10
    await other.close()


async def test_no_store_at_the_socket_is_unavailable(tmp_path):
    with pytest.raises(StoreUnavailable, match="no store answers"):
        await connect_edge(tmp_path / "none.sock", "hash", DIMENSION)


@pytest.mark.parametrize(
    "bytes_sent",
    [
        struct.pack("<II", MAX_FRAME_BYTES, MAX_FRAME_BYTES),
        struct.pack("<II", 5, 0) + b"{}...",
        struct.pack("<II", 2, 0) + b"[]",
        struct.pack("<II", 2, 0) + b"{}",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
async def test_a_malformed_frame_closes_its_connection_only(store, tmp_path, bytes_sent):
    reader, writer = await asyncio.open_unix_connection(socket_of(tmp_path))
    writer.write(bytes_sent)

    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
    assert await store.count() == 0


async def test_a_request_that_cannot_be_done_is_answered_with_its_error(store, tmp_path):
    reader, writer = await asyncio.open_unix_connection(socket_of(tmp_path))
    upsert = {"id": 1, "op": "upsert", "ids": ["x"], "payloads": [{}], "summarised": []}
    writer.write(pack(upsert, b"\0\0\0\0"))
    writer.write(pack({"id": 2, "op": "dance"}))
    writer.write(pack({"id": 3, "op": "count"}))

    answers = b""
    while b"count" not in answers:
        answers += await asyncio.wait_for(reader.read(1000), 5)
    assert b'"id":1,"error":"ValueError' in answers
    assert b'"id":2,"error":"ValueError: unknown request' in answers
    writer.close()


async def test_a_data_folder_with_a_long_name_works(tmp_path):
    data_dir = tmp_path / ("long" * 30)
    store = await open_edge(data_dir, "hash", DIMENSION)
    await store.upsert(points(1, 2))
    socket = socket_of(data_dir)
    assert await store.count() == 1
    await store.close()

    assert not socket.parent.exists()


async def test_a_damaged_store_says_what_to_do(tmp_path):
    store = await open_edge(tmp_path, "hash", DIMENSION)
    await store.close()
    (tmp_path / "store" / "meta.json").write_text("{")

    with pytest.raises(Misconfigured, match=r"cannot be opened .*delete .*lamina reindex"):
        await open_edge(tmp_path, "hash", DIMENSION)


async def test_a_folder_from_before_summaries_opens_with_its_points_and_takes_summaries(tmp_path):
    earlier, later = points(1, 11), points(11, 12)[0]
    folder = tmp_path / "store" / "shard"
    folder.parent.mkdir()
    (folder.parent / "meta.json").write_text(f'{{"dimension":{DIMENSION},"model":"hash"}}')
    params = EdgeVectorParams(size=DIMENSION, distance=Distance.Cosine)
    shard = EdgeShard.create(str(folder), EdgeConfig(vectors={"dense": params}))
    payload = {"namespace": ANA, "kind": "turn", "session": "s1", "speaker": "Ana", "said_at": 1.0}
    made = [EdgePoint(str(each.id), {"dense": each.dense.tolist()}, payload) for each in earlier]
    shard.update(UpdateOperation.upsert_points(made))
    shard.close()

    store = await open_edge(tmp_path, "hash", DIMENSION)
    await store.upsert([replace(earlier[3], summary=later.dense)])
    await kill(store)

    assert await retried(store.count) == 10
    [[hit], [same]] = await store.search([nearest(later), nearest(earlier[5])])
    assert (hit.id, same.id) == (earlier[3].id, earlier[5].id)
    await store.close()


async def test_a_store_open_elsewhere_is_refused(store, tmp_path):
    elsewhere = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "lamina.sinks.edge_child"),
        *("--socket", str(tmp_path / "b.sock"), "--data", str(tmp_path / "store")),
        *("--dimension", str(DIMENSION), "--model", "hash"),
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await elsewhere.communicate()

    assert elsewhere.returncode == 4
    assert b"another process has the store" in said
    assert await store.count() == 0
