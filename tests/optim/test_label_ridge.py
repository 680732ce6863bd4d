"""W from class labels in closed form: ridge regression as it is written, the budget kept, the order of classes free."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, random_array

from sparserank.errors import ConfigError
from sparserank.optim.label_ridge import (
    LabelRidge,
    center_labels,
    compute_column_scale,
    fit_ridge,
    prune_by_impact,
    scale_columns,
)
from sparserank.optim.penalties import L1, Ridge
from sparserank.optim.problems import LabelProblem


def words(n=200, columns=40, classes=4, seed=0):
    """Items whose class shows in a tenth of the columns each."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, classes, n)
    X = random_array((n, columns), density=0.2, rng=rng, dtype=np.float32).toarray()
    for c in range(classes):
        X[code == c, 4 * c : 4 * c + 4] += rng.random((int((code == c).sum()), 4)) < 0.6
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    return csr_array(X.astype(np.float32)), code


X, CODE = words()


def test_ridge_regression_is_the_one_of_the_books():
    Y = center_labels(CODE)
    B, settled = fit_ridge(X, Y, 1.5, tol=1e-6, max_iter=200)
    dense = X.toarray().astype(np.float64)
    assert_allclose(B, np.linalg.solve(dense.T @ dense + 1.5 * np.eye(40), dense.T @ Y), atol=1e-5)
    assert settled
    assert not fit_ridge(X, Y, 1.5, max_iter=1)[1]


def test_ridge_regression_on_a_support_is_that_of_its_columns():
    Y, support = center_labels(CODE), (np.random.default_rng(1).random((40, 4)) < 0.5).astype(np.float32)
    B, _ = fit_ridge(X, Y, 1.5, support, support, tol=1e-6, max_iter=200)
    for c in range(4):
        own = np.flatnonzero(support[:, c])
        dense = X.toarray()[:, own].astype(np.float64)
        assert_allclose(
            B[own, c], np.linalg.solve(dense.T @ dense + 1.5 * np.eye(len(own)), dense.T @ Y[:, c]), atol=1e-5
        )
    assert not B[support == 0].any()


def test_without_a_limit_w_is_b_times_its_transpose():
    scale = compute_column_scale(X, CODE, 0.25)
    dense = scale_columns(X, scale).toarray().astype(np.float64)
    B = np.linalg.solve(dense.T @ dense + 1.5 * np.eye(40), dense.T @ center_labels(CODE))
    W = LabelRidge(1600, 0).solve(LabelProblem(X, CODE)).weights.toarray()
    expected = (B @ B.T) * scale[:, None] * scale
    # BBᵀ already solves the equations of the full pattern, so refitting it moves it by no more than rounding
    assert np.abs(W - expected).max() < 0.01 * np.abs(expected).max()


@pytest.mark.parametrize("wanted", [1, 30, 200, 700])
def test_the_budget_is_kept_and_used(wanted):
    solution = LabelRidge(wanted, 0).solve(LabelProblem(X, CODE))
    assert solution.weights.nnz == solution.info["peak_nonzeros"] == wanted
    assert solution.info["converged"]
    assert np.isfinite(solution.weights.data).all()


def test_the_names_and_the_order_of_classes_change_nothing_but_rounding():
    turned = np.array([2, 0, 3, 1])[CODE]
    one, other = (LabelRidge(300, 0).solve(LabelProblem(X, code)).weights.toarray() for code in (CODE, turned))
    assert np.mean((one != 0) == (other != 0)) > 0.99
    both = (one != 0) & (other != 0)
    assert_allclose(one[both], other[both], atol=0.02 * np.abs(one).max())


def test_the_order_of_items_changes_nothing_but_rounding():
    order = np.random.default_rng(3).permutation(200)
    one, other = (
        LabelRidge(300, 0).solve(LabelProblem(X, CODE)).weights.toarray(),
        LabelRidge(300, 0).solve(LabelProblem(X[order], CODE[order])).weights,
    )
    assert np.mean((one != 0) == (other.toarray() != 0)) > 0.99


def test_threads_change_no_bit():
    one, four = (LabelRidge(250, 5, n_jobs=n).solve(LabelProblem(X, CODE)).weights for n in (1, 4))
    assert_array_equal(one.data, four.data)
    assert_array_equal(one.indices, four.indices)


def test_pairs_of_a_sparse_w_are_among_words_that_tell_of_a_class():
    W = LabelRidge(60, 0).solve(LabelProblem(X, CODE)).weights.tocoo()
    assert max(W.row.max(), W.col.max()) < 16


def test_a_column_scale_favours_what_tells_of_the_class_and_keeps_the_mean_length():
    scale = compute_column_scale(X, CODE, 0.25)
    assert scale[:16].min() > np.median(scale[16:])
    assert_allclose(np.sum(scale_columns(X, scale).data ** 2) / 200, 1.0, rtol=1e-5)
    empty = X.tolil()
    empty[:, 7] = 0.0
    assert compute_column_scale(csr_array(empty), CODE, 0.25)[7] == 0.0


def test_a_cut_by_impact_weighs_entries_by_their_columns():
    W = csr_array(np.array([[1.0, 0.0], [-3.0, 2.0]], np.float32))
    assert prune_by_impact(W, np.array([10.0, 1.0], np.float32), 2).toarray().tolist() == [[1.0, 0.0], [-3.0, 0.0]]


@pytest.mark.parametrize("bad", [{"kl_power": -1}, {"wider": 0.5}, {"first_pattern": 0}, {"most_first": -1}])
def test_settings_that_mean_nothing_raise(bad):
    with pytest.raises(ConfigError):
        LabelRidge(**bad)


@pytest.mark.parametrize("penalty", [Ridge(0.0, 0.0), Ridge(1.0, 2.0), L1(1.0)])
def test_a_penalty_without_a_meaning_raises_an_error(penalty):
    with pytest.raises(ConfigError, match="LabelRidge needs"):
        LabelRidge(10).solve(LabelProblem(X, CODE), penalty)


def test_it_does_not_start_from_given_weights():
    with pytest.raises(ConfigError, match="LabelRidge does not start from given weights"):
        LabelRidge(10).solve(LabelProblem(X, CODE), init=X)
