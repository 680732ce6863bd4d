"""The habits of the house, kept by machine: layers, style, types, locks."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
import subprocess
import sys
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
        ["ruff", "check", "src", "tests", "benchmarks", "docs"],
        ["ruff", "format", "--check", "src", "tests", "benchmarks", "docs"],
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
    assert [lock.name for lock in locks] == ["build.txt", "docs.txt", "lock.txt", "run.txt", "service.txt"]
    for lock in locks:
        text = lock.read_text()
        assert "://" not in text
        assert text.count("--hash=sha256:") >= 2 * text.count("==") >= 12, "a wheel and a source of each"


def test_kernels_import_only_numpy_numba_math_and_each_other():
    files = list((ROOT / "src/sparserank/_kernels").glob("*.py"))
    assert len(files) > 10
    for file in files:
        imported = set(re.findall(r"^\s*(?:from|import) (\S+)", file.read_text(), re.M))
        if file.name == "__init__.py":  # no kernel, and numba must not be there before it has run
            assert imported <= sys.stdlib_module_names
        else:
            allowed = {"math", "numba", "numpy", *(f".{other.stem}" for other in files)}
            if file.name == "instructions.py":  # what Numba has no name for
                allowed |= {"llvmlite", "numba.core", "numba.extending"}
            assert imported <= allowed, file.name
            others = [name[1:] for name in sorted(imported) if name.startswith(".")]
            content = b"".join(file.with_name(f"{name}.py").read_bytes() for name in others)
            line = f"# digest of the imported kernels: {hashlib.sha256(content).hexdigest()[:16]}\n"
            assert not others or line in file.read_text(), f"{file.name} needs the line {line}"


def test_kernels_run_where_neither_the_package_nor_the_home_can_be_written(tmp_path):
    shutil.copytree(ROOT / "src/sparserank", tmp_path / "sparserank", ignore=shutil.ignore_patterns("__pycache__"))
    # a file in the folder's place keeps even root from writing there
    (tmp_path / "sparserank/_kernels/__pycache__").touch()
    (tmp_path / "tmp").mkdir()
    code = (
        "import os, numpy as np; from sparserank._kernels.weights import row_lengths as r; "
        "print(r.__module__, r(np.array([0, 2]), np.array([3.0, 4.0]))[0], os.environ['NUMBA_CACHE_DIR'])"
    )
    env = {"PYTHONPATH": str(tmp_path), "HOME": "/dev/null", "TMPDIR": str(tmp_path / "tmp")}
    done = run(sys.executable, "-B", "-c", code, env=env)
    assert done.returncode == 0, done.stderr
    module, length, folder = done.stdout.split()
    assert (module, length) == ("sparserank._kernels.weights", "5.0")
    assert Path(folder).parent == tmp_path / "tmp"
    assert not Path(folder).exists(), "it goes with the process"


def test_a_cache_that_can_be_written_is_left_to_numba(tmp_path):
    code = "import os, sparserank._kernels; print(os.environ.get('NUMBA_CACHE_DIR'))"
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    assert run(sys.executable, "-c", code, env=env).stdout == "None\n"
    assert run(sys.executable, "-c", code, env=env | {"NUMBA_CACHE_DIR": "/dev/null"}).stdout == "/dev/null\n"


def test_the_bench_prints_json_last_and_fails_where_a_case_fails(tmp_path):
    done = run(sys.executable, "-m", "benchmarks.run", "no_such_case", "--output", str(tmp_path / "bench.json"))
    assert done.returncode == 1
    (result,) = json.loads(done.stdout.splitlines()[-1])
    assert result["case"] == "no_such_case"
    assert "No module named" in result["error"]
    assert json.loads((tmp_path / "bench.json").read_text()) == [result]


@pytest.mark.data
@pytest.mark.slow
def test_a_bench_that_runs_is_exit_code_0_and_its_last_line_is_json(real, tmp_path):
    real("20newsgroups")
    done = run(sys.executable, "-m", "benchmarks.run", "text_features", "--quick", "--output", str(tmp_path / "b.json"))
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout.splitlines()[-1])
    assert result["rows"]


@pytest.mark.slow
def test_the_bench_of_model_files_needs_no_data(tmp_path):
    done = run(sys.executable, "-m", "benchmarks.run", "model_loading", "--quick", "--output", str(tmp_path / "b.json"))
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout.splitlines()[-1])
    assert {"SparseRank", "scipy load_npz (W only)", "pickle"} <= {row["name"] for row in result["rows"]}


def test_the_version_is_the_same_everywhere():
    assert f"version: {sparserank.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {sparserank.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_guide_for_contributors_shows_every_package_in_the_order_of_imports():
    tree = re.findall(r"(?m)^    (\w+)  +\S", (ROOT / "CONTRIBUTING.md").read_text())
    layers = re.search(r"layers = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL)[1]
    depth = {name: n for n, line in enumerate(re.findall(r'"(.*)"', layers)) for name in re.findall(r"\w+", line)}
    assert set(depth) <= set(tree)
    there = {path.stem for path in (ROOT / "src/sparserank").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert there - {"__init__", "__main__", "__pycache__", "py"} <= set(tree)
    known = [depth[name] for name in tree if name in depth]
    assert known == sorted(known)


def test_no_package_touches_another_packages_private_names():
    """Neither imported nor as attributes of other objects than `self`; named tuples have public names with a `_`."""
    src = ROOT / "src/sparserank"
    imports, uses, defined = [], [], {}
    for file in src.rglob("*.py"):
        package, *_ = file.relative_to(src).parts
        for node in ast.walk(ast.parse(file.read_text())):
            place = f"{file.relative_to(src)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.ImportFrom) and node.level:
                base = [*file.relative_to(src).parts[: -node.level], *(node.module or "").split(".")]
                imports += [(place, package, [part for part in [*base, one.name] if part]) for one in node.names]
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                if ast.unparse(node.value) in ("self", "cls"):  # a subclass may be in another package
                    continue
                uses.append((place, package, node.attr))
            name = next((getattr(node, kind) for kind in ("name", "attr", "id") if hasattr(node, kind)), None)
            if isinstance(node, ast.FunctionDef | ast.ClassDef) or isinstance(getattr(node, "ctx", None), ast.Store):
                defined.setdefault(name, set()).add(package)
    private = re.compile("_[^_]").match
    for place, package, path in imports:
        assert path[0] == package or not any(map(private, path[1:])), f"{place}: {'.'.join(path)}"
    for place, package, name in uses:
        if private(name) and name in defined and name not in ("_asdict", "_fields", "_replace"):
            assert package in defined[name], f"{place}: {name} of {defined[name]}"
