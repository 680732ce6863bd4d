"""The command line in other languages."""

from __future__ import annotations

import json

import pytest

import sparserank as sr
from sparserank.data.records import Collection, Documents
from sparserank.text_ranker.cross_validation import fit_bm25

from .calling import call

DOCS = {"d1": "日本語の文章です", "d2": "新しいオブジェクトを返します"}


@pytest.mark.parametrize(("asked", "found"), [("auto", "japanese"), ("japanese", "japanese")])
def test_train_detects_the_language_and_says_so(asked, found, tmp_path, capsys):
    rows = [{"_id": name, "title": "", "text": text} for name, text in DOCS.items()]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "日本"}\n')
    given = ("train", tmp_path, "--ranker", "bm25", "--language", asked, "-o", tmp_path / "m")
    assert call(*given, "--json") == 0
    assert json.loads(capsys.readouterr().out)["language"] == found
    assert [hit.id for hit in sr.load(tmp_path / "m").search("日本")] == ["d1"]
    assert call(*given) == 0
    assert ("detected language: japanese" in capsys.readouterr().out) == (asked == "auto")


def test_the_baseline_of_a_model_is_bm25_in_its_language():
    collection = Collection("small", Documents.of(DOCS), {}, {})
    japanese = sr.TextRanker("bm25", analyzer="japanese").fit(DOCS)
    assert fit_bm25(collection, japanese).lexical_.words == japanese.lexical_.words
    english = sr.TextRanker("bm25", analyzer=sr.Analyzer("english", ngrams=2)).fit(DOCS)
    assert fit_bm25(collection, english).lexical_.words == fit_bm25(collection).lexical_.words
