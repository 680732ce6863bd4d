"""Each step of the Dockerfile, run as a script in a folder instead of an image; what it installs serves."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from .test_container import ROOT, instructions, of

OWN_FOLDERS = ("/build", "/etc/sparserank", "/data", "/models")
"""Folders of the image that a step of the Dockerfile may write to."""
DOCUMENTS = {"d1": "red apples", "d2": "green pears"}


class Image:
    """A folder that stands for the file system of the image, with a Python of its own."""

    def __init__(self, root: Path) -> None:
        self.root, self.python = root, root / "python"
        subprocess.run([sys.executable, "-m", "venv", self.python], check=True)
        variables = dict(word.split("=", 1) for rest in of("ENV") for word in shlex.split(rest))
        path = f"{self.python / 'bin'}:{os.environ['PATH']}"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SPARSERANK"))}
        self.env = {**inherited, **{name: self.inside(value) for name, value in variables.items()}, "PATH": path}

    def inside(self, text: str) -> str:
        for folder in OWN_FOLDERS:
            text = text.replace(folder, f"{self.root}{folder}")
        return text

    def copy(self, words: str) -> None:
        *sources, target = shlex.split(words)
        for source in sources:
            path = Path(self.inside(target))
            into = path / Path(source).name if len(sources) > 1 and (ROOT / source).is_file() else path
            into.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, into, ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
            else:
                shutil.copy(ROOT / source, into)

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-ec", self.inside(command)],
            env=self.env,
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=1500,
        )


def without_user(command: str) -> str:
    """A step without what needs another user: that part is checked in `test_container.py`."""
    parts = [part.strip() for part in command.split("&&")]
    kept = [part.replace("--owner sparserank --group sparserank", "") for part in parts if "useradd" not in part]
    return " && ".join(kept)


@pytest.fixture
def folder(tmp_path):
    """A folder in memory where there is one: pip writes so much that the service's tests would wait for the disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as made:
        yield Path(made)


@pytest.mark.slow
def test_every_step_of_the_dockerfile_runs_and_the_image_serves(folder):
    image = Image(folder / "image")
    for name, words in instructions():
        if name == "COPY":
            image.copy(words)
        elif name == "RUN":
            done = image.run(without_user(words))
            assert done.returncode == 0, f"{words}\n{done.stderr[-2000:]}"
    assert not Path(image.inside("/build")).exists(), "nothing of the build stays"
    installed = image.run("python -c 'import sparserank; print(sparserank.__file__)'").stdout
    assert str(image.python) in installed, "from the wheel, not from the sources"
    code = f"import sparserank as sr; sr.TextRanker().fit({DOCUMENTS}).save('/models/model.safetensors')"
    trained = image.run(f"python -c {shlex.quote(code)}")
    assert trained.returncode == 0, trained.stderr
    options = Path(image.inside("/etc/sparserank/service.toml"))
    options.write_text(image.inside(options.read_text()))
    words = [*json.loads(of("ENTRYPOINT")[0]), *json.loads(of("CMD")[0]), "--check", "--json"]
    done = image.run(" ".join(map(shlex.quote, words)))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["documents"] == 2
    assert json.loads(done.stdout)["workers"] == 2
