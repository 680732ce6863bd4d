"""What the score of each document should be, the literal objective, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from sparserank.errors import DataError
from sparserank.optim.penalties import Ridge
from sparserank.optim.problems import ListProblem, compute_squared_norms

from .judged_world import dense, objective, some_lists


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("query_normalization", [0.0, 0.25, 0.5, 1.0])
def test_targets_are_grades_divided_by_a_power_of_their_sum(query_normalization, below):
    lists = some_lists(below=below, query_normalization=query_normalization)
    assert lists.targets.dtype == np.float32
    assert_allclose(lists.targets.toarray() - lists.target_mean, dense(lists)[2], atol=1e-6)
    assert_allclose(lists.dense_targets(), dense(lists)[2], atol=1e-6)


def test_query_normalization_0_leaves_grades_alone_and_1_lets_every_judged_query_sum_to_1():
    lists = some_lists(query_normalization=0.0)
    assert_array_equal(lists.targets.toarray(), lists.grades.toarray())
    sums = some_lists(query_normalization=1.0).targets.sum(axis=1)
    assert_allclose(sums, lists.grades.toarray().any(axis=1), rtol=1e-6)


def test_a_grade_below_0_is_a_target_below_that_of_documents_nobody_judged():
    lists = some_lists(below=True)
    grades, targets = lists.grades.toarray(), lists.dense_targets()
    assert (grades < 0).any()
    assert targets[grades < 0].max() < targets[grades == 0].min()
    assert targets[grades == 0].max() < targets[grades > 0].min()


def test_no_query_at_all_has_a_mean_of_0():
    lists = some_lists().select_queries(np.arange(0))
    assert lists.target_mean == 0.0
    assert lists.grades.shape == (0, 12)


def test_the_objective_is_that_of_the_docstring_written_out_entry_by_entry():
    lists, W = some_lists(), np.random.default_rng(1).normal(size=(6, 7))
    Q, D, Y = dense(lists)
    total = sum((Y[q, d] - Q[q] @ W @ D[d]) ** 2 for q in range(len(Q)) for d in range(len(D)))
    total += 2.0 * sum((W[i] @ D[d]) ** 2 for i in range(6) for d in range(len(D)))
    total += 0.3 * sum((Q[q] @ W[:, j]) ** 2 for q in range(len(Q)) for j in range(7))
    total += 2.0 * 0.3 * (W**2).sum()
    assert objective(lists, csr_array(W), Ridge(2.0, 0.3)) == pytest.approx(total, rel=1e-6)


def test_some_of_the_queries_keep_all_documents():
    lists = some_lists()
    part = lists.select_queries(np.array([5, 2]))
    assert_array_equal(part.Q.toarray(), lists.Q.toarray()[[5, 2]])
    assert_array_equal(part.grades.toarray(), lists.grades.toarray()[[5, 2]])
    assert part.D is lists.D
    assert part.shape == lists.shape == (6, 7)


def test_grades_of_another_shape_raise():
    lists = some_lists()
    with pytest.raises(DataError, match=r"queries × documents, \(9, 12\); got \(12, 9\)"):
        ListProblem(lists.Q, lists.D, lists.grades.T.tocsr())


def test_squared_norms_are_of_columns_whether_or_not_they_have_an_entry():
    X = csr_array(np.array([[3.0, 0.0, 0.0], [4.0, 0.0, -2.0]], np.float32))
    assert_array_equal(compute_squared_norms(X), [25.0, 0.0, 4.0])
