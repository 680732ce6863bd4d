"""The search for candidates against dense scores."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array, random_array

from sparserank.optim.problems import ListProblem
from sparserank.text_ranker.candidates import CandidateSearch
from sparserank.text_ranker.training_data import LexicalRows, TrainingMatrices

from .planted_synonyms import lexical_scores


def random_queries(seed=0, queries=30, documents=50, words=14):
    """Rows without ties; pairs have other columns than the lexical score. Every second query excludes a document."""
    rng = np.random.default_rng(seed)

    def rows(n, width):
        return csr_array(random_array((n, width), density=0.5, rng=rng, dtype=np.float32))

    grades = (rng.random((queries, documents)) < 0.1).astype(np.float32)
    grades[:, 0] = 1.0
    lists = ListProblem(rows(queries, 9), rows(documents, words), csr_array(grades))
    excluded = np.where(np.arange(queries) % 2, rng.integers(1, documents, queries), -1)
    return TrainingMatrices(lists, LexicalRows(rows(queries, 11), rows(documents, 11)), excluded)


def random_pairs(data, seed=1):
    """Signed weights of half of the pairs."""
    W = random_array(data.lists.shape, density=0.5, rng=np.random.default_rng(seed), dtype=np.float32)
    W.data -= np.float32(0.4)
    return csr_array(W)


def best(data, scores, k):
    """The best documents of each query whose score is not 0, without the excluded one; then -1."""
    out = np.full((len(data), k), -1)
    for i, row in enumerate(scores):
        ranked = [d for d in np.argsort(-row, kind="stable").tolist() if d != data.excluded[i] and row[d] != 0.0]
        out[i, : len(ranked[:k])] = ranked[:k]
    return out


@pytest.mark.parametrize("k", [1, 5, 49])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_best_documents_are_those_of_dense_scores(k, n_jobs):
    data = random_queries()
    search, W = CandidateSearch.of(data, n_jobs), random_pairs(data)
    lexical, pairs = lexical_scores(data), (data.lists.Q @ W @ data.lists.D.T).toarray()
    assert_array_equal(search.top(data, k), best(data, lexical, k))
    assert_array_equal(search.top(data, k, W, 0.7), best(data, lexical + np.float32(0.7) * pairs, k))
    assert_array_equal(search.top(data, k, W, 1.0, lexical=False), best(data, pairs, k))


def test_some_of_the_queries_are_searched_in_the_same_index():
    data = random_queries()
    search, some = CandidateSearch.of(data), np.array([7, 3, 12])
    assert_array_equal(search.top(data[some], 10), search.top(data, 10)[some])


def test_the_excluded_document_is_never_found():
    data = random_queries()
    found = CandidateSearch.of(data).top(data, 60)
    assert not ((found == data.excluded[:, None]) & (data.excluded >= 0)[:, None]).any()
    assert (found == -1).any()


def test_a_query_without_words_finds_nothing():
    data = random_queries()
    nothing = csr_array((30, 11), dtype=np.float32)
    silent = TrainingMatrices(data.lists, LexicalRows(nothing, data.lexical.documents), data.excluded)
    assert (CandidateSearch.of(silent).top(silent, 4) == -1).all()
