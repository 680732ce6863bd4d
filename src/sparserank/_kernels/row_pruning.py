"""Rows of a dense product of sparse matrices, and which of their entries are important enough to stay."""

import numpy as np
from numba import njit

COLUMNS = 8
"""Columns that `times_columns` makes at a time, so that it writes whole cache lines."""


@njit(cache=True, nogil=True)
def times_dense(start, column, value, M, out):
    """out[i] = sum_k X[i, k] M[k], X being CSR."""
    for i in range(len(start) - 1):
        out[i] = 0.0
        for t in range(start[i], start[i + 1]):
            row, factor = M[column[t]], value[t]
            for j in range(len(row)):
                out[i, j] += factor * row[j]


@njit(cache=True, nogil=True)
def times_columns(left, start, row, value, out):
    """out[i, j] = sum_r left[r, i] X[r, j], X being CSC."""
    work = np.empty((COLUMNS, left.shape[1]), np.float32)
    for first in range(0, out.shape[1], COLUMNS):
        last = min(first + COLUMNS, out.shape[1])
        work[:] = 0.0
        for j in range(first, last):
            for t in range(start[j], start[j + 1]):
                r, factor = row[t], value[t]
                for i in range(left.shape[1]):
                    work[j - first, i] += factor * left[r, i]
        for i in range(left.shape[1]):
            for j in range(first, last):
                out[i, j] = work[j - first, i]


@njit(cache=True, nogil=True)
def find_important(block, rows, columns, threshold, nonnegative):
    """Row, column, weight and importance |w_ij| · columns[j] · rows[i] of the entries with more than `threshold`."""
    count = 0
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            count += (abs(block[i, j]) * columns[j] * rows[i] > threshold) & (block[i, j] > 0.0 or not nonnegative)
    row, column = np.empty(count, np.int64), np.empty(count, np.int64)
    weight, value = np.empty(count, np.float32), np.empty(count, np.float32)
    at = 0
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            importance = abs(block[i, j]) * columns[j] * rows[i]
            if importance > threshold and (block[i, j] > 0.0 or not nonnegative):
                row[at], column[at], weight[at], value[at] = i, j, block[i, j], importance
                at += 1
    return row, column, weight, value
