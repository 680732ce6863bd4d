"""The real Tantivy searches the documents of a ranker, with queries that learned pairs expand."""

from __future__ import annotations

import pytest

import sparserank as sr
from sparserank.errors import ConfigError, DataError

from ..fruits import ENGLISH, LATIN, fruits

pytest.importorskip("tantivy", reason="pip install 'tantivy>=0.22'")
from sparserank.integrations.tantivy import TantivySearch


@pytest.fixture(scope="module")
def ranker():
    data = fruits()
    return sr.TextRanker(loss="squared").fit(data.documents, data.queries, data.qrels["train"])


def test_pairs_find_words_that_the_query_lacks(ranker):
    search = TantivySearch(ranker)
    for latin, english in zip(LATIN, ENGLISH, strict=True):
        assert search.search(latin, pairs=False) == []
        found = search.search(latin, 12)
        assert {ranker.index_.title_of(doc) for doc, _ in found} == {english}
        assert next(iter(search.boosts(latin))) == ranker.normalize(english)
    assert search.search("nothing known") == []


def test_the_ranking_is_near_that_of_the_model(ranker):
    data = fruits()
    search = TantivySearch(ranker)
    qrels = data.qrels["train"]
    theirs = {query: dict(search.search(data.queries[query], 10)) for query in qrels}
    figures = [
        sr.evaluation.evaluate_run(run, qrels, "nDCG@10").mean() for run in (theirs, ranker.run(data.queries, 10))
    ]
    assert figures[0] > figures[1] - 0.02


def test_a_word_in_any_searched_field_is_found():
    docs = {
        "d1": {"title": "Apples", "text": "red and sweet", "tags": ["malus", "orchard tree"], "notes": "a draft"},
        "d2": {"title": "Pears", "text": "green and sour", "tags": ["pyrus"], "notes": "a final text"},
    }
    weights = {"title": 2.0, "tags": 1.5, "notes": 0.0}
    ranker = sr.TextRanker("bm25", lexical=sr.BM25(field_weights=weights)).fit(docs)
    search = TantivySearch(ranker)
    for text, wanted in (("malus", ["d1"]), ("orchard", ["d1"]), ("pyrus", ["d2"]), ("pears", ["d2"]), ("draft", [])):
        assert [doc_id for doc_id, _ in search.search(text)] == wanted
        assert [hit.id for hit in ranker.search(text)] == wanted


def test_the_index_may_be_a_folder(ranker, tmp_path):
    search = TantivySearch(ranker, tmp_path)
    assert any(tmp_path.iterdir())
    assert len(search.search("red apple", 5)) == 5
    for folder in (tmp_path, tmp_path / "missing"):  # documents would be there twice
        with pytest.raises(DataError, match="must be an empty folder"):
            TantivySearch(ranker, folder)
    with pytest.raises(ConfigError, match="k"):
        search.search("red", 0)
