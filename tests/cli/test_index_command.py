"""`sparserank index` and `explain --against`: documents come and go, both plans, two documents compared."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sparserank.data import write_beir
from sparserank.data.records import Collection, Documents
from sparserank.search import Index

from ..motors import DOCS, QRELS, QUERIES, learned_anyway
from .calling import call, printed


@pytest.fixture
def model(tmp_path):
    learned_anyway(DOCS, QUERIES, QRELS).save(tmp_path / "m")
    return tmp_path / "m"


def beir(path, docs):
    write_beir(path, Collection("more", Documents.of(docs), {"q": "car"}, {"test": {"q": {next(iter(docs)): 1.0}}}))
    return path


def test_documents_are_added_replaced_and_removed_in_the_index_there_is(capsys, model, tmp_path):
    more = beir(tmp_path / "more", {"b": "car", "e": "car car"})
    said = printed(capsys, "index", model, more, "--update", "--remove", "a")
    assert (said["documents"], said["index"]) == (4, f"{model}.index")
    found = [row["id"] for row in printed(capsys, "search", model, "car")["results"]]
    assert sorted(found) == ["b", "d", "e"]
    assert printed(capsys, "index", model, "--remove", "e")["documents"] == 3
    assert call("index", model, "--remove", "zz") == 2
    assert "no document 'zz'" in capsys.readouterr().err
    assert len(Index.load(f"{model}.index")) == 3


def test_metadata_is_indexed_and_updated(capsys, model, tmp_path):
    docs = {"a": {"text": "car engine", "metadata": {"n": 1}}, "b": {"text": "boat engine", "metadata": {"n": 2}}}
    assert printed(capsys, "index", model, beir(tmp_path / "new", docs))["documents"] == 2
    more = {"b": {"text": "boat engine", "metadata": {"n": 3}}, "e": {"text": "engine", "metadata": {"n": 4}}}
    assert printed(capsys, "index", model, beir(tmp_path / "more", more), "--update")["documents"] == 3
    found = printed(capsys, "search", model, "engine", "--filter", "n>=2", "--facets", "n")
    assert {row["id"]: row["metadata"] for row in found["results"]} == {"b": {"n": 3}, "e": {"n": 4}}
    assert found["facets"] == {"n": {"3": 1, "4": 1}}


def test_fields_are_listed_and_those_that_the_model_does_not_search_are_named(capsys, caplog, model, tmp_path):
    (tmp_path / "more.csv").write_text("id,text,year,notes\ne,car engine,1999,it still runs\nf,boat,2001,\n")
    not_searched = "not searched: notes in 1 document (the model searches title, text)"
    for option in ("--update",), ():
        said = printed(capsys, "index", model, tmp_path / "more.csv", *option)
        assert (said["fields"], said["metadata"]) == ({"title": 1.0, "text": 1.0}, ["notes", "year"])
        assert caplog.messages == [not_searched]
        caplog.clear()
    assert call("index", model, tmp_path / "more.csv") == 0
    assert capsys.readouterr().out.endswith("\nfields: title, text; metadata: notes, year\n")
    caplog.clear()
    folder = beir(tmp_path / "unseen", {"e": {"text": "car engine", "notes": "it still runs"}})
    assert printed(capsys, "evaluate", model, folder, "--split", "test")["measures"]
    assert caplog.messages == [not_searched]


def test_documents_are_expanded_when_that_is_asked_for(capsys, model, tmp_path):
    folder = beir(tmp_path / "same", DOCS)
    before = printed(capsys, "search", model, "motor boat")
    assert printed(capsys, "index", model, folder, "--plan", "documents")["expanded"]
    assert Index.load(f"{model}.index").expansion is not None
    assert printed(capsys, "search", model, "motor boat") == before
    assert not printed(capsys, "index", model, "--remove", "a", "--plan", "query")["expanded"]
    assert Index.load(f"{model}.index").expansion is None
    assert not printed(capsys, "index", model, folder, "--plan", "query")["expanded"]
    assert printed(capsys, "index", model, folder)["expanded"] in (True, False)
    assert printed(capsys, "search", model, "motor boat") == before
    assert call("index", model, folder, "--plan", "documents") == 0
    assert "(documents expanded)" in capsys.readouterr().out


def test_nothing_to_do_is_said_so(capsys, model, tmp_path):
    assert call("index", model) == 2
    assert "give DATA to index" in capsys.readouterr().err
    assert call("index", model, beir(tmp_path / "more", DOCS), "--remove", "a") == 2
    assert "say --update as well" in capsys.readouterr().err


def test_of_two_who_change_an_index_at_once_neither_loses_documents(model, tmp_path):
    """Real processes: each reads the index, adds one document and writes it."""
    command = [sys.executable, "-m", "sparserank", "index", model, "--update", "--plan", "query"]
    new = [beir(tmp_path / f"more{i}", {f"new{i}": "car"}) for i in range(4)]
    running = [subprocess.Popen([*command, one], stdout=subprocess.DEVNULL) for one in new]
    assert [one.wait(120) for one in running] == [0, 0, 0, 0]
    assert {"new0", "new1", "new2", "new3", *DOCS} == set(Index.load(f"{model}.index").documents.ids)


def test_two_documents_are_compared(capsys, model):
    said = printed(capsys, "explain", model, "motor", "a", "--against", "c")
    assert said["first"]["score"] > said["second"]["score"]
    assert sum(pair["difference"] for pair in said["pairs"]) == pytest.approx(said["difference"], abs=1e-6)
    assert said["swap"]
    assert call("explain", model, "motor", "a", "--against", "c") == 0
    assert "the two documents would swap without: motor" in capsys.readouterr().out
    assert call("explain", model, "nothing", "d", "--against", "c") == 0
    assert "removing pairs cannot swap" in capsys.readouterr().out
