"""Ids that feedback could not name are refused when documents are indexed."""

from __future__ import annotations

import json

import pytest

import sparserank as sr
from sparserank.errors import DataError

from ..cli.calling import call


@pytest.mark.parametrize(
    ("doc_id", "message"),
    [
        ("x" * 513, r"document 2: an id has at most 512 characters; got 513, which begin with 'xxx"),
        ("a\0b", r"document 2: an id has no NUL character; got 'a\\x00b'"),
    ],
)
def test_an_id_that_does_not_fit_raises(doc_id, message, tmp_path, capsys):
    with pytest.raises(DataError, match=message):
        sr.TextRanker("bm25").fit({"d1": "red apples", doc_id: "green pears"})
    ranker = sr.TextRanker("bm25").fit({"d1": "red apples", "x" * 512: "green pears"})
    with pytest.raises(DataError, match="document 1: an id"):
        ranker.add({doc_id: "blue plums"})
    ranker.save(tmp_path / "model")
    documents = tmp_path / "corpus.jsonl"
    documents.write_text(
        json.dumps({"_id": "d1", "text": "x"}) + "\n" + json.dumps({"_id": doc_id, "text": "y"}) + "\n"
    )
    (tmp_path / "queries.jsonl").write_text("")
    code = call("index", tmp_path / "model", tmp_path, "--output", tmp_path / "new.index")
    told = capsys.readouterr().err
    assert (code, "Traceback" in told) == (2, False)
    assert "an id has" in told.splitlines()[-1]
