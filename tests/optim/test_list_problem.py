"""What the score of each document should be, the literal objective, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from sparserank.errors import DataError
from sparserank.optim.list_problem import JudgedLists, Ridge, squared_lengths

from .judged_world import dense, some_lists


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("evenness", [0.0, 0.25, 0.5, 1.0])
def test_targets_are_grades_divided_by_a_power_of_their_sum(evenness, below):
    lists = some_lists(below=below)
    found, mean = lists.targets(evenness)
    assert found.dtype == np.float32
    assert_allclose(found.toarray() - mean, dense(lists, evenness)[2], atol=1e-6)


def test_evenness_0_leaves_grades_alone_and_1_lets_every_judged_query_sum_to_1():
    lists = some_lists()
    assert_array_equal(lists.targets(0.0)[0].toarray(), lists.grades.toarray())
    sums = lists.targets(1.0)[0].sum(axis=1)
    assert_allclose(sums, lists.grades.toarray().any(axis=1), rtol=1e-6)


def test_a_grade_below_0_is_a_target_below_that_of_documents_nobody_judged():
    lists = some_lists(below=True)
    grades, (found, mean) = lists.grades.toarray(), lists.targets(0.5)
    targets = found.toarray() - mean
    assert (grades < 0).any()
    assert targets[grades < 0].max() < targets[grades == 0].min()
    assert targets[grades == 0].max() < targets[grades > 0].min()


def test_no_query_at_all_has_a_mean_of_0():
    lists = some_lists().of(np.arange(0))
    assert lists.targets(0.5)[1] == 0.0
    assert lists.grades.shape == (0, 12)


def test_the_objective_is_that_of_the_docstring_written_out_entry_by_entry():
    lists, W = some_lists(), np.random.default_rng(1).normal(size=(6, 7))
    Q, D, Y = dense(lists, 0.5)
    total = sum((Y[q, d] - Q[q] @ W @ D[d]) ** 2 for q in range(len(Q)) for d in range(len(D)))
    total += 2.0 * sum((W[i] @ D[d]) ** 2 for i in range(6) for d in range(len(D)))
    total += 0.3 * sum((Q[q] @ W[:, j]) ** 2 for q in range(len(Q)) for j in range(7))
    total += 2.0 * 0.3 * (W**2).sum()
    assert lists.objective(csr_array(W), 0.5, Ridge(2.0, 0.3)) == pytest.approx(total, rel=1e-6)


def test_some_of_the_queries_keep_all_documents():
    lists = some_lists()
    part = lists.of(np.array([5, 2]))
    assert_array_equal(part.Q.toarray(), lists.Q.toarray()[[5, 2]])
    assert_array_equal(part.grades.toarray(), lists.grades.toarray()[[5, 2]])
    assert part.D is lists.D
    assert part.shape == lists.shape == (6, 7)


def test_grades_of_another_shape_are_refused():
    lists = some_lists()
    with pytest.raises(DataError, match=r"queries × documents, \(9, 12\); got \(12, 9\)"):
        JudgedLists(lists.Q, lists.D, lists.grades.T.tocsr())


def test_squared_lengths_are_of_columns_whether_or_not_they_have_an_entry():
    X = csr_array(np.array([[3.0, 0.0, 0.0], [4.0, 0.0, -2.0]], np.float32))
    assert_array_equal(squared_lengths(X), [25.0, 0.0, 4.0])
