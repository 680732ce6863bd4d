"""The Dockerfile, read: what it copies is there, what it installs is pinned, and whom it runs as."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def of(name: str) -> list[str]:
    return [rest for found, rest in instructions() if found == name]


@pytest.fixture
def sources() -> list[str]:
    return [source for copied in of("COPY") for source in shlex.split(copied)[:-1]]


def test_what_is_copied_is_there_and_is_sent_to_the_builder(sources):
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignored, "nothing is sent but what is named"
    for source in sources:
        assert (ROOT / source).exists(), source
        assert f"!{source}" in ignored, source


def test_everything_from_outside_is_pinned_with_hashes(sources):
    for run in of("RUN"):
        for command in run.split("&&"):
            if "pip install" in command and "--no-index" not in command:
                (_, file) = re.split(r"--require-hashes -r /build/", command)
                assert file.strip() in sources
                locked = (ROOT / file.strip()).read_text()
                pins = re.findall(r"^[\w.\[\]-]+==", locked, re.MULTILINE)
                assert pins and len(re.findall(r"--hash=sha256:[0-9a-f]{64}", locked)) >= len(pins)
                assert "://" not in locked, "no address"
    assert not of("ADD")


def test_it_runs_as_a_user_without_rights_and_nothing_is_run_before_that_it_could_change():
    (user,) = of("USER")
    assert user not in ("root", "0")
    (made,) = [run for run in of("RUN") if "useradd" in run]
    assert shlex.split(made.split("&&")[0])[-1] == user
    assert "--system" in made and "--shell /usr/sbin/nologin" in made
    names = [name for name, _ in instructions()]
    assert names.index("USER") > max(i for i, name in enumerate(names) if name in ("RUN", "COPY"))


def test_the_service_is_process_1_and_says_whether_it_is_well():
    """As lists of words: no shell stands between it and the signal to stop."""
    (entry,), (command,), (check,) = of("ENTRYPOINT"), of("CMD"), of("HEALTHCHECK")
    words = json.loads(entry)
    assert words[:2] == ["sparserank", "serve"]
    assert json.loads(command)[0].startswith("/models/")
    assert "/health" in json.loads(check.partition("CMD ")[2])[-1]
    compile(json.loads(check.partition("CMD ")[2])[-1], "health", "exec")


def test_the_command_line_takes_what_the_container_gives():
    from typer.testing import CliRunner

    from sparserank.cli.app import app

    told = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
    options = [word for word in json.loads(of("ENTRYPOINT")[0]) + json.loads(of("CMD")[0]) if word.startswith("--")]
    assert options
    for option in options:
        assert option in told


def test_what_is_written_goes_to_the_folder_for_data():
    environment = dict(word.split("=", 1) for rest in of("ENV") for word in shlex.split(rest))
    assert json.loads(of("VOLUME")[0]) == ["/data"]
    options = tomllib.loads((ROOT / "deploy/container.toml").read_text())
    assert options == {"host": "0.0.0.0", "port": int(of("EXPOSE")[0]), "database": "sqlite:////data/feedback.sqlite"}
    (copied,) = [words for words in map(shlex.split, of("COPY")) if words[0] == "deploy/container.toml"]
    assert json.loads(of("ENTRYPOINT")[0])[-2:] == ["--config", copied[1]]
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        assert environment[name].startswith("/data")
