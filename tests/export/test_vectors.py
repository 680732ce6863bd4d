"""Terms and weights: names that cannot be mistaken, one inner product, numbers that come back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparserank as sr
from sparserank.errors import ConfigError, DataError, ModelError, NotFitted
from sparserank.export import Vectors, example_query, vectors_of
from sparserank.export.impacts import Impacts
from sparserank.export.stages import SignedQuery
from sparserank.export.vectors import short, term_name

from .readers import term_word
from .worlds import exact, vectors_and_queries, world

PRINTED = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(PRINTED, st.booleans())
def test_a_name_says_its_word_and_column_and_has_neither_dots_nor_blanks(word, learned):
    name = term_name(word, learned)
    assert term_word(name) == (word, learned)
    assert "." not in name
    assert name.split() == [name]
    assert not set(name) & set("\"'\\")


def test_the_score_of_a_ranker_is_one_inner_product_of_exported_weights():
    ranker, queries = world(1)
    vectors = vectors_of(ranker)
    for text in queries.values():
        found = [(hit.id, hit.score) for hit in ranker.search(text, 10)]
        assert [doc for doc, _ in found] == [doc for doc, _ in exact(vectors, text)]
        np.testing.assert_allclose([s for _, s in found], [s for _, s in exact(vectors, text)], rtol=1e-5)


def test_queries_have_signs_documents_do_not_and_terms_no_document_has_are_left_out():
    vectors, queries = vectors_and_queries(2)
    Q = vectors.queries(queries.values())
    assert Q.data.min() < 0.0 < Q.data.max()
    assert vectors.matrix.data.min() > 0.0
    assert (vectors.largest[Q.indices] > 0.0).all()
    assert vectors.query("zzzz") == {}
    assert len(set(vectors.names)) == len(vectors.names) == vectors.index.n_terms


def test_names_and_numbers_do_not_depend_on_the_documents():
    ranker, _ = world(3)
    fewer = ranker.over({"a": "alkan", "b": "belur"})
    assert vectors_of(fewer).names == vectors_of(ranker).names


def test_neighbouring_words_are_terms_of_their_own():
    ranker = sr.TextRanker("bm25", analyzer=sr.Analyzer("english", ngrams=2)).fit({"a": "heart attack", "b": "attack"})
    assert "heart+attack" in vectors_of(ranker).names


@given(st.floats(width=32, min_value=-1e6, max_value=1e6))
def test_a_short_number_is_the_same_number_in_32_bits(weight):
    assert np.float32(short(np.float32(weight))) == np.float32(weight)


def test_the_bound_of_what_negative_weights_take_away_holds_for_every_document():
    vectors, queries = vectors_and_queries(4)
    for text in queries.values():
        less = {term: -weight for term, weight in vectors.query(text).items() if weight < 0.0}
        taken = [sum(weight * float(row[term]) for term, weight in less.items()) for row in vectors.matrix.toarray()]
        assert max(taken) <= vectors.upper_bound(less) <= sum(less.values()) * vectors.largest.max() + 1e-9


def test_an_index_of_another_model_raises():
    ranker, _ = world(5)
    words = sr.TextRanker("bm25").fit({"a": "one word"})
    with pytest.raises(ModelError, match="they do not match"):
        Vectors(ranker.model_, words.index_)


def test_what_cannot_be_exported_is_rejected_by_name():
    with pytest.raises(ConfigError, match="got a BilinearRanker"):
        vectors_of(sr.BilinearRanker())
    with pytest.raises(NotFitted, match="no documents to export"):
        vectors_of(sr.TextRanker())
    ranker = sr.TextRanker("bm25").fit({"a": "word"})
    with pytest.raises(ConfigError, match="no documents; there is nothing"):
        vectors_of(ranker.remove(["a"]))
    with pytest.raises(ConfigError, match="has a word that the model knows"):
        example_query(vectors_of(ranker.over({"b": "another"})))


@given(st.dictionaries(st.integers(0, 99), st.floats(-80, 80).filter(bool), max_size=30), st.integers(1, 7))
def test_the_parts_of_a_signed_query_are_the_query(query, most):
    signed = SignedQuery.split(query, np.ones(100), most)
    together = dict(signed.first)
    for part in signed.overflow:
        together |= part
    for part in signed.negative:
        together |= {term: -weight for term, weight in part.items()}
    assert together == query
    assert all(0 < len(part) <= most for part in (*signed.overflow, *signed.negative))
    assert len(signed.first) == min(most, sum(weight > 0 for weight in query.values()))
    for part in signed.overflow:
        assert max(part.values()) <= min(signed.first.values())


@given(st.dictionaries(st.integers(0, 9), st.floats(0.01, 1e4), min_size=1))
def test_weights_that_are_too_large_are_halved_until_they_fit(query):
    scaled, divisor = SignedQuery.split(query, np.ones(10)).scale(64.0)
    assert max(scaled.first.values()) <= 64.0
    assert {term: weight * divisor for term, weight in scaled.first.items()} == query
    assert divisor == 1.0 or max(query.values()) > 64.0


@given(st.lists(st.floats(1e-6, 7.5), min_size=1), st.integers(2, 16))
def test_impacts_are_whole_at_least_1_and_keep_the_order(weights, bits):
    values = np.array(weights)
    impacts = Impacts.over(float(values.max()), bits)
    whole = impacts.of(values)
    assert whole.min() >= 1
    assert whole.max() == 2**bits - 1
    assert (np.diff(whole[np.argsort(values)]) >= 0).all()
    assert np.abs((whole - 0.5) / impacts.scale - values).max() <= 0.5 / impacts.scale + 1e-6


def test_a_weight_that_has_no_impact_raises():
    with pytest.raises(DataError, match="above 0"):
        Impacts.over(1.0).of(np.array([0.0]))
    with pytest.raises(DataError, match="not above the largest"):
        Impacts.over(1.0).of(np.array([1.5]))
