"""Which queries are held out, and the nDCG of their rankings against dense ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from sparserank.text_ranker import held_out
from sparserank.text_ranker.candidates import CandidateSearch
from sparserank.text_ranker.held_out import HELD_OUT_PARTS, MAX_HELD_OUT, HeldOut, hold_out, searched_ndcg

from .planted_synonyms import dense_ndcg, learned_scores, lexical_scores
from .test_candidates import random_pairs, random_queries


@pytest.mark.parametrize("n", [2, 3, 4, 5, 41])
def test_of_few_queries_each_is_held_out_once_and_nothing_is_in_both(n):
    folds = hold_out(np.arange(n), random_state=3)
    assert sorted(np.concatenate([held for held, _ in folds]).tolist()) == list(range(n))
    for held, rest in folds:
        assert 1 <= len(held) <= -(-n // HELD_OUT_PARTS)
        assert sorted([*held.tolist(), *rest.tolist()]) == list(range(n))
        assert held.tolist() == sorted(held.tolist())
    assert_array_equal(hold_out(np.arange(n), random_state=3)[0][0], folds[0][0])


@pytest.mark.parametrize("few", [0, 500])
@pytest.mark.parametrize("seed", range(5))
def test_a_group_is_held_out_whole_or_not_at_all(monkeypatch, seed, few):
    monkeypatch.setattr(held_out, "MAX_ROTATED_QUERIES", few)
    groups = np.random.default_rng(seed).integers(0, 25, 120)
    for held, rest in hold_out(groups, seed):
        assert not set(groups[held].tolist()) & set(groups[rest].tolist())
        assert len(held) == pytest.approx(30, abs=8)


def test_of_many_queries_a_quarter_is_held_out():
    n = held_out.MAX_ROTATED_QUERIES + 1
    ((held, rest),) = hold_out(np.arange(n), 0)
    assert len(held) == pytest.approx(n / HELD_OUT_PARTS, abs=1)
    assert len(held) + len(rest) == n


def test_which_are_held_out_goes_with_the_seed():
    assert len({tuple(hold_out(np.arange(40), seed)[0][0].tolist()) for seed in range(5)}) == 5


@pytest.mark.parametrize("n", [7_000, 20_001, 100_000])
def test_of_very_many_queries_about_as_many_are_held_out_as_are_needed(n):
    ((held, rest),) = hold_out(np.arange(n), 0)
    assert MAX_HELD_OUT <= len(held) <= 1.3 * MAX_HELD_OUT
    assert len(held) + len(rest) == n


@pytest.mark.parametrize("seed", range(3))
def test_groups_of_very_many_queries_are_not_divided_either(seed):
    groups = np.random.default_rng(seed).integers(0, 4_000, 30_000)
    ((held, rest),) = hold_out(groups, seed)
    assert not set(groups[held].tolist()) & set(groups[rest].tolist())
    assert len(held) == pytest.approx(MAX_HELD_OUT, rel=0.2)


def test_a_group_of_almost_all_queries_leaves_the_others_to_hold_out():
    groups = np.where(np.arange(10_000) < 9_000, 0, np.arange(10_000))
    ((held, rest),) = hold_out(groups, 0)
    assert 0 < len(held) <= 1_000
    assert len(rest) >= 9_000


# ---- rankings


@pytest.fixture
def queries():
    return random_queries()


@pytest.fixture
def W(queries):
    return random_pairs(queries)


@pytest.fixture
def pools(monkeypatch):
    """As if the collection were large."""
    monkeypatch.setattr(held_out, "ALL_DOCUMENTS", 0)
    monkeypatch.setattr(held_out, "POOL_DEPTH", 7)


@pytest.mark.parametrize("k", [1, 5, 10, 100])
def test_of_a_small_collection_all_documents_are_ranked(queries, W, k):
    found = HeldOut.search(queries, CandidateSearch.of(queries), W)
    n_excluded = int((queries.excluded >= 0).sum())
    assert len(found.candidates.document) == np.prod(queries.lists.grades.shape) - n_excluded
    scores = found.candidates.base + np.float32(0.3) * found.pair_scores(W)
    assert_allclose(found.ndcg(scores, (k,))[0], dense_ndcg(queries, learned_scores(queries, W, 0.3), k), atol=1e-9)
    assert_allclose(found.ndcg(scores, (3, k))[1], found.ndcg(scores, (k,))[0])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_scores_by_place_are_dense_ones(queries, W, n_jobs):
    found = HeldOut.of(queries, np.random.default_rng(0).integers(-1, 50, (30, 9)), n_jobs)
    place = np.repeat(np.arange(30), found.candidates.lengths), found.candidates.document
    assert_allclose(found.candidates.base, lexical_scores(queries)[place], rtol=1e-5, atol=1e-6)
    pairs = (queries.lists.Q @ W @ queries.lists.D.T).toarray()
    assert_allclose(found.pair_scores(W), pairs[place], atol=1e-5)
    assert_array_equal(found.take(pairs), pairs[place])
    words = np.array([0, 3, 4, 9])
    expanded = (queries.lists.Q @ W).toarray()[:, words]
    by_words = expanded @ queries.lists.D.toarray()[:, words].T
    assert_allclose(found.score_expanded(np.ascontiguousarray(expanded), words), by_words[place], atol=1e-5)


@pytest.mark.usefixtures("pools")
def test_a_pool_has_all_relevant_documents_and_the_best_by_either_score_and_never_the_excluded_one(queries, W):
    search = CandidateSearch.of(queries)
    for pairs, expected in ((None, [lexical_scores(queries)]), (W, [lexical_scores(queries), None])):
        found = HeldOut.search(queries, search, pairs).candidates
        if pairs is not None:
            expected[1] = (queries.lists.Q @ W @ queries.lists.D.T).toarray()
        for i, own in enumerate(queries.excluded):
            pool = set(found.document[found.start[i] : found.start[i + 1]].tolist())
            needed = set(np.flatnonzero(queries.lists.grades.toarray()[i] > 0).tolist())
            for scores in expected:
                ranked = [d for d in np.argsort(-scores[i], kind="stable").tolist() if d != own and scores[i, d] != 0]
                needed |= set(ranked[:7])
            assert pool == needed - {own}


@pytest.mark.usefixtures("pools")
def test_a_pool_that_has_the_best_gives_the_ndcg_of_all_documents(monkeypatch, queries):
    monkeypatch.setattr(held_out, "POOL_DEPTH", 50)
    found = HeldOut.search(queries, CandidateSearch.of(queries))
    assert_allclose(found.ndcg(found.candidates.base)[0], dense_ndcg(queries, lexical_scores(queries)), atol=1e-9)


@pytest.mark.parametrize("pair_weight", [0.1, 1.0, 10.0])
def test_the_ndcg_of_a_search_is_that_of_a_dense_ranking(queries, W, pair_weight):
    search = CandidateSearch.of(queries)
    expected = dense_ndcg(queries, learned_scores(queries, W, pair_weight))
    assert_allclose(searched_ndcg(queries, search, W, pair_weight), expected, atol=1e-9)
    assert_allclose(HeldOut.of(queries, None).ndcg_of_pairs(W, pair_weight), expected, atol=1e-9)


def test_groups_are_those_of_queries_that_have_a_relevant_document(queries):
    grades = queries.lists.grades.toarray()
    grades[[2, 5]], grades[7] = 0.0, -np.abs(grades[7]) - 1.0
    lists = replace(queries.lists, grades=csr_array(grades))
    some = replace(queries, lists=lists, groups=np.arange(30) // 2)
    found = HeldOut.of(some, None)
    assert_array_equal(found.groups, np.delete(np.arange(30) // 2, [2, 5, 7]))
    assert len(found.ndcg(found.candidates.base)[0]) == 27


def test_no_relevant_document_leaves_nothing_to_measure(queries):
    lists = replace(queries.lists, grades=csr_array(queries.lists.grades.shape, dtype=np.float32))
    found = HeldOut.of(replace(queries, lists=lists), None)
    assert len(found.ndcg(found.candidates.base)[0]) == len(found.groups) == 0
