"""Names of documents: which queries they are, and that a model ranks them by its lexical score alone."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

import sparserank as sr
from sparserank.text import TextFeatures
from sparserank.text_ranker import document_names, model_selection
from sparserank.text_ranker.document_names import DocumentNames

from ..motors import learned_anyway

THINGS = (("car", "automobile"), ("bike", "bicycle"), ("ship", "boat"))
COLOURS = ("red", "green", "blue", "white", "black", "brown", "pink", "gray")
DOCS = {f"{thing}-{c}": {"title": f"{c}.{thing}", "text": f"about {c} {thing}"} for _, thing in THINGS for c in COLOURS}
DOCS |= {f"{word} museum": {"title": f"{word} museum", "text": "opening hours"} for word, _ in THINGS}
QUERIES = {f"{word}-{c}": f"{c} {word}" for word, _ in THINGS for c in COLOURS}
QRELS = {f"{word}-{c}": {f"{thing}-{c}": 1} for word, thing in THINGS for c in COLOURS}


@pytest.fixture(scope="module")
def ranker():
    return sr.TextRanker(max_pairs=200).fit(DOCS, QUERIES, QRELS)


def shares(names, features, *texts):
    found = names.shares(features, texts).tolist()
    assert [names.has(features.short_words(text)) for text in texts] == [share > 0.0 for share in found]
    return found


def test_names_are_titles_their_ends_and_beginnings_in_order():
    features = TextFeatures().fit(["numpy linalg solve", "other words"])
    names = DocumentNames.of(features, ["numpy.linalg.solve"], ["solves a system"])
    third = pytest.approx(1 / 3, abs=1e-6)
    found = shares(names, features, "numpy.linalg.solve", "linalg solve", "Solve", "numpy", "numpy solve", "system")
    assert found == [1.0, pytest.approx(2 / 3, abs=1e-6), third, third, 0.0, 0.0]
    assert shares(names.at_least(0.5), features, "linalg solve", "solve") == [pytest.approx(2 / 3, abs=1e-6), 0.0]


def test_a_text_without_title_has_its_openings_as_names():
    features = TextFeatures().fit(["one two three four five"])
    names = DocumentNames.of(features, [""], ["one two three four five"])
    found = shares(names, features, "one", "one two", "one two three", "one two three four", "two three four five")
    np.testing.assert_allclose(found, [0.0, 0.2, 0.5, 1.0, 0.0])


def test_parts_join_to_the_names_of_all_documents_in_any_order():
    titles = ["red apple", "green apple", "apple", "pear tree"]
    features = TextFeatures().fit(titles)
    whole = DocumentNames.of(features, titles, titles)
    parts = [DocumentNames.of(features, [title], [title]) for title in reversed(titles)]
    joined = DocumentNames.join(parts)
    np.testing.assert_array_equal(joined.digests, whole.digests)
    np.testing.assert_array_equal(joined.share, whole.share)


@pytest.mark.parametrize("most", [1, 3, 5])
def test_joining_parts_step_by_step_keeps_the_names_that_one_join_keeps(monkeypatch, most):
    """Each step may drop names beyond the limit, because a name that all documents keep is kept in each part."""
    monkeypatch.setattr(document_names, "MAX_NAMES", most)
    titles = ["red apple", "green apple tree", "apple", "pear tree", "tree", "red pear", "green"]
    features = TextFeatures().fit(titles)
    parts = [DocumentNames.of(features, [title], [title]) for title in titles]
    left = reduce(lambda one, other: DocumentNames.join([one, other]), parts)
    right = reduce(lambda one, other: DocumentNames.join([other, one]), reversed(parts))
    for one in (left, right):
        np.testing.assert_array_equal(one.digests, DocumentNames.of(features, titles, titles).digests)
        np.testing.assert_array_equal(one.share, DocumentNames.of(features, titles, titles).share)
    assert len(left.digests) == most


def test_a_name_has_exactly_the_lexical_score_and_other_queries_use_pairs(ranker):
    bm25 = sr.TextRanker("bm25").fit(DOCS)
    assert ranker.model_.n_pairs > 0
    for text in ("car museum", "boat"):
        found, expected = ([(hit.id, hit.score) for hit in one.search(text, k=5)] for one in (ranker, bm25))
        assert found == expected
    assert {hit.id for hit in ranker.search("violet car", k=30)} > {hit.id for hit in bm25.search("violet car", k=30)}


def test_numpy_sort_finds_numpy_sort_although_users_who_sort_find_numpy_lexsort():
    texts = {
        "numpy.sort": "Return a copy of an array in order",
        "numpy.lexsort": "Perform an indirect stable order using a sequence of keys",
        "numpy.mean": "Compute the arithmetic average along an axis",
        "numpy.dot": "Product of two arrays",
    }
    docs = {name: {"title": name, "text": text} for name, text in texts.items()}
    found = {"sort rows": "lexsort", "sort tables": "lexsort", "sort names": "lexsort", "scalar": "dot"}
    found |= {"expected value": "mean", "expected size": "mean"}
    qrels = {query: {f"numpy.{name}": 1} for query, name in found.items()}
    ranker = learned_anyway(docs, {query: query for query in found}, qrels)
    assert ranker.search("sort rows")[0].id == "numpy.lexsort"
    assert [ranker.search(text)[0].id for text in ("numpy.sort", "sort")] == ["numpy.sort"] * 2
    ranker.model_ = replace(ranker.model_, names=None)
    assert ranker.search("numpy.sort")[0].id == "numpy.lexsort"


def test_one_query_and_many_agree_on_names(ranker):
    texts = ["car museum", "red car", "museum"]
    batch = ranker.model_.encode_queries(texts)
    for i, text in enumerate(texts):
        one = ranker.model_.encode_queries([text])
        np.testing.assert_array_equal(one.words.toarray()[0], batch.words.toarray()[i])


def test_explanations_of_names_have_no_learned_pair(ranker):
    explanation = ranker.explain("car museum", "car museum")
    assert all(pair.query == pair.document for pair in explanation.pairs)


def test_judged_queries_are_no_names(ranker):
    again = sr.TextRanker(max_pairs=200).fit(DOCS, QUERIES | {"m": "car museum"}, QRELS | {"m": {"boat-red": 1}})
    features = ranker.lexical_.features
    assert shares(ranker.model_.names, features, "car museum") == [1.0]
    assert shares(again.model_.names, features, "car museum") == [0.0]


def test_a_pinned_pair_counts_for_names(ranker):
    model = ranker.model_
    pinned = model.with_constraints(model.constraints.pin(("museum", "boat"), 2.0))
    assert model.encode_queries(["car museum"]).words.nnz == 0
    assert pinned.encode_queries(["car museum"]).words.nnz > 0
    assert len(pinned.query_rows("car museum")[1].indices) > 0


def test_names_are_stored_in_the_model_file(ranker, tmp_path):
    ranker.save(tmp_path / "model.safetensors")
    names = sr.load(tmp_path / "model.safetensors").model_.names
    np.testing.assert_array_equal(names.digests, ranker.model_.names.digests)
    assert shares(names, ranker.lexical_.features, "car museum", "violet car") == [1.0, 0.0]


def test_names_use_pairs_where_the_lexical_score_alone_costs_held_out_queries(monkeypatch):
    titles = {id: {"title": doc["text"], "text": ""} for id, doc in DOCS.items()}
    titles |= {f"page {q}": {"title": text, "text": "empty"} for q, text in QUERIES.items()}  # each query is a title
    ranker = sr.TextRanker(max_pairs=200).fit(titles, QUERIES, QRELS)
    assert ranker.model_.n_pairs > 0
    assert ranker.model_.names is None
    assert ranker.model_.info["name_share"] is None
    monkeypatch.setattr(model_selection, "NAME_TOLERANCE", 1.0)
    free = sr.TextRanker(max_pairs=200).fit(titles, QUERIES, QRELS)
    assert free.model_.info["name_share"] == min(model_selection.NAME_SHARES)


def test_a_change_by_more_judgments_makes_a_name_a_judged_query(ranker, tmp_path):
    ranker.save(tmp_path / "model.safetensors")
    other = sr.load(tmp_path / "model.safetensors")
    other.index_ = ranker.index_
    other.partial_fit(None, {"m": "car museum"}, {"m": {"boat-red": 1}})
    assert shares(other.model_.names, other.lexical_.features, "car museum") == [0.0]
    assert replace(other.model_, names=None).encode_queries(["car museum"]).words.nnz > 0
