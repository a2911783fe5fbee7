"""What is packaged: every folder, under one name, beside any other package."""

import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import tomllib
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("streams", "sinks", "agents", "query", "bench")
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
PIP_SECONDS = 300


def pip(python: str | Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), "-m", "pip", "--disable-pip-version-check", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=PIP_SECONDS,
        check=False,
    )


def test_every_package_is_listed():
    found = {
        ".".join(("lamina", *init.parent.relative_to(ROOT).parts))
        for folder in FOLDERS
        for init in (ROOT / folder).rglob("__init__.py")
    }
    assert found == set(SETUP["packages"])
    assert len(SETUP["packages"]) == len(found)


def test_every_folder_of_code_is_a_package():
    """A module in a folder without `__init__.py` would run here and be missing from the wheel."""
    modules = (module for folder in FOLDERS for module in (ROOT / folder).rglob("*.py"))
    assert [module for module in modules if not (module.parent / "__init__.py").exists()] == []


def test_every_package_is_mapped_typed_and_seen_by_type_checkers():
    assert SETUP["package-dir"] == {f"lamina.{folder}": folder for folder in FOLDERS}
    for folder in FOLDERS:
        assert (ROOT / folder / "py.typed").exists()
        link = ROOT / ".types" / "lamina" / folder
        assert link.is_symlink()
        assert link.readlink() == Path("..", "..", folder), "relative: it must hold in every checkout"
    assert {each.name for each in (ROOT / ".types" / "lamina").iterdir()} == set(FOLDERS)


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout: run it in a clone")
    return [file for name in listed.stdout.split("\0") if name and (file := ROOT / name).is_file()]


def test_no_tracked_file_names_a_package_index():
    """Whoever installs chooses the index; ours may be reachable from here alone."""
    # In pieces: this file is tracked, too.
    public = {".".join(words) for words in (("pypi", "org"), ("files", "pythonhosted", "org"))}
    options = {"-".join(words) for words in (("--index", "url"), ("--extra", "index", "url"))}
    configured = pip(sys.executable, "config", "list").stdout.replace("'", " ").split()
    named = [value for name, value in os.environ.items() if name.endswith(("INDEX_URL", "DEFAULT_INDEX"))]
    hosts = {urlsplit(word).hostname for word in (*configured, *named) if "://" in word}
    forbidden = public | options | {host for host in hosts if host and host != "localhost"}
    for file in tracked_files():
        text = file.read_bytes().decode(errors="replace")
        assert not [word for word in forbidden if word in text], file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy: setuptools would leave its `build` folder in the checkout."""
    source = tmp_path_factory.mktemp("source")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    target = tmp_path_factory.mktemp("wheel")
    built = pip(sys.executable, "wheel", "--quiet", "--no-deps", "--wheel-dir", target, source)
    if built.returncode:
        unreachable(built)
        pytest.fail(built.stderr)
    [file] = target.glob("*.whl")
    return file


def unreachable(attempt: subprocess.CompletedProcess[str]) -> None:
    """Skip where pip failed because it has no index to ask."""
    signs = ("NewConnectionError", "Temporary failure", "No matching distribution", "ConnectTimeoutError")
    if any(sign in attempt.stderr for sign in signs):
        pytest.skip("pip reaches no package index: run `pytest tests/test_packaging.py` where it does")


@pytest.mark.timeout(2 * PIP_SECONDS)
def test_the_wheel_holds_every_module_and_all_of_it_under_one_name(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert "lamina" in tops
    assert {top for top in tops if not top.endswith(".dist-info")} == {"lamina"}
    ours = {name for name in names if name.startswith("lamina/") and not name.endswith("/")}
    modules = {
        f"lamina/{file.relative_to(ROOT).as_posix()}"
        for folder in FOLDERS
        for file in (ROOT / folder).rglob("*")
        if file.suffix in {".py", ".typed", ".mako", ".html", ".css", ".js", ".json", ".npy"}
        or file.parent == ROOT / "bench" / "data"
    }
    assert ours == modules


@pytest.mark.broker
@pytest.mark.timeout(3 * PIP_SECONDS)
def test_the_wheel_and_openai_agents_install_side_by_side_and_both_import(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, timeout=PIP_SECONDS)
    python = tmp_path / "venv" / "bin" / "python"
    theirs = pip(python, "install", "--quiet", "openai-agents")
    if theirs.returncode:
        unreachable(theirs)
        pytest.fail(theirs.stderr)
    ours = pip(python, "install", "--quiet", "--no-deps", wheel)
    assert ours.returncode == 0, ours.stderr
    # What we depend on comes from here, behind what is installed there.
    probe = """
        import sys
        sys.path.append(sys.argv[1])
        import agents, lamina.agents, lamina.streams.records
        from agents import Agent
        from lamina.agents.cli import app
        print(Agent.__module__, agents.__file__, lamina.agents.__file__, lamina.streams.records.__file__)
    """
    done = subprocess.run(
        [python, "-P", "-c", textwrap.dedent(probe), sysconfig.get_path("purelib")],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LAMINA_"))},
        capture_output=True,
        text=True,
        timeout=PIP_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    module, *files = done.stdout.split()
    assert module.startswith("agents.")
    [site] = {Path(file).parents[depth] for file, depth in zip(files, (1, 2, 2), strict=True)}
    assert site.is_relative_to(tmp_path), "all three come from the fresh environment"
    gone = pip(python, "uninstall", "--quiet", "--yes", "lamina")
    assert gone.returncode == 0, gone.stderr
    assert not list(site.glob("lamina*/**/*.py"))
    still = subprocess.run([python, "-P", "-c", "from agents import Agent"], cwd=tmp_path, check=False)
    assert still.returncode == 0, "taking us away leaves openai-agents whole"
