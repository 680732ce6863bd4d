"""Norms of the columns of X, and the ranges of their values within queries."""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def lengths(pointer, values, out):
    """out[r] = (sum_i X[i, r]²)^½, relative to the largest entry of the column so that no square overflows."""
    for r in range(len(out)):
        most, total = 0.0, 0.0
        for p in range(pointer[r], pointer[r + 1]):
            most = max(most, abs(np.float64(values[p])))
        if most > 0.0:
            for p in range(pointer[r], pointer[r + 1]):
                total += (values[p] / most) ** 2
        out[r] = most * math.sqrt(total)


@njit(cache=True, nogil=True, error_model="numpy")
def ranges(pointer, rows, values, query, size, mass, widest, curvature):
    """The largest range (maximum - minimum) of each feature within a query, and sum_q mass_q range_q² / 4.

    A row without a query (a number below 0) is ignored; a row without an entry has the value 0.
    """
    n = len(size)
    least, most, seen = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
    touched = np.empty(n, np.int64)
    for r in range(len(pointer) - 1):
        count = 0
        for p in range(pointer[r], pointer[r + 1]):
            q = query[rows[p]]
            if q < 0:
                continue
            x = np.float64(values[p])
            if seen[q] == 0:
                touched[count] = q
                count += 1
                least[q] = most[q] = x
            seen[q] += 1
            least[q], most[q] = min(least[q], x), max(most[q], x)
        wide, total = 0.0, 0.0
        for t in range(count):
            q = touched[t]
            if seen[q] < size[q]:
                least[q], most[q] = min(least[q], 0.0), max(most[q], 0.0)
            gap = most[q] - least[q]
            wide = max(wide, gap)
            total += mass[q] * gap * gap / 4.0
            seen[q] = 0
        widest[r], curvature[r] = wide, total
