"""Rows without a known word score 0, are counted when W is learned, and reported when scores are asked for."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from scipy.sparse import csr_array

import sparserank as sr
from sparserank import Preferences
from sparserank.bilinear.ranker import BilinearRanker
from sparserank.errors import DataError

from .test_ranker import SETTINGS, X, Y

EMPTY = np.zeros((2, 60), np.float32)
WITH_EMPTY = csr_array(np.vstack([X.toarray(), EMPTY]))
PREFS = Preferences.from_labels([*Y, 0, 1])
SHORT = SETTINGS | {"max_iter": 100}


@pytest.fixture(scope="module")
def ranker():
    return BilinearRanker(**SHORT).fit(WITH_EMPTY, WITH_EMPTY, PREFS)


def test_fit_counts_the_rows_of_both_sides(ranker):
    assert (ranker.n_empty_queries_, ranker.n_empty_documents_) == (2, 2)
    assert (ranker.solution_.info["empty_queries"], ranker.solution_.info["empty_documents"]) == (2, 2)
    full = BilinearRanker(**SHORT).fit(X, WITH_EMPTY, Preferences.from_labels(Y))
    assert (full.n_empty_queries_, full.n_empty_documents_) == (0, 2)


def test_a_row_of_stored_zeros_is_empty():
    zeros = WITH_EMPTY.copy()
    zeros.data[zeros.indptr[3] : zeros.indptr[4]] = 0.0
    assert BilinearRanker(**SHORT).fit(zeros, WITH_EMPTY, PREFS).n_empty_queries_ == 3


def test_partial_fit_counts_the_rows_it_was_given(ranker):
    pieces = BilinearRanker(**SHORT).partial_fit(WITH_EMPTY, WITH_EMPTY, PREFS)
    assert pieces.n_empty_documents_ == 2
    assert pieces.partial_fit(X, X, Preferences.from_labels(Y)).n_empty_documents_ == 0


def test_the_model_file_keeps_the_counts(ranker, tmp_path):
    ranker.save(tmp_path / "w")
    again = sr.load(tmp_path / "w")
    assert (again.n_empty_queries_, again.solution_.info["empty_documents"]) == (2, 2)


def test_scores_are_0_and_one_line_says_of_how_many(ranker, caplog):
    scores = ranker.scores(EMPTY[:1], WITH_EMPTY)
    assert not scores.any()
    assert not ranker.scores(X, WITH_EMPTY)[:, 80:].any()
    both, documents = caplog.messages
    assert both.startswith("1 of 1 queries (the first is row 0) and 2 of 82 documents (the first is row 80): ")
    assert documents == "2 of 82 documents (the first is row 80): no known word, so every score is 0"
    assert {(record.name, record.levelname) for record in caplog.records} == {("sparserank", "WARNING")}


def test_nothing_is_said_where_every_row_has_a_word(ranker, caplog):
    ranker.scores(X, X)
    assert caplog.messages == []


def test_fit_says_so_only_to_those_who_ask(caplog):
    with caplog.at_level(logging.INFO, logger="sparserank"):
        BilinearRanker(**SHORT).fit(WITH_EMPTY, WITH_EMPTY, PREFS)
    assert [record.levelname for record in caplog.records] == ["INFO"]


def test_which_rows_they_are_can_be_asked_without_scoring(ranker, caplog):
    empty = ranker.empty_rows(X, WITH_EMPTY)
    assert empty.queries.tolist() == []
    assert empty.documents.tolist() == [80, 81]
    assert caplog.messages == []
    with pytest.raises(DataError, match="W is"):
        ranker.empty_rows(X[:, :3], X)


def test_a_row_of_a_sparse_array_has_one_dimension_and_is_explained_like_a_dense_one():
    X = csr_array(np.array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.5], [1.0, 1.0, 0.0]], np.float32))
    ranker = BilinearRanker(eta0=1.0, max_iter=20, random_state=0).fit(X, X, Preferences.from_labels([0, 0, 1]))
    dense = X.toarray()
    assert X[0].shape == (3,)
    assert ranker.explain(X[0], X[1]) == ranker.explain(dense[0], dense[1]) == ranker.explain(X[[0]], X[[1]])
