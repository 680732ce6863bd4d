"""PAMIR's passive-aggressive updates: the smallest change of the weights that gives a triple margin 1, at most C.

Triple t prefers row better[t] to row worse[t], and Δ is their difference. `drift` is the sum of each update times the
number of steps before it, so the mean of the weights over T steps is w - drift / T.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _difference(indptr, indices, data, better, worse, columns, values):
    """Write Δ to `columns`, in rising order, and `values`; returns the number of nonzeros and ‖Δ‖²."""
    i, i_end = indptr[better], indptr[better + 1]
    j, j_end = indptr[worse], indptr[worse + 1]
    n = 0
    square = 0.0
    while i < i_end or j < j_end:
        if j == j_end or (i < i_end and indices[i] < indices[j]):
            column, value = indices[i], np.float64(data[i])
            i += 1
        elif i == i_end or indices[j] < indices[i]:
            column, value = indices[j], -np.float64(data[j])
            j += 1
        else:
            column, value = indices[i], np.float64(data[i]) - np.float64(data[j])
            i += 1
            j += 1
        if value != 0.0:
            columns[n] = column
            values[n] = value
            square += value * value
            n += 1
    return n, square


@njit(cache=True, nogil=True)
def _buffers(indptr):
    """Arrays for the columns and values of the longest possible difference."""
    widest = 0
    for row in range(len(indptr) - 1):
        widest = max(widest, indptr[row + 1] - indptr[row])
    columns = np.empty(2 * widest, dtype=np.int64)
    values = np.empty(2 * widest)
    return columns, values


@njit(cache=True, nogil=True)
def linear_steps(indptr, indices, data, better, worse, C, done, w, drift):
    """If w·Δ < 1: τ = min(C, (1 - w·Δ) / ‖Δ‖²), w += τ Δ, triple by triple; returns the number of violations."""
    columns, values = _buffers(indptr)
    violations = 0
    for t in range(len(better)):
        n, square = _difference(indptr, indices, data, better[t], worse[t], columns, values)
        margin = 0.0
        for k in range(n):
            margin += w[columns[k]] * values[k]
        if margin < 1.0:
            violations += 1
            if square > 0.0:
                tau = min(C, (1.0 - margin) / square)
                for k in range(n):
                    w[columns[k]] += tau * values[k]
                    drift[columns[k]] += (done + t) * tau * values[k]
    return violations


@njit(cache=True, nogil=True)
def dense_steps(X, better, worse, C, done, w, drift):
    """`linear_steps` on the rows of a dense array."""
    violations = 0
    delta = np.empty(X.shape[1])
    for t in range(len(better)):
        square, margin = 0.0, 0.0
        for f in range(X.shape[1]):
            delta[f] = np.float64(X[better[t], f]) - np.float64(X[worse[t], f])
            square += delta[f] * delta[f]
            margin += w[f] * delta[f]
        if margin < 1.0:
            violations += 1
            if square > 0.0:
                tau = min(C, (1.0 - margin) / square)
                for f in range(X.shape[1]):
                    w[f] += tau * delta[f]
                    drift[f] += (done + t) * tau * delta[f]
    return violations


@njit(cache=True, nogil=True)
def bilinear_steps(
    q_indptr, q_indices, q_data, indptr, indices, data, query, better, worse, C, done, W, drift, average
):
    """If qᵀWΔ < 1: τ = min(C, loss / (‖q‖² ‖Δ‖²)), W += τ q Δᵀ. `drift` is written only for the average."""
    columns, values = _buffers(indptr)
    violations = 0
    for t in range(len(query)):
        n, square = _difference(indptr, indices, data, better[t], worse[t], columns, values)
        first, last = q_indptr[query[t]], q_indptr[query[t] + 1]
        margin, length = 0.0, 0.0
        for a in range(first, last):
            value = np.float64(q_data[a])
            length += value * value
            for k in range(n):
                margin += value * W[q_indices[a], columns[k]] * values[k]
        if margin < 1.0:
            violations += 1
            if square * length > 0.0:
                tau = min(C, (1.0 - margin) / (square * length))
                for a in range(first, last):
                    step = tau * np.float64(q_data[a])
                    for k in range(n):
                        W[q_indices[a], columns[k]] += step * values[k]
                        if average:
                            drift[q_indices[a], columns[k]] += (done + t) * step * values[k]
    return violations
