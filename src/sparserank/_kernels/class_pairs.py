"""The squared loss of the scores of all pairs of a batch, for a W with a fixed pattern, and W = BBᵀ by rows.

With x the rows of the batch, w their share of all rows, and t_ij the target of pair (i, j),

    H = (xWxᵀ - t) x / w + 2 ridge · xW,    gradient on the pattern = (xᵀH)_P + ridge² w · W

is w times an unbiased estimate of the gradient of ½‖XWXᵀ - T‖² + ½ ridge (‖XW‖² + ‖WXᵀ‖² + ridge ‖W‖²) for a symmetric
W. The pair of a row with itself is in the batch whenever the row is, so these pairs are not divided by w. Each call
writes only its own rows of H, or of W, so the number of threads does not change the result.
"""

import math

import numpy as np
from numba import njit

ADAM_BETA_1, ADAM_BETA_2 = 0.9, 0.99
"""Adam's decay rates β₁ and β₂."""
STRIP = 128
"""Columns that are processed together, so that this part of all rows stays in the cache."""


@njit(cache=True, nogil=True)
def product_rows(B, transposed, start, out):
    """out[r] = B[start + r] @ transposed, `transposed` being Bᵀ; summed column by column of B."""
    for r in range(len(out)):
        out[r] = np.float32(0.0)
        for k in range(B.shape[1]):
            times = B[start + r, k]
            if times != 0.0:
                for j in range(out.shape[1]):
                    out[r, j] += times * transposed[k, j]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def residual_rows(ptr, idx, val, w_ptr, w_idx, w_val, targets, ridge, share, start, stop, H):
    """H[start:stop] as above, with t_ij = targets[i] · targets[j]."""
    double_ridge, scale = np.float32(2.0 * ridge), np.float32(1.0 / share)
    for q in range(start, stop):
        row = H[q]
        row[:] = np.float32(0.0)
        for t in range(ptr[q], ptr[q + 1]):
            x = val[t]
            for k in range(w_ptr[idx[t]], w_ptr[idx[t] + 1]):
                row[w_idx[k]] += x * w_val[k]
        residual = np.zeros(len(ptr) - 1, np.float32)
        for d in range(len(residual)):
            score = np.float32(0.0)
            for t in range(ptr[d], ptr[d + 1]):
                score += val[t] * row[idx[t]]
            for c in range(targets.shape[1]):
                score -= targets[q, c] * targets[d, c]
            residual[d] = score if d == q else score * scale
        for j in range(len(row)):
            row[j] *= double_ridge
        for d in range(len(residual)):
            for t in range(ptr[d], ptr[d + 1]):
                row[idx[t]] += residual[d] * val[t]


@njit(cache=True, nogil=True)
def pattern_step(ptr, idx, val, H, w_ptr, w_idx, w_val, mean, square, ridge, rate, step, start, stop):
    """Adam's update number `step` of the entries of W[start:stop]; ptr, idx, val are the CSR arrays of xᵀ."""
    longest = 0
    for i in range(start, stop):
        longest = max(longest, w_ptr[i + 1] - w_ptr[i])
    gradient = np.empty(longest, np.float32)
    scaled_rate = np.float32(rate / (1.0 - ADAM_BETA_1**step))
    correction = np.float32(1.0 / (1.0 - ADAM_BETA_2**step))
    for i in range(start, stop):
        first, n = w_ptr[i], w_ptr[i + 1] - w_ptr[i]
        for k in range(n):
            gradient[k] = np.float32(ridge) * w_val[first + k]
        for t in range(ptr[i], ptr[i + 1]):
            row, x = H[idx[t]], val[t]
            for k in range(n):
                gradient[k] += x * row[w_idx[first + k]]
        for k in range(n):
            g, at = gradient[k], first + k
            mean[at] += np.float32(1.0 - ADAM_BETA_1) * (g - mean[at])
            square[at] += np.float32(1.0 - ADAM_BETA_2) * (g * g - square[at])
            w_val[at] -= scaled_rate * mean[at] / (np.float32(math.sqrt(square[at] * correction)) + np.float32(1e-12))


@njit(cache=True, nogil=True)
def sparse_times(w_ptr, w_idx, w_val, C, start, stop, out):
    """out[i] = sum_j W[i, j] C[j], for i in start … stop - 1, by strips of columns of C."""
    for left in range(0, C.shape[1], STRIP):
        right = min(left + STRIP, C.shape[1])
        for i in range(start, stop):
            to = out[i, left:right]
            to[:] = np.float32(0.0)
            for k in range(w_ptr[i], w_ptr[i + 1]):
                w, row = w_val[k], C[w_idx[k], left:right]
                for j in range(right - left):
                    to[j] += w * row[j]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def sampled_products(w_ptr, w_idx, A, C, start, stop, out):
    """out[k] = A[i] · C[j] where the k-th entry of the pattern is (i, j), for i in start … stop - 1."""
    for k in range(w_ptr[start], w_ptr[stop]):
        out[k] = np.float32(0.0)
    for left in range(0, A.shape[1], STRIP):
        right = min(left + STRIP, A.shape[1])
        for i in range(start, stop):
            a = A[i, left:right]
            for k in range(w_ptr[i], w_ptr[i + 1]):
                c, total = C[w_idx[k], left:right], np.float32(0.0)
                for j in range(right - left):
                    total += a[j] * c[j]
                out[k] += total


@njit(cache=True, nogil=True)
def transpose(A):
    """Transpose a square matrix in place, by blocks that fit into the cache."""
    side, n = 64, len(A)
    for top in range(0, n, side):
        for left in range(top, n, side):
            for i in range(top, min(top + side, n)):
                for j in range(max(left, i + 1), min(left + side, n)):
                    A[i, j], A[j, i] = A[j, i], A[i, j]
