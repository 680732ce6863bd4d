"""nDCG of whole matrices against the measures' own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from sparserank.evaluation import evaluate_run
from sparserank.evaluation.measures import evaluate_ranking
from sparserank.evaluation.ndcg import mean_ndcg, ndcg


def by_definition(scores, grades, excluded=None, k=10):
    """The measures' value, the query's own document not being retrieved."""
    excluded = [-1] * len(scores) if excluded is None else excluded
    run = {str(i): {str(j): s for j, s in enumerate(row.tolist()) if j != excluded[i]} for i, row in enumerate(scores)}
    qrels = {str(i): {str(j): g for j, g in enumerate(row.tolist()) if g > 0} for i, row in enumerate(grades)}
    asked = {query: judged for query, judged in qrels.items() if judged}
    return list(evaluate_run(run, asked, f"nDCG@{k}").per_query[f"nDCG@{k}"].values())


def a_world(seed, documents, share=0.3):
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.linspace(-1, 1, documents, dtype=np.float32), (6, 1)), axis=1)
    return rng, scores, rng.integers(0, 4, (6, documents)) * (rng.random((6, documents)) < share)


@given(st.integers(0, 10_000), st.integers(1, 40), st.sampled_from([1, 3, 10]), st.booleans())
def test_it_is_the_ndcg_of_the_measures_where_nothing_ties(seed, documents, k, some_own):
    rng, scores, grades = a_world(seed, documents)
    grades[0, 0] = 2  # one query at least that has something to find
    own = rng.integers(-1, documents, 6) if some_own else None
    expected = by_definition(scores, grades, own, k)
    found = csr_array(grades.astype(np.float32))
    assert_allclose(ndcg(scores, found, own, k), expected, atol=1e-9)
    assert mean_ndcg(scores, found, own, k) == pytest.approx(np.mean(expected))


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 12))
def test_equal_scores_rank_by_place(seed, documents, k):
    rng, _, grades = a_world(seed, documents)
    grades[:, -1] = 1
    scores = rng.integers(0, 3, grades.shape).astype(np.float32)
    order = np.argsort(-scores, axis=1, kind="stable")
    expected = [evaluate_ranking(f"nDCG@{k}", row[o].tolist()) for row, o in zip(grades, order, strict=True)]
    assert_allclose(ndcg(scores, csr_array(grades.astype(np.float32)), k=k), expected, atol=1e-9)


def test_an_own_document_that_is_judged_is_missed_not_found():
    grades = csr_array(np.array([[1.0, 1.0, 0.0]]))
    scores = np.array([[3.0, 2.0, 1.0]], np.float32)
    assert mean_ndcg(scores, grades, np.array([0])) == pytest.approx(evaluate_ranking("nDCG@10", [1, 0], missed=[1]))
    assert scores.tolist() == [[3.0, 2.0, 1.0]], "what was given is left alone"


def test_queries_without_a_grade_above_0_are_left_out_even_where_a_0_is_stored():
    stored = csr_array((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 1, 2, 2])), shape=(3, 2))
    scores = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]], np.float32)
    assert ndcg(scores, stored).tolist() == [1.0]
    assert mean_ndcg(scores, stored) == 1.0


def test_nothing_to_find_is_worth_0():
    assert mean_ndcg(np.ones((2, 3), np.float32), csr_array((2, 3), dtype=np.float32)) == 0.0
    assert mean_ndcg(np.ones((2, 0), np.float32), csr_array((2, 0), dtype=np.float32)) == 0.0
