"""Programs in the real sandbox: what they may do, and more than a hundred that try what they may not."""

import asyncio
import socket
from contextlib import asynccontextmanager

import psutil
import pytest

from lamina.sinks.sandbox import MontySandbox
from lamina.streams.errors import Misconfigured, SandboxBusy
from lamina.streams.recall.deep.sandbox import Call, Ended, Limits

from .hostile_programs import ESCAPES, GREEDY

LIMITS = Limits(seconds=0.5, memory_bytes=32 * 1024 * 1024, calls=50, output_characters=1000)
PATIENCE = 30.0
"""Seconds after which a test gives up on a program; its own limit is far below."""
FUNCTIONS = ("search_history", "FINAL")
SECRET = "canary-4f1d"


@pytest.fixture(scope="module", autouse=True)
def _secret_in_the_environment():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_LLM_API_KEY", SECRET)
        yield


@asynccontextmanager
async def a_session(at_once=1, limits=LIMITS):
    sandbox = await MontySandbox.open(limits, at_once)
    try:
        async with sandbox.session(FUNCTIONS) as session:
            yield session
    finally:
        await sandbox.close()


async def run(session, program, answer="an answer"):
    """Run a program to its end, answering every call alike; return the end and the calls."""
    calls = []
    async with asyncio.timeout(PATIENCE):
        pause = await session.run(program)
        while isinstance(pause, Call):
            calls.append(pause)
            pause = await session.give(answer)
    return pause, calls


async def still_runs(session):
    ended, calls = await run(session, "print(search_history('x'))")
    assert (ended, len(calls)) == (Ended("an answer\n"), 1)


def children():
    return [one for one in psutil.Process().children(recursive=True) if "monty" in one.name()]


@pytest.fixture
def outside(tmp_path):
    """A file with a secret, a place for a new one, and a port that counts who comes."""
    (tmp_path / "secret.txt").write_text(SECRET)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield {
            "FILE": str(tmp_path / "secret.txt"),
            "NEW": str(tmp_path / "new.txt"),
            "PORT": str(server.getsockname()[1]),
        }
        with pytest.raises(BlockingIOError):
            server.accept()
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("secret.txt", SECRET)]


def filled(program, outside):
    for name, value in outside.items():
        program = program.replace(name, value)
    return program


@pytest.mark.parametrize("name", ESCAPES)
async def test_no_program_gets_out(name, outside):
    async with a_session() as session:
        ended, calls = await run(session, filled(ESCAPES[name], outside))
        told = f"{ended.printed} {ended.error} {calls}"
        assert SECRET not in told
        assert "root:" not in told
        assert "lamina." not in ended.printed
        await still_runs(session)


@pytest.mark.parametrize("name", GREEDY)
async def test_every_program_ends_within_its_limits(name, outside):
    async with a_session() as session:
        ended, calls = await run(session, filled(GREEDY[name], outside))
        assert len(ended.printed) <= LIMITS.output_characters
        assert len(ended.error or "") < 5000
        assert len(calls) <= LIMITS.calls
        await still_runs(session)


async def test_nothing_runs_on_when_a_session_ends_in_the_middle_of_a_program():
    async with a_session() as session:
        assert isinstance(await session.run("search_history('x')"), Call)
        assert len(children()) == 1
    assert children() == []


async def test_the_process_has_no_secret_file_or_connection_of_the_service(tmp_path):
    with socket.create_server(("127.0.0.1", 0)), (tmp_path / "held.txt").open("w"):
        async with a_session() as session:
            await session.run("search_history('x')")
            (child,) = children()
            assert SECRET not in child.environ().values()
            assert child.net_connections() == []
            assert not [one.path for one in child.open_files() if "held" in one.path]


async def test_a_program_that_is_broken_off_is_stopped():
    async with a_session(limits=Limits(60.0, 32 * 1024 * 1024, 50, 1000)) as session:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await session.run("print('begun')\nwhile True:\n    pass")
        ended = await session.abandon("too late")
        assert (ended.error, ended.lost) == ("too late", True)
        assert children() == []
        await still_runs(session)


async def test_a_killed_process_is_an_error_of_the_program_and_the_next_one_runs():
    async with a_session() as session:
        await session.run("x = 1\nsearch_history('x')")
        children()[0].kill()
        ended = await session.give(1)
        assert ended.lost
        assert ended.error is not None
        await still_runs(session)


async def test_the_loop_goes_on_while_a_program_runs():
    async with a_session() as session:
        beats = 0
        running = asyncio.create_task(run(session, "while True:\n    pass"))
        while not running.done():
            await asyncio.sleep(0.01)
            beats += 1
        assert beats > 10


async def test_calls_carry_their_arguments_and_take_answers_and_refusals():
    async with a_session() as session:
        call = await session.run(
            "hits = search_history('x', k=2)\n"
            "print(hits[0]['text'], hits[1])\n"
            "try:\n    FINAL('no')\nexcept ValueError as e:\n    print('refused:', e)"
        )
        assert call == Call("search_history", ("x",), {"k": 2})
        call = await session.give([{"text": "é 😀 \u4e2d"}, None])
        assert call == Call("FINAL", ("no",), {})
        assert await session.refuse("ValueError", "not yet") == Ended("é 😀 中 None\nrefused: not yet\n")


async def test_a_function_may_be_passed_on_by_name():
    async with a_session() as session:
        ended, calls = await run(session, "f = search_history\nprint([f(x) for x in 'ab'])", 7)
        assert [call.args for call in calls] == [("a",), ("b",)]
        assert (ended.printed, ended.error) == ("[7, 7]\n", None)


async def test_variables_stay_until_a_limit_takes_the_process():
    async with a_session() as session:
        await run(session, "x = 40\ndef f():\n    return x + 2")
        assert (await run(session, "print(f())\n1/0"))[0].printed == "42\n"
        assert (await run(session, "print(f())"))[0] == Ended("42\n")
        ended, _ = await run(session, "while True:\n    pass")
        assert ended.lost
        ended, _ = await run(session, "print(f())")
        assert "NameError" in ended.error


async def test_output_is_cut_and_said_to_be():
    async with a_session() as session:
        assert (await run(session, "print('x' * 999)"))[0] == Ended("x" * 999 + "\n")
        assert (await run(session, "print('x' * 1000)"))[0] == Ended("x" * 1000, cut=True)


async def test_calls_are_counted_for_each_program():
    async with a_session() as session:
        program = "for i in range(50):\n    search_history('x')"
        assert (await run(session, program))[0] == Ended("")
        assert (await run(session, program))[0] == Ended("")
        ended, calls = await run(session, "for i in range(51):\n    search_history('x')")
        assert (ended.error, ended.lost) == ("The program made more than 50 calls.", True)
        assert len(calls) == 50


async def test_what_computes_is_there():
    async with a_session() as session:
        ended, _ = await run(
            session,
            "import re, json, math, datetime\nfrom collections import Counter\n"
            "print(re.findall(r'\\d+', 'a1b22'), json.dumps({'a': 1}), math.floor(2.5))\n"
            "print(Counter('aab')['a'])\n"
            "print((datetime.date(2023, 5, 8) - datetime.date(2023, 5, 1)).days)",
        )
        assert ended == Ended("['1', '22'] {\"a\": 1} 2\n2\n7\n")


async def test_no_two_questions_share_a_process():
    sandbox = await MontySandbox.open(LIMITS, 1)
    async with sandbox.session(FUNCTIONS) as session:
        await run(session, "secret = 1")
        before = children()
    async with sandbox.session(FUNCTIONS) as session:
        ended, _ = await run(session, "print(secret)")
        assert "NameError" in ended.error
        assert children() != before
    await sandbox.close()


async def test_more_sessions_than_allowed_are_refused_until_one_ends():
    sandbox = await MontySandbox.open(LIMITS, 2)
    async with sandbox.session(FUNCTIONS):
        async with sandbox.session(FUNCTIONS):
            with pytest.raises(SandboxBusy) as busy:
                async with sandbox.session(FUNCTIONS):
                    pass
            assert busy.value.retry_after == 5.0
        async with sandbox.session(FUNCTIONS) as session:
            await still_runs(session)
    await sandbox.close()


async def test_a_missing_interpreter_is_said_at_once(monkeypatch):
    monkeypatch.setenv("MONTY_BIN", "/nowhere/monty")
    with pytest.raises(Misconfigured, match="install pydantic-monty"):
        await MontySandbox.open(LIMITS, 1)
