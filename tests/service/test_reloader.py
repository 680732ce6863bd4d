"""Versions as they are served: taken up without dropping a request, told, rolled back; a damaged one never."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

import sparserank as sr
from sparserank.errors import DataError, ModelError
from sparserank.service.app import create_app
from sparserank.service.config import ServiceConfig
from sparserank.service.learning.learner import Learner
from sparserank.service.reloader import ModelReloader
from sparserank.versions import VersionRegistry

from ..cli.calling import call
from .conftest import TOKEN, wait_until, world


def taught(model):
    """The next version: it has learned that a car may be a boat."""
    versions = VersionRegistry.open(model)
    ranker = versions.load()
    return versions, versions.add(ranker.set_pair("car", "boat", 50.0), "taught by hand")


def test_a_new_version_is_taken_up_without_dropping_a_request(serve, model):
    running = serve()
    answers, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            answers.append(running.client.post("/search", json={"query": "red car"}))

    asking = threading.Thread(target=ask)
    asking.start()
    taught(model)
    wait_until(lambda: bool(answers) and answers[-1].json().get("version") == 2)
    stop.set()
    asking.join()
    assert {answer.status_code for answer in answers} == {200}
    best = {answer.json()["version"]: answer.json()["results"][0]["id"] for answer in answers}
    assert best == {1: "automobile-red", 2: "boat-red"}
    for answer in answers:
        assert answer.json()["results"][0]["id"] == best[answer.json()["version"]], (
            "one version answers all of a request"
        )


def test_what_changed_since_is_told_and_a_version_is_rolled_back(serve, model):
    running = serve()
    assert running.client.get("/changes").json() == {"before": 1, "after": 1, "changes": [], "display": {}}
    taught(model)
    wait_until(lambda: running.client.get("/health").json()["version"] == 2)
    changed = running.client.get("/changes?days=0.5&k=1").json()
    assert (changed["before"], changed["after"]) == (1, 2)
    (change,) = changed["changes"]
    assert (change["query"], change["document"]) == ("car", "boat")
    assert change["after"] == pytest.approx(50.0)
    assert running.client.get("/changes?days=0").json()["before"] == 2
    back = running.client.post("/model/rollback", json={"to": 1})
    assert (back.status_code, back.json()["number"]) == (200, 1)
    assert running.client.get("/health").json()["version"] == 1, "at once, where it was asked"
    missing = running.client.post("/model/rollback", json={"to": 9})
    assert missing.status_code == 404
    assert "there is no version 9" in missing.json()["detail"]


def test_a_damaged_version_is_never_served(serve, model):
    running = serve()
    versions, second = taught(model)
    wait_until(lambda: running.client.get("/health").json()["version"] == 2)
    versions.rollback(1)
    wait_until(lambda: running.client.get("/health").json()["version"] == 1)
    path = versions.path(second.number)
    path.write_bytes(path.read_bytes()[:-10])
    refused = running.client.post("/model/rollback", json={"to": 2})
    assert refused.status_code == 409
    assert "damaged" in refused.json()["detail"]
    pointer = versions.folder / "versions.json"
    pointer.write_text("{}")
    running.app.state.service.reloader._stopped.wait(1.5)
    assert [one["number"] for one in running.client.get("/model").json()["versions"]] == [1]
    assert running.client.get("/changes").status_code == 409
    assert running.client.post("/search", json={"query": "red car"}).json()["version"] == 1


def test_the_last_good_version_is_served_where_the_current_one_is_damaged(serve, model):
    versions, second = taught(model)
    versions.path(second.number).write_bytes(b"nonsense")
    assert serve().client.get("/health").json()["version"] == 1


def test_a_model_that_cannot_be_served_is_rejected_by_name(tmp_path, model):
    with pytest.raises((DataError, ModelError), match=r"nothing\.safetensors"):
        create_app(ServiceConfig(f"{tmp_path}/nothing.safetensors", TOKEN))
    alone = tmp_path / "alone.safetensors"
    shutil.copy(model, alone)
    with pytest.raises(ModelError, match="has no index"):
        create_app(ServiceConfig(str(alone), TOKEN))


@pytest.fixture(scope="module")
def anew(tmp_path_factory):
    """The model as it is trained anew, with one document more."""
    docs, queries, qrels = world()
    docs["x"] = {"title": "purple plane", "text": "It flies over violet mountains"}
    path = tmp_path_factory.mktemp("anew") / "model.safetensors"
    sr.TextRanker(max_pairs=200).fit(docs, queries, qrels).save(path)
    return path


def put(anew, model, ending=""):
    """As training does it: the new file appears in the place of the old one."""
    shutil.copy(f"{anew}{ending}", f"{model}.tmp")
    Path(f"{model}.tmp").replace(f"{model}{ending}")


def test_a_model_trained_anew_is_served_from_the_next_start_on_with_all_versions_before_it(serve, model, anew, capsys):
    running = serve(learn=True)
    for ending in ("", ".index"):
        put(anew, model, ending)
    assert call("model", "list", model) == 0
    Learner(ServiceConfig(str(model), TOKEN))
    assert not running.app.state.service.reloader.reload()
    assert running.client.get("/health").json()["version"] == 1
    create_app(ServiceConfig(str(model), TOKEN, learn=False), register=False).state.service.store.close()  # a worker

    after = serve()
    assert after.client.get("/health").json()["version"] == 2
    assert after.client.post("/search", json={"query": "purple plane"}).json()["results"][0]["id"] == "x"
    changed = after.client.get("/changes")
    assert (changed.status_code, changed.json()["before"], changed.json()["after"]) == (200, 1, 2)
    assert call("model", "rollback", model, "--to", 1) == 0
    wait_until(lambda: after.client.get("/health").json()["version"] == 1)


def test_a_version_whose_index_comes_later_is_taken_up_when_it_is_there(model, anew):
    reloader = ModelReloader(VersionRegistry.open(model))
    put(anew, model)
    VersionRegistry.open(model)  # between the two files that training writes
    assert (reloader.reload(), reloader.model().version.number) == (False, 1)
    assert not reloader.reload()
    put(anew, model, ".index")
    assert (reloader.reload(), reloader.model().version.number) == (True, 2)
    assert reloader.model().ranker.search("purple plane")[0].id == "x"
