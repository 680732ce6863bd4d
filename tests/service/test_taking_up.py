"""A newly trained model is taken up by a running service: by a command, and by SIGHUP."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

import sparserank as sr
from sparserank.versions import VersionRegistry
from sparserank.versions.trials import start_trial, withdraw

from ..cli.calling import call
from .conftest import wait_until, world


@pytest.fixture(scope="module")
def anew(tmp_path_factory) -> Path:
    """A model with one document more."""
    docs, queries, qrels = world()
    docs["x"] = {"title": "purple plane", "text": "It flies over violet mountains"}
    path = tmp_path_factory.mktemp("anew") / "new.safetensors"
    sr.TextRanker(max_pairs=200).fit(docs, queries, qrels).save(path)
    return path


def best(service) -> str:
    found = service.client.post("/search", json={"query": "purple plane"}).json()["results"]
    return found[0]["id"] if found else ""


def put(anew: Path, model: Path) -> None:
    """As training does it."""
    for ending in ("", ".index"):
        shutil.copy(f"{anew}{ending}", f"{model}.tmp")
        Path(f"{model}.tmp").replace(f"{model}{ending}")


def test_a_model_trained_elsewhere_is_added_to_a_running_service_and_rolled_back(run, model, anew, capsys):
    service = run("--no-learn")
    assert best(service) != "x"
    assert call("model", "add", model, anew) == 0
    assert "version 2 is served: added new.safetensors (before: version 1)" in capsys.readouterr().out
    wait_until(lambda: best(service) == "x")
    assert service.client.get("/model").json()["version"] == 2
    assert service.client.post("/model/rollback", json={"to": 1}).status_code == 200
    assert best(service) != "x"
    service.kill()
    assert best(run("--no-learn")) != "x", "the version that was chosen is served after a restart"


def test_a_model_without_an_index_is_not_added(model, tmp_path, capsys):
    alone = tmp_path / "alone.safetensors"
    shutil.copy(model, alone)
    assert call("model", "add", model, alone) == 2
    assert "has no index" in capsys.readouterr().err
    assert call("model", "add", model) == 0
    assert "version 1 is served already" in capsys.readouterr().out


@pytest.mark.parametrize("workers", ["1", "2"])
def test_sighup_takes_up_a_model_that_was_trained_again(run, model, anew, workers):
    service = run("--no-learn", "--workers", workers)
    assert best(service) != "x"
    put(anew, model)
    os.kill(service.pid, signal.SIGHUP)
    wait_until(lambda: [best(service) for _ in range(6)] == ["x"] * 6)
    model.write_bytes(b"nonsense")
    os.kill(service.pid, signal.SIGHUP)
    wait_until(lambda: "version 2 stays" in service.said.read_text())
    assert best(service) == "x"


def test_old_versions_are_removed_at_the_start_after_model_add_and_after_sighup(run, model, anew):
    """The real fault: without a learning round `--keep-versions` did nothing."""
    registry = VersionRegistry.open(model)
    for number in range(2, 6):
        registry.add(registry.load().set_pair("car", "boat", float(number)), f"version {number}")
    start_trial(registry, 2)

    def numbers() -> list[int]:
        return [version.number for version in VersionRegistry.open(model, register=False).list()]

    service = run("--no-learn", "--workers", "2", "--keep-versions", "2")
    wait_until(lambda: numbers() == [1, 2, 4, 5])  # 1 is the root of the others, 2 is on trial
    withdraw(registry)
    wait_until(lambda: numbers() == [1, 4, 5])
    assert call("model", "add", model, anew) == 0
    wait_until(lambda: numbers() == [1, 5, 6])
    put(anew, model)
    os.kill(service.pid, signal.SIGHUP)
    wait_until(lambda: numbers() == [6, 7])
    assert not (registry.folder / "000001.safetensors").exists()
    wait_until(lambda: [best(service) for _ in range(6)] == ["x"] * 6)
