"""Products at the entries of W alone, against dense ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array, csr_array, random_array

from sparserank._kernels.pattern import at_pairs, between_grams, gram_at_pairs, gram_times, times_documents


def sparse(shape, seed, kind=csr_array):
    return kind(random_array(shape, density=0.4, rng=np.random.default_rng(seed), dtype=np.float32))


W, D = sparse((5, 6), 0), sparse((7, 6), 1, csc_array)
W.data[3] = 0.0
GRAM = csr_array(sparse((5, 5), 2) + csr_array(np.eye(5, dtype=np.float32)))
BOUNDS = [[(0, 5)], [(0, 2), (2, 5)], [(i, i + 1) for i in (4, 0, 3, 1, 2)]]


def at_entries(dense):
    row = np.repeat(np.arange(5), np.diff(W.indptr))
    return dense[row, W.indices]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_rows_of_W_times_documents(bounds):
    out = np.zeros((5, 7), np.float32)
    for first, last in bounds:
        times_documents(first, last, W.indptr, W.indices, W.data, D.indptr, D.indices, D.data, out)
    assert_allclose(out, W.toarray() @ D.toarray().T, rtol=1e-5)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_dense_left_side_times_documents_at_the_entries_is_added(bounds):
    left = np.random.default_rng(3).normal(size=(5, 7)).astype(np.float32)
    out = np.ones(W.nnz, np.float32)
    for first, last in bounds:
        at_pairs(first, last, W.indptr, W.indices, left, D.indptr, D.indices, D.data, out)
    assert_allclose(out, 1.0 + at_entries(left @ D.toarray()), rtol=1e-5)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_gram_matrix_times_W_at_the_entries_is_added(bounds):
    out = np.ones(W.nnz, np.float32)
    for first, last in bounds:
        gram_times(
            first, last, W.indptr, W.indices, W.data, GRAM.indptr, GRAM.indices, GRAM.data, np.float32(0.5), 6, out
        )  # fmt: skip
    assert_allclose(out, 1.0 + 0.5 * at_entries(GRAM.toarray() @ W.toarray()), rtol=1e-5)


def test_rows_outside_the_bounds_are_not_touched():
    out = np.full((5, 7), 9.0, np.float32)
    times_documents(1, 1, W.indptr, W.indices, W.data, D.indptr, D.indices, D.data, out)
    assert_array_equal(out, 9.0)
    pairs = np.full(W.nnz, 9.0, np.float32)
    at_pairs(0, 2, W.indptr, W.indices, out, D.indptr, D.indices, D.data, pairs)
    gram_times(0, 2, W.indptr, W.indices, W.data, GRAM.indptr, GRAM.indices, GRAM.data, np.float32(1.0), 6, pairs)
    assert_array_equal(pairs[W.indptr[2] :], 9.0)
    assert (pairs[: W.indptr[2]] != 9.0).any()


def test_a_row_without_entries_is_passed_over():
    empty = csr_array((5, 6), dtype=np.float32)
    out = np.zeros(0, np.float32)
    gram_times(
        0, 5, empty.indptr, empty.indices, empty.data, GRAM.indptr, GRAM.indices, GRAM.data, np.float32(1.0), 6, out
    )  # fmt: skip
    assert len(out) == 0


@pytest.mark.parametrize("bounds", BOUNDS)
def test_gram_times_dense_rows_and_documents(bounds):
    product = np.random.default_rng(4).normal(size=(5, D.shape[0])).astype(np.float32)
    out, gram = np.ones(W.nnz, np.float32), (GRAM.indptr, GRAM.indices, GRAM.data)
    for bound in bounds:
        gram_at_pairs(*bound, W.indptr, W.indices, *gram, product, D.indptr, D.indices, D.data, out)
    assert_allclose(out, 1.0 + at_entries(GRAM.toarray() @ product @ D.toarray()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_W_between_two_gram_matrices(bounds):
    half, out = sparse((6, 6), 3), np.zeros(W.nnz, np.float32)
    words = csr_array(half + half.T)
    gram, of_words = ((one.indptr, one.indices, one.data) for one in (GRAM, words))
    for bound in bounds:
        between_grams(*bound, W.indptr, W.indices, W.data, *gram, *of_words, out)
    assert_allclose(out, at_entries(GRAM.toarray() @ W.toarray() @ words.toarray()), rtol=1e-5, atol=1e-6)
