"""Rows of queries and documents, written out; columns that stay; a file and back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparserank.data.formats.tensors import read_tensors, write_tensors
from sparserank.text import Analyzer, TextFeatures
from sparserank.text_ranker.query_vocabulary import QueryVocabulary, document_rows

TEXTS = ["red apple", "green apple pie", "apple", ""]
TRAINING = ["red apple red", "zebra apple", "unheard of"]


def features(weight="bm25", **options):
    return TextFeatures(weight, unit=False, **options).fit(TEXTS)


@pytest.fixture(params=["bm25", "tfidf", "sublinear"])
def words(request):
    return QueryVocabulary.from_texts(features(request.param), TRAINING)


def idf(df, weight):
    n = len(TEXTS)
    return math.log(1 + (n - df + 0.5) / (df + 0.5)) if weight == "bm25" else 1 + math.log((1 + n) / (1 + df))


def row(words, text):
    return words.encode([text]).toarray()[0]


def by_word(words, text):
    return {words.words[j]: value for j, value in enumerate(row(words, text).tolist()) if value}


def test_columns_are_the_documents_words_then_what_only_queries_have(words):
    assert words.words == (
        *("apple", "green", "pie", "red"),
        *("apple red", "of", "red apple", "unheard", "unheard of", "zebra", "zebra apple"),
    )
    assert [words.column(word) for word in ("apple", "zebra", "Zebra", "plum")] == [0, 9, None, None]


def test_a_row_is_counts_by_the_root_of_idf_at_unit_length(words):
    weight = words.documents.weight
    raw = {
        "red": 2 * math.sqrt(idf(1, weight)),
        "apple": math.sqrt(idf(3, weight)),
        "red apple": 0.7 * math.sqrt(idf(0, weight)),
        "apple red": 0.7 * math.sqrt(idf(0, weight)),
    }
    length = math.sqrt(sum(value**2 for value in raw.values()))
    found = by_word(words, "Red apple, RED!")
    assert found == pytest.approx({word: value / length for word, value in raw.items()}, rel=1e-5)


def test_a_word_that_no_document_has_weighs_as_the_rarest(words):
    weight = words.documents.weight
    zebra, apple = math.sqrt(idf(0, weight)), math.sqrt(idf(3, weight))
    found = by_word(words, "zebra and apple")
    assert found["zebra"] / found["apple"] == pytest.approx(zebra / apple, rel=1e-5)


def test_unknown_words_count_for_nothing(words):
    assert_array_equal(row(words, "plum apple cherry"), row(words, "apple"))
    found = words.encode(["plum cherry", "", "apple"])
    assert found.dtype == np.float32
    assert np.diff(found.indptr).tolist() == [0, 0, 1]
    assert words.encode([]).shape == (0, len(words.words))


def test_more_queries_add_columns_behind_those_that_were_there(words):
    more = words.extend(["kiwi apple", "zebra", "banana"])
    assert more.words == (*words.words, "banana", "kiwi", "kiwi apple")
    assert words.extend(["zebra apple"]) == words
    for text in ("red apple", "zebra", "unheard of"):
        assert_array_equal(row(more, text)[: len(words.words)], row(words, text))


def test_no_query_adds_nothing():
    assert QueryVocabulary.from_texts(features(), []).words == features().words_


def test_words_are_counted_as_the_documents_are():
    stemming = Analyzer(stem="english", stop_words="english")
    words = QueryVocabulary.from_texts(features(analyzer=stemming), ["the apples of zebras"])
    assert words.extra == ("appl zebra", "zebra")
    assert by_word(words, "Apples") == {"appl": 1.0}


def test_documents_with_neighbours_of_their_own_keep_theirs():
    words = QueryVocabulary.from_texts(features(analyzer=Analyzer(ngrams=3)), ["green apple pie crust"])
    assert {"apple pie crust", "pie crust", "crust"} <= set(words.extra)
    assert "green apple pie" not in words.extra
    found = by_word(words, "red apple")  # one document has "red", and the same one "red apple"
    assert found["red apple"] / found["red"] == pytest.approx(0.7, rel=1e-5)


def test_a_file_brings_back_the_same_columns(tmp_path, words):
    words = words.extend(["naïve 🙂x Æsop"])
    write_tensors(tmp_path / "w.safetensors", "test", {}, words.state())
    back = QueryVocabulary.from_file(words.documents, read_tensors(tmp_path / "w.safetensors"))
    assert back == words
    text = "naïve Æsop red apple zebra"
    assert_array_equal(row(back, text), row(words, text))


def test_no_word_of_queries_alone_survives_a_file_too(tmp_path):
    words = QueryVocabulary(features(), ())
    write_tensors(tmp_path / "w.safetensors", "test", {}, words.state())
    assert QueryVocabulary.from_file(words.documents, read_tensors(tmp_path / "w.safetensors")) == words


@pytest.mark.parametrize("weight", ["bm25", "tfidf"])
def test_document_rows_are_lexical_weights_by_the_root_of_idf_at_unit_length(weight):
    made = features(weight)
    lexical = made.transform(TEXTS)
    before = lexical.toarray()
    expected = before / np.sqrt([idf(df, weight) for df in (3, 1, 1, 1)])
    length = np.linalg.norm(expected, axis=1, keepdims=True)
    found = document_rows(made, lexical)
    assert found.dtype == np.float32
    assert_allclose(found.toarray(), expected / np.where(length > 0, length, 1.0), rtol=1e-5)
    assert_array_equal(lexical.toarray(), before)
