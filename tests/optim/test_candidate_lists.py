"""Candidate lists: which documents they have, what those count, and their scores against dense ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from sparserank.optim.candidate_lists import CandidateLists

from . import judged_worlds as worlds


def with_negative_grades(lists):
    grades = lists.grades.toarray()
    grades[:, ::4] *= -1
    return replace(lists, grades=csr_array(grades))


def random_lists(seed, weighted=True, n_found=5, n_random=3):
    """Lists whose queries may have their excluded document among the relevant and the found ones."""
    lists = with_negative_grades(worlds.lists(seed, weighted=weighted))
    rng, (n, m) = np.random.default_rng(seed + 9), lists.grades.shape
    excluded, found = rng.integers(-1, m, n), rng.integers(-1, m, (n, n_found))
    return lists, excluded, found, CandidateLists.build(lists, excluded, found, n_random, seed)


def of_query(candidates, query):
    return slice(candidates.start[query], candidates.start[query + 1])


@given(st.integers(0, 200))
def test_a_list_has_what_is_relevant_and_found_and_random_once_and_never_what_is_excluded(seed):
    lists, excluded, found, candidates = random_lists(seed)
    grades = lists.grades.toarray()
    assert len(candidates) == len(grades)
    for query, own in enumerate(excluded):
        documents = candidates.document[of_query(candidates, query)].tolist()
        assert documents == sorted(set(documents))
        needed = (set(np.flatnonzero(grades[query] > 0)) | set(found[query])) - {-1, own}
        assert needed <= set(documents)
        assert own not in documents
        assert len(documents) <= len(needed) + 3
    assert_array_equal(candidates.base, 0.0)
    assert_array_equal(candidates.lengths, np.diff(candidates.start))


@given(st.integers(0, 200), st.booleans())
def test_grades_are_those_above_0_and_shares_are_theirs_of_the_weight_of_the_query(seed, weighted):
    lists, excluded, _, candidates = random_lists(seed, weighted)
    relevant = np.maximum(lists.grades.toarray(), 0.0)
    for query, own in enumerate(excluded):
        span = of_query(candidates, query)
        expected = relevant[query, candidates.document[span]]
        assert_array_equal(candidates.grade[span], expected)
        share = lists.query_weights[query] / max(relevant[query].sum(), 1.0)
        assert_allclose(candidates.share[span], expected * share, rtol=1e-6)
        if own < 0 or relevant[query, own] == 0:
            total = lists.query_weights[query] if relevant[query].any() else 0.0
            assert candidates.share[span].sum() == pytest.approx(total, rel=1e-6)


def test_documents_are_found_where_they_are():
    _, _, _, candidates = random_lists(0)
    query = np.repeat(np.arange(10), candidates.lengths)
    order = np.random.default_rng(0).permutation(len(query))
    assert_array_equal(candidates.find(query[order], candidates.document[order]), order)


def test_random_documents_go_with_the_seed_and_are_of_the_whole_collection():
    lists = worlds.lists(queries=200)
    nothing, none = np.empty((200, 0), np.int64), np.full(200, -1)
    one, again, other = (CandidateLists.build(lists, none, nothing, 6, seed) for seed in (0, 0, 1))
    assert_array_equal(one.document, again.document)
    assert len(one.document) != len(other.document) or (one.document != other.document).any()
    assert set(one.document[one.grade == 0].tolist()) == set(range(12))


def test_without_found_and_random_documents_a_list_has_the_relevant_ones():
    lists = worlds.lists()
    candidates = CandidateLists.build(lists, np.full(10, -1), np.empty((10, 0), np.int64), 0)
    assert_array_equal(candidates.document, lists.relevant.sorted_indices().indices)
    assert_array_equal(candidates.start, lists.relevant.indptr)


def test_a_collection_without_documents_has_empty_lists():
    lists = replace(worlds.lists(), D=csr_array((0, 8), dtype=np.float32), grades=csr_array((10, 0), dtype=np.float32))
    candidates = CandidateLists.build(lists, np.full(10, -1), np.empty((10, 0), np.int64), 3)
    assert len(candidates.document) == 0
    assert_array_equal(candidates.lengths, 0)


def test_grades_in_any_order_of_columns_make_the_same_lists():
    lists, excluded, found, candidates = random_lists(3)
    G = lists.grades
    turned = csr_array(G, copy=True)
    for row in range(G.shape[0]):
        span = slice(G.indptr[row], G.indptr[row + 1])
        turned.indices[span], turned.data[span] = G.indices[span][::-1], G.data[span][::-1]
    turned.has_sorted_indices = False
    again = CandidateLists.build(replace(lists, grades=turned), excluded, found, 3, 3)
    for name in ("start", "document", "grade", "share"):
        assert_array_equal(getattr(again, name), getattr(candidates, name))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_scores_are_dense_ones_with_the_same_bits_for_any_number_of_threads(threads):
    lists, _, _, candidates = random_lists(0)
    W = worlds.pattern(lists.shape)
    full = (lists.Q @ W @ lists.D.T).toarray()
    query = np.repeat(np.arange(10), candidates.lengths)
    scores = candidates.score(lists.Q, W, lists.D, threads)
    assert scores.dtype == np.float32
    assert_allclose(scores, full[query, candidates.document], atol=1e-5)
    assert_array_equal(scores, candidates.score(lists.Q, W, lists.D))
    expanded = (lists.Q @ W).toarray()
    assert_allclose(candidates.score_expanded(expanded, lists.D), scores, atol=1e-5)


def test_lists_of_no_query_have_no_scores():
    lists = worlds.lists().select_queries(np.arange(0))
    candidates = CandidateLists.build(lists, np.empty(0, np.int64), np.empty((0, 4), np.int64), 2)
    assert len(candidates) == 0
    assert len(candidates.score(lists.Q, worlds.pattern(lists.shape), lists.D, 2)) == 0
