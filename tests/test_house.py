"""The habits of the house, kept by machine: layers, style, types, locks, the built wheel."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import sparserank

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


def run(*command, **options):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **options)


@pytest.mark.parametrize(
    "command",
    [
        ["lint-imports"],
        ["ruff", "check", "src", "tests", "benchmarks"],
        ["ruff", "format", "--check", "src", "tests", "benchmarks"],
        ["mypy"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_the_tree_is_clean(command):
    if not (BIN / command[0]).exists():
        pytest.skip(f"{command[0]} is not installed: pip install 'sparserank[dev]'")
    result = run(str(BIN / command[0]), *command[1:])
    assert result.returncode == 0, result.stdout + result.stderr


def test_lock_files_hold_no_address():
    locks = sorted((ROOT / "requirements").glob("*.txt"))
    assert [lock.name for lock in locks] == ["lock.txt", "run.txt"]
    for lock in locks:
        text = lock.read_text()
        assert "://" not in text
        assert text.count("--hash=sha256:") > 100


def test_kernels_import_only_numpy_numba_and_math():
    for file in (ROOT / "src/sparserank/kernels").glob("*.py"):
        imported = re.findall(r"^(?:from|import) (\S+)", file.read_text(), re.M)
        assert set(imported) <= {"math", "numba", "numpy"}, file.name


def test_the_version_is_the_same_everywhere():
    assert f"version: {sparserank.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {sparserank.__version__}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.slow
def test_the_built_wheel_installs_and_works(tmp_path):
    pip = [sys.executable, "-m", "pip"]
    built = run(*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(ROOT))
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env/bin/python"
    installed = run(str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    assert installed.returncode == 0, installed.stderr
    # the libraries of this environment, but not the editable install: path files are not read from PYTHONPATH
    libraries = next(p for p in sys.path if p.endswith("site-packages"))
    env = {"PYTHONPATH": libraries, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    command = [str(python), "-m", "sparserank"]
    assert run(*command, "--version", env=env).stdout == f"sparserank {sparserank.__version__}\n"
    code = (
        "import sparserank as sr; print(sr.__file__); "
        "print(sr.TextRanker().fit({'a': 'red apple', 'b': 'pear'}).search('apples')[0].id)"
    )
    where, found = run(str(python), "-c", code, env=env).stdout.splitlines()
    assert Path(where).is_relative_to(tmp_path)
    assert found == "a"
    assert (tmp_path / "env/lib").is_dir()
    assert list((tmp_path / "env").rglob("sparserank/py.typed"))
