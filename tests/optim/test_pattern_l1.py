"""L1 on the squared loss: the answer is that of coordinate descent written out, and meets the conditions for it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from sparserank.optim.pattern_l1 import Effort, PatternL1
from sparserank.optim.penalties import L1, Ridge
from sparserank.optim.pruning import PairBudget

from . import judged_worlds as worlds

RIDGE = Ridge(0.5, 0.7)
EXACT = Effort(steps=3000, rounds=30, tol=1e-4)
ALL = PairBudget(1000)


def parts(lists):
    """QᵀVQ + a, DᵀD + b, QᵀVYD and h, dense."""
    Q, D, targets = worlds.dense(lists.Q, lists.D, lists.targets)
    V, Y = np.diag(lists.query_weights), targets - lists.target_mean
    A, B = Q.T @ V @ Q + RIDGE.query * np.eye(Q.shape[1]), D.T @ D + RIDGE.document * np.eye(D.shape[1])
    return A, B, Q.T @ V @ Y @ D, np.sqrt(np.outer(np.diag(A), np.diag(B)))


def literal(lists, l1, nonnegative=False):
    """One entry after another is put where it is best, until nothing moves."""
    A, B, right, h = parts(lists)
    W = np.zeros(lists.shape)
    for _ in range(400):
        for i, j in np.ndindex(W.shape):
            alone = right[i, j] - A[i] @ W @ B[:, j] + h[i, j] ** 2 * W[i, j]
            size = max((alone if nonnegative else abs(alone)) - l1 * h[i, j], 0.0)
            W[i, j] = np.sign(alone) * size / h[i, j] ** 2
    return W


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("l1", [0.2, 0.05, 0.01])
def test_the_answer_is_that_of_literal_coordinate_descent(l1, weighted):
    lists = worlds.lists(weighted=weighted)
    found = PatternL1(RIDGE, ALL, effort=EXACT, n_jobs=2).solve(lists, L1(l1)).weights.toarray()
    expected = literal(lists, l1)
    assert_allclose(found, expected, atol=2e-5)
    assert ((found != 0) == (expected != 0)).all()
    assert expected.any()


def test_gradients_are_at_most_l1_and_equal_to_it_with_the_sign_of_the_weight_where_there_is_one():
    lists, l1 = worlds.lists(3), 0.04
    W = PatternL1(RIDGE, ALL, effort=EXACT).solve(lists, L1(l1)).weights.toarray().astype(np.float64)
    A, B, right, h = parts(lists)
    gradient = (right - A @ W @ B) / h
    assert np.abs(gradient).max() <= l1 * 1.001
    assert_allclose(gradient[W != 0], l1 * np.sign(W[W != 0]), rtol=1e-3)
    assert 0 < (W != 0).sum() < W.size


def test_pairs_that_join_a_few_at_a_time_end_at_the_same_answer():
    lists = worlds.lists()
    few = PatternL1(RIDGE, PairBudget(2), effort=EXACT).solve(lists, L1(0.03)).weights.toarray()
    assert_allclose(few, literal(lists, 0.03), atol=2e-5)


def test_it_starts_from_given_weights_and_ends_at_the_same_answer():
    lists, solver = worlds.lists(), PatternL1(RIDGE, ALL, effort=EXACT)
    near = solver.solve(lists, L1(0.05)).weights
    assert_allclose(solver.solve(lists, L1(0.03), near).weights.toarray(), literal(lists, 0.03), atol=2e-5)


def test_no_weight_is_negative_or_forbidden_where_none_may_be():
    lists = worlds.lists()
    budget = PairBudget(1000, nonnegative=True)
    found = PatternL1(RIDGE, budget, effort=EXACT).solve(lists, L1(0.03)).weights.toarray()
    assert_allclose(found, literal(lists, 0.03, nonnegative=True), atol=2e-5)
    mask = csr_array((np.indices(lists.shape).sum(axis=0) % 2).astype(np.float32))
    found = PatternL1(RIDGE, ALL, mask, EXACT).solve(lists, L1(0.03)).weights.toarray()
    assert found.any()
    assert not (found * mask.toarray()).any()


@pytest.mark.parametrize("pairs", [1, 5, 17, 30])
def test_the_path_leaves_at_most_the_pairs_wanted_and_ends_at_the_answer_for_its_l1(pairs):
    lists = worlds.lists()
    solution = PatternL1(RIDGE, PairBudget(pairs), effort=EXACT).solve_path(lists)
    W, l1 = solution.weights, solution.info["alpha"]
    assert pairs / 2 - 1 <= W.nnz <= pairs
    assert_allclose(W.toarray(), literal(lists, l1), atol=2e-5)


def test_the_path_goes_on_to_every_pair_there_is_a_reason_for():
    lists = worlds.lists()
    W = PatternL1(RIDGE, ALL).solve_path(lists).weights
    assert W.nnz == 5 * lists.shape[1]  # of six query words one is in no query


def test_where_nothing_is_judged_nothing_is_learned():
    lists = worlds.lists().select_queries(np.array([1]))
    solution = PatternL1(RIDGE, PairBudget(5)).solve_path(lists)
    W, l1 = solution.weights, solution.info["alpha"]
    assert (W.nnz, l1, W.shape) == (0, 0.0, lists.shape)
