"""A W refitted on its pattern solves the normal equations there, exactly where small and nearly so in batches."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, random_array

from sparserank.errors import ConfigError
from sparserank.optim.label_ridge import LabelRefit, center_labels

X = csr_array(random_array((80, 12), density=0.3, rng=np.random.default_rng(0), dtype=np.float32))
X.sort_indices()
Y = center_labels(np.random.default_rng(1).integers(0, 3, 80))
MASK = np.random.default_rng(2).random((12, 12)) < 0.4
MASK |= MASK.T
MASK[5] = MASK[:, 5] = False  # a column that the pattern does not use


def start():
    return csr_array(np.where(MASK, 0.01, 0.0).astype(np.float32))


def solved(ridge):
    """((C + ridge) W (C + ridge))_P = (XᵀYYᵀX)_P as one dense system over the places of P."""
    C = (X.T @ X).toarray().astype(np.float64) + ridge * np.eye(12)
    row, column = np.nonzero(MASK)
    system = C[np.ix_(row, row)] * C[np.ix_(column, column)]
    F = (X.T @ Y).astype(np.float64)
    W = np.zeros((12, 12))
    W[row, column] = np.linalg.solve(system, (F @ F.T)[row, column])
    return W


def objective(W, ridge):
    over = X @ W @ X.T - Y @ Y.T
    held = (X @ W).ravel() @ (X @ W).ravel() + (W @ X.T).ravel() @ (W @ X.T).ravel() + ridge * W.ravel() @ W.ravel()
    return 0.5 * over.ravel() @ over.ravel() + 0.5 * ridge * held


def test_a_small_pattern_ends_at_the_normal_equations():
    W = LabelRefit(1.5, exact_steps=200).refit(X, Y, start(), seed=0)
    assert_allclose(W.toarray(), solved(1.5), atol=1e-5)


def test_batches_come_near_to_the_least_objective():
    least, first = objective(solved(1.5), 1.5), objective(start().toarray(), 1.5)
    how = {"most_columns": 0, "steps": 600, "batch": 80, "rate": 0.3}
    whole = LabelRefit(1.5, **how).refit(X, Y, start(), seed=0)
    part = LabelRefit(1.5, **how | {"batch": 40}).refit(X, Y, start(), seed=0)
    assert objective(whole.toarray(), 1.5) - least < 0.05 * (first - least)
    assert objective(part.toarray(), 1.5) - least < 0.1 * (first - least)


@pytest.mark.parametrize("most", [0, 100])
def test_threads_change_no_bit_and_the_pattern_stays(most):
    one, four = (LabelRefit(most_columns=most, batch=30, n_jobs=n).refit(X, Y, start(), seed=3) for n in (1, 4))
    assert_array_equal(one.data, four.data)
    assert_array_equal(one.indices, start().indices)
    assert not np.array_equal(one.data, start().data)


def test_work_beyond_the_bound_is_done_in_batches():
    assert LabelRefit(exact_steps=7, steps=9).count_steps(start()) == 7
    assert LabelRefit(exact_steps=7, steps=9, most_work=100).count_steps(start()) == 9
    assert LabelRefit(exact_steps=7, steps=9, most_columns=10).count_steps(start()) == 9


def test_a_w_without_entries_stays_empty():
    assert LabelRefit().refit(X, Y, csr_array((12, 12), dtype=np.float32), seed=0).nnz == 0


@pytest.mark.parametrize("bad", [{"ridge": 0.0}, {"batch": 1}, {"steps": -1}, {"rate": -0.1}, {"most_work": 0.5}])
def test_settings_that_mean_nothing_raise(bad):
    with pytest.raises(ConfigError):
        LabelRefit(**bad)
