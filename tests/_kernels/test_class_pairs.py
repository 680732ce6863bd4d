"""Kernels of the solvers from class labels against their formulas, on cases small enough to run as plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, random_array

from sparserank._kernels.class_pairs import (
    pattern_step,
    product_rows,
    residual_rows,
    sampled_products,
    sparse_times,
    transpose,
)
from sparserank._kernels.contrast import adam, contrast_rows, multiply_rows

RNG = np.random.default_rng(0)
X = csr_array(random_array((6, 5), density=0.6, rng=np.random.default_rng(1), dtype=np.float32))
W = csr_array(random_array((5, 5), density=0.5, rng=np.random.default_rng(2), dtype=np.float32))
Y = RNG.normal(size=(6, 2)).astype(np.float32)
X.sort_indices()
W.sort_indices()


def residual(ridge=0.7, share=0.5):
    over = (X @ W @ X.T).toarray() - Y @ Y.T
    over *= np.where(np.eye(6), 1.0, 1.0 / share)
    return over @ X.toarray() + 2 * ridge * (X @ W).toarray()


def test_rows_of_a_product_are_those_of_the_product():
    B, out = RNG.normal(size=(7, 3)).astype(np.float32), np.empty((2, 7), np.float32)
    B[4, 1] = 0.0
    product_rows(B, np.ascontiguousarray(B.T), 3, out)
    assert_allclose(out, (B @ B.T)[3:5], rtol=1e-5)


def test_the_residual_of_a_batch_is_its_formula_and_a_call_writes_its_own_rows_only():
    H = np.full((6, 5), 9.0, np.float32)
    residual_rows(X.indptr, X.indices, X.data, W.indptr, W.indices, W.data, Y, 0.7, 0.5, 1, 5, H)
    assert_allclose(H[1:5], residual()[1:5], rtol=1e-4, atol=1e-5)
    assert (H[[0, 5]] == 9.0).all()


def test_a_step_on_the_pattern_is_one_of_adam_on_the_gradient_there():
    turned, H = X.T.tocsr(), residual().astype(np.float32)
    turned.sort_indices()
    row = np.repeat(np.arange(5), np.diff(W.indptr))
    mean, square, values = (np.zeros(W.nnz, np.float32) for _ in range(3))
    values += W.data
    how = (W.indptr, W.indices, values, mean, square, 0.25)
    for step in (1, 2):
        before, m, s = values.copy(), mean.copy(), square.copy()
        for start, stop in ((0, 2), (2, 5)):
            pattern_step(turned.indptr, turned.indices, turned.data, H, *how, 0.1, step, start, stop)
        gradient = (X.T @ H)[row, W.indices] + 0.25 * before
        assert_allclose(mean, 0.9 * m + 0.1 * gradient, rtol=1e-4, atol=1e-6)
        assert_allclose(square, 0.99 * s + 0.01 * gradient**2, rtol=1e-4, atol=1e-6)
        moved = 0.1 * mean / (1 - 0.9**step) / np.sqrt(square / (1 - 0.99**step))
        assert_allclose(values, before - moved, rtol=1e-4, atol=1e-6)


def test_products_on_a_pattern_are_those_of_whole_matrices():
    C = (X.T @ X).toarray()
    product, out = np.empty((5, 5), np.float32), np.empty(W.nnz, np.float32)
    for start, stop in ((0, 3), (3, 5)):
        sparse_times(W.indptr, W.indices, W.data, C, start, stop, product)
    assert_allclose(product, W @ C, rtol=1e-5)
    row = np.repeat(np.arange(5), np.diff(W.indptr))
    sampled_products(W.indptr, W.indices, C, product, 0, 5, out)
    assert_allclose(out, (C @ product.T)[row, W.indices], rtol=1e-5)


def test_a_matrix_is_turned_in_place():
    A = np.arange(67 * 67, dtype=np.float32).reshape(67, 67)
    turned = A.T.copy()
    transpose(A)
    assert_array_equal(A, turned)


def contrast(S, code, mix):
    """The loss as the kernel's text has it, in 64 bits."""
    out = np.zeros(len(code))
    for i in range(len(code)):
        others = np.arange(len(code)) != i
        winners, losers = others & (code == code[i]), code != code[i]
        if winners.any():
            supervised = np.log(np.exp(S[i, others]).sum()) - S[i, winners].mean()
            dominated = [np.log1p(np.exp(S[i, losers] - s).sum()) for s in S[i, winners]]
            out[i] = (1 - mix) * supervised + mix * np.mean(dominated)
    return out


@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_the_contrast_of_a_batch_and_its_slope_are_those_of_the_definition(mix):
    Z, code = RNG.normal(size=(7, 3)).astype(np.float32), np.array([0, 1, 0, 2, 1, 0, 1])
    slope, loss = np.full((7, 7), 9.0, np.float32), np.full(7, 9.0)
    for start, stop in ((0, 4), (4, 7)):
        contrast_rows(Z, np.ascontiguousarray(Z.T), code, mix, start, stop, slope, loss)
    S = (Z @ Z.T).astype(np.float64)
    assert_allclose(loss, contrast(S, code, mix), rtol=1e-5, atol=1e-6)
    for i in range(7):
        for j in range(7):
            bump = np.zeros((7, 7))
            bump[i, j] = 1e-5
            by = (contrast(S + bump, code, mix)[i] - contrast(S - bump, code, mix)[i]) / 2e-5
            assert slope[i, j] == pytest.approx(by, abs=2e-5)


def test_scores_as_large_as_float32_can_multiply_do_not_overflow():
    Z, code = np.array([[300.0], [-300.0], [200.0], [1.0]], np.float32), np.array([0, 0, 1, 1])
    slope, loss = np.empty((4, 4), np.float32), np.empty(4)
    contrast_rows(Z, np.ascontiguousarray(Z.T), code, 0.5, 0, 4, slope, loss)
    assert np.isfinite(slope).all()
    assert np.isfinite(loss).all()


def test_the_pull_of_a_batch_and_a_step_of_adam():
    slope, Z = RNG.normal(size=(4, 4)).astype(np.float32), RNG.normal(size=(4, 2)).astype(np.float32)
    pull = np.empty_like(Z)
    multiply_rows(slope, Z, 0, 1, pull)
    multiply_rows(slope, Z, 1, 4, pull)
    assert_allclose(pull, slope @ Z, rtol=1e-4, atol=1e-6)
    A, mean, square = np.ones_like(Z), np.zeros_like(Z), np.zeros_like(Z)
    adam(A, pull, mean, square, 0.1, 1)
    assert_allclose(A, 1.0 - 0.1 * np.sign(pull), rtol=1e-4)
