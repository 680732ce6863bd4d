"""Dense products of sparse matrices, against dense ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array, csr_array, random_array

from sparserank._kernels.products import transposed_product
from sparserank.optim.problems import csr_arrays


def sparse(shape, seed, kind):
    return kind(random_array(shape, density=0.3, rng=np.random.default_rng(seed), dtype=np.float32))


A, B = sparse((9, 6), 0, csc_array), sparse((9, 7), 1, csr_array)


@pytest.mark.parametrize("bounds", [[(0, 6)], [(0, 2), (2, 6)], [(i, i + 1) for i in (5, 0, 3, 1, 4, 2)]])
def test_columns_in_any_parts_give_the_product(bounds):
    out = np.full((6, 7), 9.0, np.float32)
    for first, last in bounds:
        transposed_product(first, last, *csr_arrays(A), *csr_arrays(B), out)
    assert_allclose(out, A.toarray().T @ B.toarray(), rtol=1e-6)


def test_rows_outside_the_bounds_are_not_touched():
    out = np.full((6, 7), 9.0, np.float32)
    transposed_product(2, 3, *csr_arrays(A), *csr_arrays(B), out)
    assert_array_equal(out[[0, 1, 3, 4, 5]], 9.0)
    assert (out[2] != 9.0).any()


def test_sums_are_in_float64():
    """2²⁴ + 1 - 2²⁴ is 0 in float32."""
    one = csc_array(np.ones((3, 1), np.float32))
    other = csr_array(np.array([[2.0**24], [1.0], [-(2.0**24)]], np.float32))
    out = np.zeros((1, 1), np.float32)
    transposed_product(0, 1, *csr_arrays(one), *csr_arrays(other), out)
    assert out[0, 0] == 1.0


def test_matrices_without_entries_give_zeros():
    out = np.full((6, 7), 9.0, np.float32)
    transposed_product(0, 6, *csr_arrays(csc_array((9, 6), dtype=np.float32)), *csr_arrays(B), out)
    assert_array_equal(out, 0.0)
