"""The release: wheel and sdist are built, the wheel is installed into a fresh environment, and the demo runs there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import sparserank

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder that holds a wheel and an sdist."""
    pytest.importorskip("hatchling", reason="the build needs hatchling: pip install 'sparserank[dev]'")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def fresh(built, tmp_path_factory):
    """Run the Python of an environment that has the wheel; its libraries are those of this environment."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder / "env", with_pip=True)
    python = folder / "env/bin/python"
    (wheel,) = built.glob("*.whl")
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    # path files are not read from PYTHONPATH, so an editable install of this environment is not seen
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    env = {"PYTHONPATH": os.pathsep.join(libraries), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return lambda *words: run(python, *words, env=env, cwd=folder)


def test_the_wheel_holds_the_package_and_what_it_reads(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    files = (path for path in (ROOT / "src").rglob("*.*") if path.parent.name != "__pycache__")
    assert {path.relative_to(ROOT / "src").as_posix() for path in files} <= set(names)
    for name in ("py.typed", "service/page/index.html", "export/templates/vespa.sd", "data/datasets/catalog.toml"):
        assert f"sparserank/{name}" in names
    assert any(name.startswith("sparserank/service/migrations/versions/r0001") for name in names)
    assert not [name for name in names if not name.startswith(("sparserank/", "sparserank-"))]


def test_the_sdist_builds_the_same_wheel(built, tmp_path):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert (source / "tests/test_release.py").is_file()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again", cwd=source)
    contents = [
        {name: file.read(name) for name in file.namelist()}
        for path in (*built.glob("*.whl"), *(tmp_path / "again").glob("*.whl"))
        for file in [zipfile.ZipFile(path)]
    ]
    assert contents[0] == contents[1]


def test_the_wheel_is_what_runs_in_a_fresh_environment(fresh):
    assert fresh("-m", "sparserank", "--version") == f"sparserank {sparserank.__version__}\n"
    code = "import sparserank as sr; print(sr.__file__)"
    assert not Path(fresh("-c", code).strip()).is_relative_to(ROOT)


def test_the_demo_of_the_wheel_learns_word_pairs_that_beat_bm25(fresh):
    said = json.loads(fresh("-m", "sparserank", "demo", "--json"))
    assert said["pairs"] == 200_000
    bm25, learned = (said["measures"][name]["nDCG@10"]["value"] for name in ("BM25", "learned"))
    assert 0.4 < bm25 < learned - 0.1
    reverses = said["reverse_in_training"]
    assert 0 < reverses["judgments"] < reverses["of"]
    assert reverses["share"] == reverses["judgments"] / reverses["of"]
    for name, measures in said["measures"].items():
        assert reverses["measures_without"][name].keys() == measures.keys()
    assert len(said["searches"]) == 3
    assert all(case["bm25_rank"] is None or case["bm25_rank"] > 10 for case in said["searches"])
    assert all(case["learned"][0] == case["found"] for case in said["searches"])
