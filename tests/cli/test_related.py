"""`sparserank related` as a user types it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

import sparserank as sr

from .calling import call

WORDS = ("ice", "hockey", "puck", "piano")
W = csr_array(np.array([[1.0, 0.5, 0, 0], [0.25, 2.0, 3.0, -1.0], [0, 0, 1.0, 0], [0, 0, 0, 0]], np.float32))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    nothing, prefs = csr_array((2, 4), dtype=np.float32), sr.Preferences.from_triples([0], [0], [1])
    for name, words in (("pairs", WORDS), ("nameless", None)):
        ranker = sr.BilinearRanker(init=W, max_iter=0)
        ranker.fit(nothing, nothing, prefs, query_words=words, document_words=words).save(folder / name)
    sr.TextRanker().fit({"d": "ice hockey"}).save(folder / "text")
    (folder / "noise").write_bytes(b"not a model")
    return folder


def test_json_is_what_the_contract_says(capsys, models):
    assert call("related", models / "pairs", "hockey", "--json") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out) == {
        "word": "hockey",
        "related": [
            {"word": "puck", "weight": 3.0},
            {"word": "hockey", "weight": 2.0},
            {"word": "ice", "weight": 0.25},
            {"word": "piano", "weight": -1.0},
        ],
    }


def test_k_is_how_many(capsys, models):
    assert call("related", models / "pairs", "hockey", "-k", 1, "--json") == 0
    assert [row["word"] for row in json.loads(capsys.readouterr().out)["related"]] == ["puck"]


def test_people_get_a_table_or_a_sentence(capsys, models):
    assert call("related", models / "pairs", "hockey") == 0
    assert "puck" in capsys.readouterr().out
    assert call("related", models / "pairs", "piano") == 0
    assert capsys.readouterr().out == "'piano' has no pairs: its row of W is empty\n"
    assert call("related", models / "pairs", "piano", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"word": "piano", "related": []}


def test_columns_without_names_are_asked_for_by_number(capsys, models):
    assert call("related", models / "nameless", "1", "-k", 1, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"word": "1", "related": [{"word": "2", "weight": 3.0}]}


def test_it_has_help_that_teaches(capsys):
    assert call("related", "--help") == 0
    assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("pairs", "zebra"), "'zebra' is not among the 4 query words"),
        (("pairs", "Hocky"), "did you mean 'hockey'?"),
        (("text", "ice"), "this bm25 model has no word pairs"),
        (("text.index", "ice"), "expected a model with word pairs, found one of kind 'index'"),
        (("noise", "ice"), "truncated, damaged or not a model file"),
        (("none", "ice"), "no such file"),
        (("pairs", "ice", "-k", "0"), "-k"),
        (("nameless", "ice"), "the columns have no names"),
        (("nameless", "9"), "the numbers 0 to 3; got 9"),
        (("pairs",), "WORD"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(capsys, models, words, says):
    assert call("related", models / words[0], *words[1:]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1
