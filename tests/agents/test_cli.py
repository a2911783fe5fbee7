"""The command line on good and bad input: exit codes, and one clear sentence instead of a traceback."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import psutil
import pytest
from typer.testing import CliRunner

from lamina.agents.cli import app

LAMINA = [sys.executable, "-P", "-m", "lamina.agents.cli"]
DEADLINE_SECONDS = 90
OPTIONS = {"LAMINA_EMBED_THREADS": "1", "LAMINA_BATCH_WITHIN_SECONDS": "0.005"}

unix_only = pytest.mark.skipif(sys.platform == "win32", reason="the embedded system has no Windows binaries")


@dataclass
class Outcome:
    code: int
    output: str

    @property
    def line(self) -> str:
        """Everything that was printed, on one line."""
        return " ".join(self.output.split())


@dataclass
class Up:
    """A `lamina up` of its own process."""

    process: subprocess.Popen[str]
    data: Path
    printed: str
    url: str
    children: list[psutil.Process]

    def end(self, number: signal.Signals) -> Outcome:
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=DEADLINE_SECONDS)
        return Outcome(self.process.returncode, self.printed + rest)

    def left_over(self) -> list[str]:
        _, alive = psutil.wait_procs(self.children, timeout=5)
        return [process.name() for process in alive]


def environment(cache: Path, **variables: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LAMINA_")}
    return inherited | OPTIONS | {"LAMINA_CACHE_DIR": str(cache)} | variables


@contextmanager
def lamina_up(data: Path, cache: Path) -> Iterator[Up]:
    process = subprocess.Popen(
        [*LAMINA, "up", "--data-dir", str(data), "--port", "0"],
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        printed = process.stdout.readline() + process.stdout.readline()
        found = re.search(r"up at (http://\S+)", printed)
        assert found, printed + process.stdout.read()
        children = psutil.Process(process.pid).children(recursive=True)
        yield Up(process, data, printed, found[1], children)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def up(tmp_path_factory, weights_cache):
    """The system that the commands of this module talk to."""
    with lamina_up(tmp_path_factory.mktemp("up"), weights_cache) as running:
        yield running


@pytest.fixture
def lamina(monkeypatch, weights_cache):
    """Run a command in this process, with only the given variables set."""

    def run(*words: object, **variables: str) -> Outcome:
        for name in [name for name in os.environ if name.startswith("LAMINA_")]:
            monkeypatch.delenv(name)
        for name, value in environment(weights_cache, **variables).items():
            monkeypatch.setenv(name, value)
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        return Outcome(result.exit_code, result.output)

    return run


def in_a_process(*words: object, cache: Path, **variables: str) -> Outcome:
    """Run a command as a user does, errors and all."""
    done = subprocess.run(
        [*LAMINA, *map(str, words)],
        env=environment(cache, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert "Traceback" not in done.stdout, done.stdout
    return Outcome(done.returncode, done.stdout)


def a_file(folder: Path, name: str, *lines: object) -> Path:
    file = folder / name
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    file.write_text("".join(f"{text}\n" for text in texts))
    return file


def a_turn(content: str, **fields: object) -> dict[str, object]:
    return {"role": "user", "content": content, "timestamp": "2026-03-01T12:00:00Z"} | fields


def a_fact(number: int) -> str:
    return f"Please remember that locker {number} is mine, and that I am allergic to penicillin."


def counted(data: Path) -> dict[str, int]:
    with sqlite3.connect(f"file:{data / 'lamina.db'}?mode=ro", uri=True) as connection:
        tables = ("units", "links", "recurrence", "commands")
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}


def quiet(data: Path) -> dict[str, int]:
    """Wait until no command is open and return the counts."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    open_commands = "SELECT count(*) FROM commands WHERE state IN ('issued', 'planned')"
    while time.monotonic() < deadline:
        with sqlite3.connect(f"file:{data / 'lamina.db'}?mode=ro", uri=True) as connection:
            if not connection.execute(open_commands).fetchone()[0]:
                return counted(data)
        time.sleep(0.05)
    raise TimeoutError("commands stay open")


# Ingest


@unix_only
@pytest.mark.broker
def test_a_bad_line_is_named_with_its_number_and_reason_and_the_rest_is_ingested(lamina, up, tmp_path):
    file = a_file(tmp_path, "talk[final].jsonl", a_turn(a_fact(1)), '{"content": "cut of', a_turn(a_fact(2)))
    done = lamina("ingest", file, "--user", "ann", "--data-dir", up.data)
    assert done.code == 1
    assert f"{file}, line 2: not JSON: " in done.output, "on one line, with the name as it is"
    assert "2 turns: 2 " in done.output
    found = lamina("search", "Which locker is mine?", "--user", "ann", "--data-dir", up.data)
    assert "locker 1" in found.output
    assert "locker 2" in found.output


@unix_only
@pytest.mark.broker
def test_files_that_cannot_be_read_do_not_stop_the_others(lamina, up, tmp_path):
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "diary.txt").write_text("Dear diary,\nit rained.\n" * 100)
    (tmp_path / "folder").mkdir()
    names = ("empty.jsonl", "diary.txt", "missing.jsonl", "folder")
    good = a_file(tmp_path, "good.jsonl", a_turn(a_fact(3)))
    messages = tmp_path / "messages.json"
    messages.write_text(
        json.dumps({"messages": [a_turn(a_fact(4)), a_turn("It is noted.", role="assistant")]})
    )
    files = [tmp_path / name for name in names]
    done = lamina("ingest", *files, good, messages, "--user", "ben", "--data-dir", up.data)
    assert done.code == 1
    for name, sentence in zip(
        names,
        ("the file is empty", "unknown shape", "No such file or directory", "Is a directory"),
        strict=True,
    ):
        [line] = [line for line in done.output.splitlines() if name in line]
        assert sentence in line
    assert re.search(r"^3 turns: ", done.output, re.MULTILINE)
    assert "4 could not be taken" in done.output


@unix_only
@pytest.mark.broker
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"metadata": {"big": "x" * 70_000}}, "65536"),
        ({"name": ""}, "name"),
        ({"agent_id": ""}, "agent_id"),
    ],
)
def test_a_turn_that_the_service_refuses_does_not_stop_the_others(lamina, up, tmp_path, fields, reason):
    user = f"refused-{next(iter(fields))}"
    turns = [a_turn(a_fact(number)) for number in range(4)]
    file = a_file(tmp_path, "x.jsonl", turns[0], turns[1] | fields, turns[2], turns[3])
    done = lamina("ingest", file, "--user", user, "--data-dir", up.data)
    assert done.code == 1
    assert reason in done.line
    assert re.search(r"^3 turns: 3 ", done.output, re.MULTILINE)


@unix_only
@pytest.mark.broker
def test_the_same_file_again_changes_nothing(lamina, up, tmp_path):
    again = a_turn("I said it twice, and I mean it: the deadline is Friday.")
    file = a_file(tmp_path, "x.jsonl", a_turn(a_fact(5)), again, again, a_turn("Wow!"))
    first = lamina("ingest", file, "--user", "cem", "--data-dir", up.data)
    assert first.code == 0
    before = quiet(up.data)
    second = lamina("ingest", file, "--user", "cem", "--data-dir", up.data)
    assert second.code == 0
    assert quiet(up.data) == before
    assert "4 turns: " in second.output


@unix_only
@pytest.mark.broker
def test_a_user_without_a_name_is_one_sentence_whatever_the_file_holds(lamina, up, tmp_path):
    file = a_file(tmp_path, "x.jsonl", *[a_turn(a_fact(n)) for n in range(5)])
    done = lamina("ingest", file, "--user", "", "--data-dir", up.data)
    assert (done.code, len(done.output.splitlines())) == (1, 1)
    assert "user must not be empty" in done.output


# Search, ask, doctor


@unix_only
@pytest.mark.broker
def test_search_and_ask_print_what_was_said_and_when(lamina, up, tmp_path):
    said = "I'm allergic to penicillin, so please never suggest it [really]."
    file = a_file(tmp_path, "x.jsonl", a_turn(said, name="Dee", timestamp="2026-01-12T08:00:00Z"))
    assert lamina("ingest", file, "--user", "dee", "--data-dir", up.data).code == 0
    found = lamina("search", "What is Dee allergic to?", "--user", "dee", "--data-dir", up.data)
    assert found.code == 0
    assert said in found.output
    assert "2026-01-12" in found.output
    answer = lamina("ask", "What is Dee allergic to?", "--user", "dee", "--data-dir", up.data)
    assert answer.code == 0
    assert "penicillin" in answer.output
    assert "12 January 2026" in answer.line
    by_url = lamina("search", "What is Dee allergic to?", "--user", "dee", "--url", up.url)
    assert by_url.output == found.output
    with_key = lamina(
        "search", "What is Dee allergic to?", "--user", "dee", "--url", up.url, LAMINA_API_KEY="any"
    )
    assert with_key.output == found.output, "the client's own variable is no unknown setting"


@unix_only
@pytest.mark.broker
def test_a_user_without_memories_is_told_so(lamina, up):
    found = lamina("search", "anything", "--user", "nobody", "--data-dir", up.data)
    assert (found.code, found.output) == (0, "nothing in memory\n")
    assert lamina("ask", "Anything?", "--user", "nobody", "--data-dir", up.data).code == 0


@unix_only
@pytest.mark.broker
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("search", "x", "--top-k", "0"), "top_k"),
        (("search", "x", "--top-k", "1000000"), "1000"),
        (("search", " "), "empty"),
        (("ask", ""), "empty"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_with_what_is_allowed(lamina, up, words, sentence):
    done = lamina(*words, "--user", "ann", "--data-dir", up.data)
    assert (done.code, len(done.output.splitlines())) == (1, 1)
    assert done.output.startswith("lamina: ")
    assert sentence in done.output


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://127.0.0.1:1", "is it running?"),
        ("nowhere", "http"),
        ("http://127.0.0.1:notaport", "http://127.0.0.1:8321"),
    ],
)
def test_a_service_that_is_not_there_is_named(lamina, tmp_path, url, sentence):
    done = lamina("search", "x", "--user", "ann", "--data-dir", tmp_path, "--url", url)
    assert (done.code, len(done.output.splitlines())) == (1, 1)
    assert url in done.output
    assert sentence in done.output


@unix_only
@pytest.mark.broker
def test_doctor_finds_a_running_system_well(lamina, up):
    done = lamina("doctor", "--data-dir", up.data)
    assert done.code == 0, done.output
    assert f"running on {up.data}" in done.output
    assert "turns, " in done.output


def test_doctor_looks_at_a_fresh_folder_and_says_how_to_start(lamina, tmp_path):
    done = lamina("doctor", "--data-dir", tmp_path / "n[e]w", LAMINA_HTTP_PORT="0")
    assert done.code == 0, done.output
    assert "lamina up" in done.output
    assert str(tmp_path / "n[e]w") in done.output


def test_doctor_says_how_to_mend_what_is_wrong(lamina, tmp_path):
    (tmp_path / "file").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = lamina(
            "doctor",
            "--data-dir",
            tmp_path / "file" / "below",
            LAMINA_HTTP_PORT=str(taken.getsockname()[1]),
            LAMINA_EMBEDDER="openai",
        )
    assert done.code == 1
    assert "cannot be written (Not a directory): choose another folder with --data-dir" in done.output
    assert "choose another with --port" in done.output
    assert "set LAMINA_OPENAI_BASE_URL" in done.output


# Settings


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("LAMINA_HTPT_PORT", "1", "LAMINA_HTPT_PORT is no setting: did you mean LAMINA_HTTP_PORT?"),
        ("LAMINA_COLOUR_OF_THE_SKY", "blue", "LAMINA_COLOUR_OF_THE_SKY is no setting"),
        ("LAMINA_HTTP_PORT", "many", "LAMINA_HTTP_PORT: "),
        ("LAMINA_EMBEDDER", "magic", "LAMINA_EMBEDDER: Input should be 'onnx' or 'openai'"),
        ("LAMINA_API_KEYS", "secret", 'LAMINA_API_KEYS is not JSON like {"key": "tenant"}'),
        ("LAMINA_API_KEYS", '["secret"]', "LAMINA_API_KEYS: "),
        ("LAMINA_API_KEYS", '{"secret": "a tenant"}', "LAMINA_API_KEYS names the tenant 'a tenant'"),
        ("LAMINA_TENANT", "a/b", "LAMINA_TENANT"),
    ],
)
@pytest.mark.parametrize("command", [("up",), ("search", "x", "--user", "ann"), ("doctor",)])
def test_a_wrong_variable_is_named_and_nothing_starts(lamina, tmp_path, command, variable, value, sentence):
    done = lamina(*command, "--data-dir", tmp_path / "new", **{variable: value})
    assert (done.code, len(done.output.splitlines())) == (1, 1)
    assert done.output.startswith("lamina: ")
    assert sentence in done.output
    assert "secret" not in done.output.replace(value, "")
    assert not (tmp_path / "new").exists()


# Starting


@unix_only
@pytest.mark.broker
def test_a_second_system_on_the_same_folder_is_refused(lamina, up):
    done = lamina("up", "--data-dir", up.data, "--port", "0")
    assert (done.code, len(done.output.splitlines())) == (1, 1)
    assert f"another lamina uses {up.data}" in done.output
    assert "--data-dir" in done.output


@unix_only
@pytest.mark.broker
def test_a_taken_port_is_one_sentence_and_leaves_nothing_running(tmp_path, weights_cache):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = in_a_process("up", "--data-dir", tmp_path, "--port", port, cache=weights_cache)
    assert done.code == 1
    assert f"cannot listen on 127.0.0.1:{port} (Address already in use)" in done.line
    assert "--port" in done.line
    assert len(done.output.splitlines()) == 1
    assert processes_naming(tmp_path) == []


@pytest.mark.parametrize(
    "command", [("up",), ("search", "x", "--user", "ann"), ("ingest", __file__, "--user", "ann")]
)
def test_a_folder_that_cannot_be_written_is_one_sentence(lamina, tmp_path, command):
    (tmp_path / "file").touch()
    done = lamina(*command, "--data-dir", tmp_path / "file" / "below")
    assert (done.code, len(done.output.splitlines())) == (1, 1)
    assert f"{tmp_path / 'file' / 'below'} cannot be written (Not a directory)" in done.output
    assert "--data-dir" in done.output


@unix_only
@pytest.mark.broker
def test_a_broker_that_nobody_is_is_one_sentence_in_time(tmp_path, weights_cache):
    begun = time.monotonic()
    done = in_a_process(
        "up", "--data-dir", tmp_path, "--port", 0, cache=weights_cache, LAMINA_BROKER="127.0.0.1:1"
    )
    assert time.monotonic() - begun < 30
    assert done.code == 1
    assert len(done.output.splitlines()) == 1, done.output
    assert "no broker answers at 127.0.0.1:1" in done.output
    assert "LAMINA_BROKER" in done.output


# Stopping, and starting again with another embedder


@pytest.fixture(scope="module")
def ended(tmp_path_factory, weights_cache):
    """A system that was started and told to end, and how it did."""
    with lamina_up(tmp_path_factory.mktemp("ended"), weights_cache) as running:
        assert len(running.children) >= 2
        outcome = running.end(signal.SIGTERM)
        return running, outcome


@unix_only
@pytest.mark.broker
def test_sigterm_ends_the_system_well_and_leaves_no_process(ended):
    running, outcome = ended
    assert outcome.code == 0, outcome.output
    assert running.left_over() == []
    assert outcome.output == running.printed, "nothing is said at the end"


@unix_only
@pytest.mark.broker
def test_another_dimension_than_the_stores_refuses_to_start_and_says_what_to_do(ended, weights_cache):
    running, _ = ended
    with an_embedding_endpoint(dimension=8) as url:
        done = in_a_process(
            "up",
            "--data-dir",
            running.data,
            "--port",
            0,
            cache=weights_cache,
            LAMINA_EMBEDDER="openai",
            LAMINA_OPENAI_BASE_URL=url,
            LAMINA_OPENAI_EMBED_DIMENSION="8",
        )
    assert done.code == 1
    assert len(done.output.splitlines()) == 1, done.output
    assert "384" in done.output
    assert "8" in done.output
    assert "LAMINA_" in done.output
    assert processes_naming(running.data) == []


@unix_only
@pytest.mark.broker
def test_ctrl_c_ends_the_system_well_and_leaves_no_process(up):
    outcome = up.end(signal.SIGINT)
    assert outcome.code == 0, outcome.output
    assert up.left_over() == []
    assert "Traceback" not in outcome.output


def processes_naming(folder: Path) -> list[str]:
    """The processes that have a folder in their command line."""
    found = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
    return [" ".join(words) for words in found if any(str(folder) in word for word in words)]


@contextmanager
def an_embedding_endpoint(dimension: int) -> Iterator[str]:
    """An endpoint that speaks `/v1/embeddings`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            vector = [1.0, *[0.0] * (dimension - 1)]
            items = [
                {"object": "embedding", "index": n, "embedding": vector} for n in range(len(asked["input"]))
            ]
            body = json.dumps({"object": "list", "data": items}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
