"""Children never outlive us, and nobody else's process is touched."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time

import orjson
import pytest

from lamina.sinks.children import ChildEnded, end_leftover, identity, start_child
from lamina.streams.errors import Misconfigured

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the kernel ties children on Linux only")

SLEEP = ["sleep", "300"]


async def never():
    return False


async def start(tmp_path, argv=SLEEP, **changes):
    return await start_child(argv, name="x", data_dir=tmp_path, log_path=tmp_path / "x.log", **changes)


async def until_gone(pid, within_seconds=5):
    deadline = time.monotonic() + within_seconds
    while time.monotonic() < deadline:
        if await identity(pid) is None:
            return True
        await asyncio.sleep(0.02)
    return False


def write_pid_file(tmp_path, **changes):
    run = tmp_path / "run"
    run.mkdir(exist_ok=True)
    record = {"pid": 1, "started": "x", "parent": 1, "parent_started": "x"} | changes
    (run / "x.pid").write_bytes(orjson.dumps(record))
    return run / "x.pid"


@contextlib.contextmanager
def a_process(argv=SLEEP):
    process = subprocess.Popen(argv)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@linux_only
async def test_a_child_ends_when_its_parent_is_killed(tmp_path):
    script = """
        import asyncio, pathlib, sys
        from lamina.sinks.children import start_child

        async def main():
            here = pathlib.Path(sys.argv[1])
            child = await start_child(
                ["sh", "-c", "echo up; exec sleep 300"], name="x", data_dir=here, log_path=here / "x.log"
            )
            async def up():
                return child.log_tail() == "up"
            await child.ready(up, 10)
            print(child.pid, flush=True)
            await asyncio.sleep(300)

        asyncio.run(main())
    """
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", textwrap.dedent(script), str(tmp_path)), stdout=subprocess.PIPE
    )
    pid = int(await asyncio.wait_for(parent.stdout.readline(), 20))
    assert await identity(pid) is not None

    parent.kill()
    await parent.wait()

    assert await until_gone(pid)


@linux_only
async def test_a_command_whose_parent_ended_before_the_tie_does_not_start(tmp_path):
    mark = tmp_path / "started"
    argv = [sys.executable, "-P", "-m", "lamina.sinks.tether", "999999999", "--", "touch", str(mark)]

    assert await (await asyncio.create_subprocess_exec(*argv)).wait() == 126
    assert not mark.exists()


@linux_only
async def test_a_signal_of_the_terminal_does_not_reach_a_child(tmp_path):
    child = await start(tmp_path)

    assert os.getpgid(child.pid) == child.pid != os.getpgid(0)
    assert os.getsid(child.pid) != os.getsid(0)
    await child.stop()


async def test_stop_asks_first_and_removes_the_pid_file(tmp_path):
    child = await start(
        tmp_path, ["sh", "-c", "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done"]
    )

    async def up():
        return child.log_tail() == "up"

    await child.ready(up, 10)
    assert (tmp_path / "run" / "x.pid").exists()
    await child.stop()

    assert (await child.wait(), child.alive) == (7, False)
    assert child.log_tail().endswith("bye")
    assert not (tmp_path / "run" / "x.pid").exists()
    await child.stop()


async def test_stop_forces_a_child_that_does_not_listen(tmp_path):
    child = await start(tmp_path, ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"])

    async def up():
        return child.log_tail() == "up"

    await child.ready(up, 10)
    await child.stop(0.2)

    assert await child.wait() == -signal.SIGKILL


async def test_a_child_that_ends_early_tells_its_last_words(tmp_path):
    (tmp_path / "x.log").write_text("of an earlier run\n")
    child = await start(tmp_path, ["sh", "-c", "echo port taken >&2; exit 3"])

    with pytest.raises(ChildEnded, match=r"exit code 3.*\nport taken") as fault:
        await child.ready(never, 10)

    assert (fault.value.code, fault.value.tail) == (3, "port taken")
    assert not (tmp_path / "run" / "x.pid").exists()


async def test_a_command_that_does_not_exist_is_named(tmp_path):
    child = await start(tmp_path, ["no-such-command"])

    with pytest.raises(ChildEnded, match="cannot run no-such-command"):
        await child.ready(never, 10)


async def test_a_child_that_never_gets_ready_is_stopped(tmp_path):
    child = await start(tmp_path)

    with pytest.raises(Misconfigured, match=r"the x did not answer within 0\.2 s"):
        await child.ready(never, 0.2)

    assert not child.alive


async def test_an_unwritable_data_folder_is_a_misconfiguration(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(Misconfigured, match="cannot start the x with data folder"):
        await start(tmp_path / "file")


async def test_an_overlong_log_is_set_aside(tmp_path):
    (tmp_path / "x.log").write_bytes(b"old\n" * 300_000)
    child = await start(tmp_path, ["echo", "new"])
    await child.wait()

    assert (tmp_path / "x.log").read_text() == "new\n"
    assert (tmp_path / "x.log.1").stat().st_size == 1_200_000


async def test_a_leftover_of_a_dead_parent_is_ended_at_the_next_start(tmp_path):
    with a_process() as leftover:
        write_pid_file(tmp_path, pid=leftover.pid, started=await identity(leftover.pid), parent=999_999_999)

        child = await start(tmp_path)

        assert leftover.wait(5) == -signal.SIGTERM
        assert orjson.loads((tmp_path / "run" / "x.pid").read_bytes())["pid"] == child.pid
        await child.stop()


async def test_a_leftover_whose_parents_pid_was_given_away_is_ended(tmp_path):
    with a_process() as leftover, a_process() as stranger:
        pid_file = write_pid_file(
            tmp_path, pid=leftover.pid, started=await identity(leftover.pid), parent=stranger.pid
        )

        await end_leftover(pid_file)

        assert leftover.wait(5) == -signal.SIGTERM
        assert stranger.poll() is None


async def test_a_recycled_pid_is_not_touched(tmp_path):
    with a_process() as stranger:
        write_pid_file(tmp_path, pid=stranger.pid, started="boot:12345", parent=999_999_999)

        child = await start(tmp_path)

        assert stranger.poll() is None
        await child.stop()


async def test_a_child_of_a_living_lamina_is_not_touched_and_its_owner_named(tmp_path):
    with a_process() as child, a_process() as owner:
        pid_file = write_pid_file(
            tmp_path,
            pid=child.pid,
            started=await identity(child.pid),
            parent=owner.pid,
            parent_started=await identity(owner.pid),
        )

        with pytest.raises(
            Misconfigured, match=rf"a running Lamina \(process {owner.pid}\).*LAMINA_DATA_DIR"
        ):
            await start(tmp_path)

        assert child.poll() is None
        assert pid_file.exists()


async def test_a_second_child_of_the_same_name_is_refused_and_the_first_lives_on(tmp_path):
    first = await start(tmp_path)

    with pytest.raises(Misconfigured, match=rf"process {os.getpid()}"):
        await start(tmp_path)

    assert first.alive
    await first.stop()


@pytest.mark.parametrize("content", [b"", b"12", b"{}", b"\xff", b'{"pid": 1}'])
async def test_a_pid_file_that_says_nothing_is_replaced(tmp_path, content):
    write_pid_file(tmp_path).write_bytes(content)

    child = await start(tmp_path)

    assert orjson.loads((tmp_path / "run" / "x.pid").read_bytes())["pid"] == child.pid
    await child.stop()


@linux_only
async def test_identity_is_that_of_the_process_and_none_after_its_end(tmp_path):
    child = await start(tmp_path, ["sh", "-c", "echo up; exec sleep 300"])
    before = await identity(child.pid)

    async def up():
        return child.log_tail() == "up"

    await child.ready(up, 10)

    assert await identity(child.pid) == before is not None
    await child.stop()
    assert await identity(child.pid) is None
