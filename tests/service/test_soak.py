"""`make soak` and `make fuzz` run, in small, and what they would say is wrong is really looked for."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys

import pytest
from benchmarks.soak.stored import feedback_faults, model_faults

from sparserank.data.formats.beir import write_beir
from sparserank.data.records import Collection, Documents
from sparserank.service.feedback import Feedback
from sparserank.service.store import FeedbackStore

from .conftest import COLOURS, world


def python_module(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=600)


@pytest.mark.slow
def test_a_short_soak_loses_nothing_and_fails_no_request(tmp_path):
    docs, queries, qrels = world()
    wooden = {f"wooden-{colour}": f"{colour} car of wood" for colour in COLOURS}  # what is not known yet
    taught = {f"wooden-{colour}": {f"boat-{colour}": 1} for colour in COLOURS}
    splits = {"train": qrels, "dev": qrels, "test": taught}
    judged = Collection("world", Documents.of(docs), queries | wooden, splits)
    write_beir(tmp_path / "world", judged)
    report = tmp_path / "soak.json"
    done = python_module("benchmarks.soak", "--quick", "--rate", "60", "--data", str(tmp_path / "world"),
                         "--output", str(report))  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(report.read_text())
    assert json.loads(done.stdout.splitlines()[-1]) == result
    steady, meanwhile, highest, cost, killed, learning = result["phases"]
    assert set(cost["milliseconds"]) >= {"bare bm25s", "lexical search", "learned search", "search as the page"}
    assert all(value > 0 for value in cost["milliseconds"].values())
    for phase in (steady, meanwhile):
        assert (phase["errors"], phase["answered"]) == (0, 60)
    assert [phase["words"] == "--no-learn" for phase in result["phases"]] == [True, False, True, True, False, False]
    assert "steady, serve --no-learn: held" in done.stdout.splitlines()
    assert highest["held"]
    assert set(steady["kinds"]) == {"search", "search as the page", "explain", "feedback"}
    assert killed["kills"] == {"worker": 1, "service": 1}
    assert killed["faults"] == []
    assert killed["acknowledged"] > 0
    assert learning["errors"] == 0
    assert set(learning["answers_by_version"]) >= {"1", "2"}


@pytest.mark.slow
def test_some_hostile_requests_are_all_answered_well(tmp_path):
    done = python_module("benchmarks.soak.fuzz", "--requests", "300", "--processes", "1",
                         "--output", str(tmp_path / "fuzz.json"))  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads((tmp_path / "fuzz.json").read_text())
    assert result["requests"] >= 300
    assert result["spoilt"]["requests"] >= 30


def test_feedback_that_is_lost_there_twice_or_changed_is_found(tmp_path):
    path = tmp_path / "f.sqlite"
    store = FeedbackStore(f"sqlite:///{path}")
    for name in ("a", "b"):
        store.add(Feedback(name, "judgment", "red car", "boat-red"))
    store.close()
    right = {name: {"query": "red car", "document": "boat-red"} for name in ("a", "b", "c")}
    assert feedback_faults(path, right, ["a", "b"]) == []
    assert feedback_faults(path, right, ["a", "b", "c"]) == ["lost: c"]
    other = right | {"b": {"query": "blue car", "document": "boat-red"}}
    assert feedback_faults(path, other, ["a"]) == ["not as it was said: b"]
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE copied AS SELECT * FROM sparserank_feedback")
    connection.execute("DROP TABLE sparserank_feedback")
    connection.execute("ALTER TABLE copied RENAME TO sparserank_feedback")
    connection.execute("INSERT INTO sparserank_feedback SELECT * FROM sparserank_feedback WHERE id = 'a'")
    connection.commit()
    connection.close()
    assert feedback_faults(path, right, ["a"]) == ["stored twice: a", "the numbers of feedback have gaps"]


def test_a_model_that_cannot_be_loaded_is_found(model):
    assert model_faults(model) == []
    for path in (f"{model}.index", f"{model}.versions/000001.index"):
        os.truncate(path, 100)
    (told,) = model_faults(model)
    assert f"{model}.versions/000001.index" in told
