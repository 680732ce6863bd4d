"""`make soak` and `make fuzz` run, in small, and what they would say is wrong is really looked for."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys

import pytest
from benchmarks.markdown import section
from benchmarks.soak import fuzz
from benchmarks.soak.attack import ATTACKERS
from benchmarks.soak.limits import limits
from benchmarks.soak.postgres import missing
from benchmarks.soak.report import markdown
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
    phases = {phase["name"]: phase for phase in result["phases"]}
    names = ["steady", "bare", "learning on", "highest rate", "highest rate, bare", "cost", "cost attack", "kill -9"]
    on_postgresql = [] if missing() else ["PostgreSQL", "kill -9, PostgreSQL"]
    assert sorted(phases) == sorted([*names, *on_postgresql, "new model", "memory"])
    cost = phases["cost"]
    assert set(cost["milliseconds"]) >= {"bare bm25s", "lexical search", "learned search", "search as the page"}
    assert {f"{kind}, with facets" for kind in ("learned search", "search as the page")} <= set(cost["milliseconds"])
    assert all(value > 0 for value in cost["milliseconds"].values())
    for name in ("steady", "bare", "learning on", *on_postgresql[:1]):
        assert (phases[name]["errors"], phases[name]["answered"]) == (0, 60)
    assert "steady, serve --no-learn: held" in done.stdout.splitlines()
    assert phases["highest rate"]["held"]
    assert set(phases["steady"]["kinds"]) == {"search", "search as the page", "explain", "feedback"}
    for name in ("kill -9", *on_postgresql[1:]):
        assert phases[name]["kills"] == {"worker": 1, "service": 1}
        assert phases[name]["faults"] == []
        assert phases[name]["acknowledged"] > 0
    attack = phases["cost attack"]  # how fast others are answered meanwhile depends on the machine, so no test says it
    assert set(attack["attackers"]) <= {"200", "422", "429", "never read"}
    assert attack["attackers"]["never read"] >= ATTACKERS
    assert phases["new model"]["errors"] == 0
    assert set(phases["new model"]["answers_by_version"]) >= {"1", "2"}
    assert (phases["memory"]["requests"], phases["memory"]["errors"]) == (400, 0)
    text = section(markdown(result))
    assert text.startswith("## Soak\n")
    assert text.count("\n- Limit: ") == len(list(limits(result["phases"]))) >= 9
    assert "| bare uvicorn + bm25s |" in text


def phase(name: str, **figures) -> dict:
    return {"name": name, **figures}


def test_each_limit_is_one_line_that_says_whether_it_holds():
    load = {"rate": 300.0, "all": {"p99": 50.1}}
    found = [
        phase("steady", **load | {"all": {"p99": 49.9}}), phase("learning on", **load),
        phase("highest rate", highest=790), phase("cost attack", p99_factor=2.0),
        phase("cost", milliseconds={"bare bm25s": 9.0, "learned search": 1.5, "search as the page, with facets": 2.4}),
        phase("memory", requests=1_000_000, growth=0.02),
        phase("kill -9", kills={"worker": 5, "service": 5}, faults=[]),
    ]  # fmt: skip
    assert [str(limit) for limit in limits(found)] == [
        "p99 in ms without learning at 300 requests/s: 49.9, at most 50: holds",
        "p99 in ms with learning at 300 requests/s: 50.1, at most 50: DOES NOT HOLD",
        "requests/s with a p99 below 50 ms: 790, at least 800: DOES NOT HOLD",
        "p99 under the cost attack as a multiple of that before: 2, at most 2: holds",
        "CPU ms of one request, learned search: 1.5, at most 1: DOES NOT HOLD",
        "CPU ms of one request, search as the page, with facets: 2.4, at most 2.5: holds",
        "growth of the memory over the last nine tenths of 1,000,000 requests: 0.02, at most 0.1: holds",
        "feedback lost or damaged, and failed requests, by kill -9 10 times: 0, at most 0: holds",
    ]
    assert list(limits(found[:1])) == list(limits(found))[:1], "also of a run that was interrupted"


@pytest.mark.slow
def test_some_hostile_requests_are_all_answered_well(tmp_path):
    done = python_module("benchmarks.soak.fuzz", "--requests", "300", "--processes", "2",
                         "--output", str(tmp_path / "fuzz.json"))  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads((tmp_path / "fuzz.json").read_text())
    assert result["requests"] >= 300
    assert result["spoilt"]["requests"] >= 30
    assert result["bare"]["requests"] >= 30
    assert section(fuzz.markdown(result)).startswith("## Fuzz\n")


def test_feedback_that_is_lost_there_twice_or_changed_is_found(tmp_path):
    path = tmp_path / "f.sqlite"
    url = f"sqlite:///{path}"
    store = FeedbackStore(url)
    for name in ("a", "b"):
        store.add(Feedback(name, "judgment", "red car", "boat-red"))
    store.close()
    right = {name: {"query": "red car", "document": "boat-red"} for name in ("a", "b", "c")}
    assert feedback_faults(url, right, ["a", "b"]) == []
    assert feedback_faults(url, right, ["a", "b", "c"]) == ["lost: c"]
    other = right | {"b": {"query": "blue car", "document": "boat-red"}}
    assert feedback_faults(url, other, ["a"]) == ["not as it was said: b"]
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE copied AS SELECT * FROM sparserank_feedback")
    connection.execute("DROP TABLE sparserank_feedback")
    connection.execute("ALTER TABLE copied RENAME TO sparserank_feedback")
    connection.execute("INSERT INTO sparserank_feedback SELECT * FROM sparserank_feedback WHERE id = 'a'")
    connection.commit()
    connection.close()
    assert feedback_faults(url, right, ["a"]) == ["stored twice: a", "the numbers of feedback have gaps"]


def test_a_model_that_cannot_be_loaded_is_found(model):
    assert model_faults(model) == []
    for path in (f"{model}.index", f"{model}.versions/000001.index"):
        os.truncate(path, 100)
    (fault,) = model_faults(model)
    assert f"{model}.versions/000001.index" in fault
