"""`sparserank model` as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest

import sparserank as sr
from sparserank.versions import VersionRegistry

from ..text_ranker.test_learning import world
from .calling import call, printed


@pytest.fixture
def model(tmp_path):
    """Two versions: the second looks for boats where cars are asked for."""
    sr.TextRanker(max_pairs=200).fit(*world()).save(tmp_path / "model")
    versions = VersionRegistry.open(tmp_path / "model")
    versions.add(versions.load().set_pair("car", "sail", 2.0), "someone likes sails", learned_through=4)
    return tmp_path / "model"


def test_list_names_every_version_and_the_one_that_is_served(capsys, model):
    found = printed(capsys, "model", "list", model)
    assert found["current"] == 2
    assert [(one["number"], one["parent"], one["why"]) for one in found["versions"]] == [
        (1, None, "initial model file"),
        (2, 1, "someone likes sails"),
    ]
    assert call("model", "list", model) == 0
    out = capsys.readouterr().out
    assert "* 2" in out
    assert "someone likes sails" in out
    assert found["trial"] is None


def test_list_marks_the_version_on_trial(capsys, model):
    assert printed(capsys, "model", "candidate", model, "--version", 1, "--share", 0.25)["candidate"] == 1
    trial = printed(capsys, "model", "list", model)["trial"]
    assert (trial["version"], trial["share"]) == (1, 0.25)
    assert call("model", "list", model) == 0
    assert "+ 1" in capsys.readouterr().out


def test_diff_shows_what_was_learned_since_the_parent(capsys, model):
    before = sr.load(model).model_.named_pairs().get(("car", "sail"), 0.0)
    found = printed(capsys, "model", "diff", model)
    assert (found["before"], found["after"]) == (1, 2)
    (change,) = found["changes"]
    assert (change["query"], change["document"]) == ("car", "sail")
    assert (change["before"], change["after"]) == (before, pytest.approx(2.0))
    assert call("model", "diff", model, "--from", 1, "--to", 2) == 0
    assert "+2.000" in capsys.readouterr().out
    assert call("model", "diff", model, "--from", 2, "--to", 2) == 0
    assert capsys.readouterr().out == "no pair differs between versions 2 and 2\n"


def test_rollback_serves_another_version(capsys, model):
    found = printed(capsys, "model", "rollback", model)
    assert (found["before"], found["current"], found["version"]["number"]) == (2, 1, 1)
    assert VersionRegistry.open(model).current().number == 1
    assert call("model", "rollback", model, "--to", 2) == 0
    assert capsys.readouterr().out.startswith("version 2 is served, made 20")
    assert VersionRegistry.open(model).current().number == 2


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["rollback", "--to", "9"], "there is no version 9; the versions are: 1, 2"),
        (["diff", "--to", "1"], "version 1 has no parent; name a version with --from"),
        (["diff", "--from", "7"], "there is no version 7; the versions are: 1, 2"),
    ],
)
def test_a_version_that_is_not_there_is_one_line_on_stderr(capsys, model, words, complaint):
    command, *rest = words
    assert call("model", command, model, *rest) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"sparserank: {complaint}\n")


def test_a_file_that_is_no_model_is_rejected_by_name(capsys, tmp_path):
    (tmp_path / "noise").write_bytes(b"noise")
    assert call("model", "list", tmp_path / "noise") == 2
    assert "noise: truncated, damaged or not a model file" in capsys.readouterr().err


def test_a_mistyped_name_is_one_line_and_leaves_nothing_behind(capsys, tmp_path):
    assert call("model", "list", tmp_path / "nosuch") == 2
    assert capsys.readouterr() == ("", f"sparserank: {tmp_path / 'nosuch'}: no such file\n")
    assert list(tmp_path.iterdir()) == []


def test_to_ask_or_to_go_back_is_not_to_serve_what_was_trained_since(capsys, model):
    sr.TextRanker("bm25").fit(world()[0]).save(model)
    assert printed(capsys, "model", "list", model)["current"] == 2
    assert printed(capsys, "model", "diff", model)["after"] == 2
    assert printed(capsys, "model", "rollback", model)["current"] == 1
    assert [one.number for one in VersionRegistry.open(model, register=False).list()] == [1, 2]
    assert VersionRegistry.open(model).current().number == 3


def test_the_parent_of_an_added_version_is_the_one_that_was_served_before(capsys, model, tmp_path):
    sr.load(model).set_pair("car", "boat", 3.0).save(tmp_path / "new")
    assert call("model", "rollback", model, "--to", 1) == 0
    assert printed(capsys, "model", "add", model, tmp_path / "new")["version"]["parent"] == 1
    found = printed(capsys, "model", "diff", model)
    assert (found["before"], found["after"], found["changes"][0]["document"]) == (1, 3, "boat")
    assert printed(capsys, "model", "rollback", model)["current"] == 1
    sr.load(model).set_pair("car", "boat", 4.0).save(model)
    assert printed(capsys, "model", "add", model)["version"]["parent"] == 1
    assert printed(capsys, "model", "rollback", model)["current"] == 1
    assert [VersionRegistry.open(model).root(number) for number in (1, 2, 3, 4)] == [1, 1, 3, 4]


@pytest.mark.parametrize("command", ["list", "diff"])
def test_reading_the_versions_writes_nothing(capsys, tmp_path, command):
    sr.TextRanker("bm25").fit({"d1": "red apples"}).save(tmp_path / "model")
    (tmp_path / "noise").write_bytes((tmp_path / "model").read_bytes()[:100])
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert call("model", "list", tmp_path / "model") == 0
    assert "* 1" in capsys.readouterr().out
    assert call("model", "diff", tmp_path / "model") == 2
    assert "version 1 has no parent" in capsys.readouterr().err
    assert call("model", command, tmp_path / "noise") == 2
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_rollback_goes_by_another_index_where_it_is_named(capsys, model):
    index, other = model.with_name("model.index"), model.with_name("other.index")
    index.rename(other)
    index.write_bytes(b"damaged")
    Path(f"{model}.versions/000001.index").unlink(missing_ok=True)  # else the copy would do
    assert call("model", "rollback", model) == 2
    assert str(index) in capsys.readouterr().err
    assert printed(capsys, "model", "rollback", model, "--index", other)["current"] == 1
