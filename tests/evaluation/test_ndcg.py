"""nDCG of candidate lists against the measures' own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from sparserank.evaluation import evaluate_run
from sparserank.evaluation.measures import evaluate_ranking
from sparserank.evaluation.ndcg import ndcg


def by_definition(start, scores, grades, k=10):
    """The measures' value; a document at -inf is not retrieved."""
    run, qrels = {}, {}
    for i, (first, last) in enumerate(itertools.pairwise(start)):
        run[str(i)] = {str(j): float(scores[j]) for j in range(first, last) if np.isfinite(scores[j])}
        qrels[str(i)] = {str(j): float(grades[j]) for j in range(first, last) if grades[j] > 0}
    judged = {query: found for query, found in qrels.items() if found}
    return list(evaluate_run(run, judged, f"nDCG@{k}").per_query[f"nDCG@{k}"].values())


def a_world(seed, documents, share=0.3):
    """Six lists of different lengths, without ties."""
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(rng.integers(0, documents + 1, 6))])
    scores = rng.permutation(np.linspace(-1, 1, start[-1], dtype=np.float32))
    grades = rng.integers(0, 4, start[-1]) * (rng.random(start[-1]) < share)
    return rng, start, scores, grades.astype(np.float32)


@given(st.integers(0, 10_000), st.integers(1, 40), st.booleans())
def test_it_is_the_ndcg_of_the_measures_where_nothing_ties(seed, documents, some_missed):
    rng, start, scores, grades = a_world(seed, documents)
    if not (grades > 0).any():
        return
    if some_missed:
        scores[rng.random(len(scores)) < 0.2] = -np.inf
    for k, found in zip((1, 3, 10), ndcg(start, scores, grades, (1, 3, 10)), strict=True):
        assert_allclose(found, by_definition(start, scores, grades, k), atol=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 12))
def test_equal_scores_rank_by_place(seed, documents, k):
    rng, start, scores, grades = a_world(seed, documents)
    scores = rng.integers(0, 3, len(scores)).astype(np.float32)
    expected = []
    for first, last in itertools.pairwise(start):
        order = first + np.argsort(-scores[first:last], kind="stable")
        if (grades[order] > 0).any():
            expected.append(evaluate_ranking(f"nDCG@{k}", grades[order].tolist()))
    assert_allclose(ndcg(start, scores, grades, (k,))[0], expected, atol=1e-9)


def test_a_judged_document_that_is_not_ranked_is_missed():
    scores = np.array([-np.inf, 2.0, 1.0], np.float32)
    found = ndcg(np.array([0, 3]), scores, np.array([1.0, 1.0, 0.0], np.float32))[0]
    assert found.tolist() == [pytest.approx(evaluate_ranking("nDCG@10", [1, 0], missed=[1]))]


def test_lists_without_a_grade_above_0_are_left_out():
    start, scores = np.array([0, 2, 4, 4]), np.array([1.0, 2.0, 1.0, 2.0], np.float32)
    assert ndcg(start, scores, np.array([0.0, 0.0, 0.0, 1.0], np.float32))[0].tolist() == [1.0]
    assert len(ndcg(start, scores, np.zeros(4, np.float32))[0]) == 0
    assert len(ndcg(np.array([0]), scores[:0], scores[:0])[0]) == 0
