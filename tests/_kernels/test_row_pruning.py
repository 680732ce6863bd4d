"""Dense rows of sparse products, and their important entries, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array, csr_array, random_array

from sparserank._kernels.row_pruning import COLUMNS, find_important, times_columns, times_dense

RNG = np.random.default_rng(0)


def sparse(shape, kind):
    return kind(random_array(shape, density=0.4, rng=np.random.default_rng(1), dtype=np.float32))


def test_a_sparse_matrix_times_a_dense_one():
    X, M = sparse((4, 6), csr_array), RNG.normal(size=(6, 5)).astype(np.float32)
    out = np.full((4, 5), 9.0, np.float32)
    times_dense(X.indptr, X.indices, X.data, M, out)
    assert_allclose(out, X.toarray() @ M, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_columns", [1, COLUMNS, 2 * COLUMNS + 3])
def test_a_dense_matrix_times_a_sparse_one(n_columns):
    X, left = sparse((6, n_columns), csc_array), RNG.normal(size=(6, 5)).astype(np.float32)
    out = np.full((5, n_columns), 9.0, np.float32)
    times_columns(left, X.indptr, X.indices, X.data, out)
    assert_allclose(out, left.T @ X.toarray(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 100.0])
def test_entries_above_the_threshold_come_by_place(nonnegative, threshold):
    block = (RNG.normal(size=(4, 9)) * (RNG.random((4, 9)) < 0.8)).astype(np.float32)
    rows, columns = RNG.random(4).astype(np.float32), RNG.random(9).astype(np.float32)
    importance = np.abs(block) * columns * rows[:, None]
    i, j = np.nonzero((importance > threshold) & ((block > 0.0) | (not nonnegative)))
    found = find_important(block, rows, columns, np.float32(threshold), nonnegative)
    for part, expected in zip(found, (i, j, block[i, j], importance[i, j]), strict=True):
        assert_array_equal(part, expected)
