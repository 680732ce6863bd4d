"""`search` and `explain` with --typos and --prefix."""

from __future__ import annotations

import math

import pytest

import sparserank as sr

from .calling import call, printed


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("forgiving") / "model.safetensors"
    sr.TextRanker("bm25").fit({"d1": "red apples", "d2": "a dishwasher", "d3": "the apricot"}).save(path)
    return path


def test_search_tells_what_it_corrected(capsys, model):
    said = printed(capsys, "search", model, "red dishwaser", "--typos")
    assert sorted(row["id"] for row in said["results"]) == ["d1", "d2"]
    assert said["corrections"] == [{"word": "dishwaser", "replacement": "dishwasher"}]
    assert "corrections" not in printed(capsys, "search", model, "red dishwaser")
    assert call("search", model, "dishwaser", "--typos") == 0
    assert "corrected: dishwaser → dishwasher" in capsys.readouterr().out


def test_search_completes_the_last_word(capsys, model):
    assert sorted(row["id"] for row in printed(capsys, "search", model, "ap", "--prefix")["results"]) == ["d1", "d3"]
    assert printed(capsys, "search", model, "ap")["results"] == []


def test_one_message_for_a_word_that_no_document_has(capsys, model):
    def lines(*arguments):
        assert call("search", model, *arguments) == 0
        return [line for line in capsys.readouterr().out.splitlines() if ":" in line or "→" in line]

    assert lines("Dishwaser", "--typos") == ["corrected: Dishwaser → dishwasher"]
    assert lines("red plum dishwa", "--prefix") == ["in no document: plum"]
    assert lines("plum dishwaser ap", "--typos", "--prefix") == [
        "corrected: dishwaser → dishwasher", "in no document: plum",
    ]  # fmt: skip
    assert lines("dishwaser") == ["in no document: dishwaser"]
    assert lines("xq", "--prefix") == ["in no document: xq"]


def test_explain_says_which_words_are_typos_and_completions(capsys, model):
    said = printed(capsys, "explain", model, "rde app", "d1", "--typos", "--prefix")
    assert [(pair["query"], pair["note"]) for pair in said["pairs"]] == [("app", "begins with app")]
    said = printed(capsys, "explain", model, "dishwaser", "d2", "--typos")
    assert [pair["note"] for pair in said["pairs"]] == ["typo of dishwasher"]
    assert math.isclose(sum(pair["contribution"] for pair in said["pairs"]), said["score"], rel_tol=1e-6)
    assert call("explain", model, "dishwaser", "d2", "--typos") == 0
    assert "typo of dishwasher" in capsys.readouterr().out


def test_synonyms_are_stored_by_train_and_tried_by_search(capsys, model, tmp_path):
    own, bad = tmp_path / "own.txt", tmp_path / "bad.txt"
    own.write_text("# fruit\nplum => apricot\n")
    bad.write_text("plum\n")
    said = printed(capsys, "search", model, "plum", "--synonyms", own)
    assert [row["id"] for row in said["results"]] == ["d3"]
    table = tmp_path / "docs.tsv"
    table.write_text("id\ttext\nd1\tred apples\nd3\tthe apricot\n")
    words = ["train", table, "--ranker", "bm25", "--output", tmp_path / "m.safetensors"]
    printed(capsys, *words, "--synonyms", own)
    said = printed(capsys, "search", tmp_path / "m.safetensors", "plum")
    assert [row["id"] for row in said["results"]] == ["d3"]
    (pair,) = printed(capsys, "explain", tmp_path / "m.safetensors", "plum", "d3")["pairs"]
    assert (pair["query"], pair["document"], pair["note"]) == ("plum", "apricot", "synonym of plum")
    assert call(*words, "--synonyms", bad) == 2
    assert f"{bad}:1: expected words separated by commas" in capsys.readouterr().err
