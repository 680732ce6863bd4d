"""`sparserank reproduce` as a user types it."""

from __future__ import annotations

import json

import pytest

from sparserank.experiments import chen2010, datasets

from .calling import call, unexpected


def test_json_is_one_object_with_the_tables_and_nothing_else(capsys, tmp_path):
    code = call("reproduce", "chen2010", "--dataset", "digits", "--steps", 200, "--output", tmp_path / "new", "--json")
    out, err = capsys.readouterr()
    assert (code, err) == (0, "digits\n")
    said = json.loads(out)
    assert said["dataset"] == "digits"
    assert said.keys() >= {"table1", "table2", "table3", "figure1", "differs"}
    assert said == json.loads((tmp_path / "new/chen2010-digits.json").read_text())
    assert {path.suffix for path in (tmp_path / "new").iterdir()} == {".json", ".md", ".html", ".png"}


def test_people_get_table_2_the_words_that_are_unknown_and_where_the_files_are(capsys, tmp_path):
    words = ("--words", "r3c4, zebra")
    assert call("reproduce", "chen2010", "--dataset", "digits", "--steps", 200, "--output", tmp_path, *words) == 0
    out = capsys.readouterr().out
    assert "Sparse-R" in out
    assert "unknown words: zebra" in out
    assert "figure1-digits.png" in out


def test_an_ablation_changes_one_setting_at_a_time(capsys, tmp_path):
    words = ("--dataset", "digits", "--steps", 200, "--output", tmp_path, "--ablation")
    assert call("reproduce", "chen2010", *words) == 0
    out = capsys.readouterr().out
    assert "twice the steps" in out
    said = json.loads((tmp_path / "chen2010-digits.json").read_text())
    rows = {(row["method"], row["change"]): row for row in said["ablation"]}
    unchanged = {name: row for (name, change), row in rows.items() if change == "as in Table II"}
    for method in ("Identity", "SGD (decaying rate)", "Sparse-R"):
        (in_table,) = (row for row in said["table2"] if row["method"] == method)
        assert unchanged[method]["map"] == in_table["map"]
    assert rows["SGD (decaying rate)", "twice the steps"]["map"] != unchanged["SGD (decaying rate)"]["map"]
    assert "## Ablation" in (tmp_path / "chen2010-digits.md").read_text()
    sweep = said["rate_sweep"]
    assert "lowest objective on training triples" in " ".join(out.split())
    assert sweep["best_c"] == min(sweep["rows"], key=lambda row: row["objective"])["c"]
    assert ("Sparse-R+", "one pass: as many steps as Sparse-R") in rows


def test_all_is_one_object_a_set_of_the_paper(capsys, tmp_path, monkeypatch):
    small = chen2010.reproduce("digits", steps=100)
    monkeypatch.setattr(chen2010, "reproduce", lambda name, **settings: small | {"dataset": name})
    assert call("reproduce", "chen2010", "--output", tmp_path, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert tuple(said["datasets"]) == datasets.PAPER_DATASETS
    assert (tmp_path / "chen2010-rcv1.html").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("chen2010", "--dataset", "cifar", "--output", "."), "'20newsgroups', 'mnist', 'rcv1', 'digits'"),
        (("chen2010", "--dataset", "digits", "--output", "/dev/null/inside"), "/dev/null/inside: no folder"),
        (("chen2010", "--dataset", "digits", "--output", ".", "--steps", "0"), "'steps'"),
        (("chen2010", "--dataset", "digits", "--output", ".", "--seed", "-1"), "'seed'"),
        (("chen1066", "--output", "."), "chen1066"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(capsys, tmp_path, monkeypatch, words, complaint):
    monkeypatch.chdir(tmp_path)
    assert call("reproduce", *words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err
    assert len(unexpected(err)) == 1
    assert list(tmp_path.iterdir()) == []


def test_progress_is_shown_on_a_terminal(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    assert call("reproduce", "chen2010", "--dataset", "digits", "--steps", 100, "--output", tmp_path, "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["steps"] == 100
    assert "digits: Sparse-R" in err
    assert "100/100 steps" in err
    assert "violated" in err
