"""Rows of W as they stand: scaled, measured, and copied out. How they are kept is told in `pair_rows`."""

import numpy as np
from numba import njit

_ZERO = np.float32(0.0)


@njit(cache=True, nogil=True, inline="always")
def _soft(z, s):
    """sign(z) · max(0, |z| - s)"""
    return z - min(max(z, -s), s)


@njit(cache=True, nogil=True)
def scale(first, stride, factor, level, home, sizes, heads, start, size, val):
    """Multiply row i by factor[i]; the rows must owe nothing."""
    for i in range(first, len(level), stride):
        f = np.float32(factor[i])
        if f != np.float32(1.0):
            for j in range(home[i], home[i] + sizes[level[i]]):
                heads[j] *= f
            for k in range(start[i], start[i] + size[i]):
                val[k] *= f


@njit(cache=True, nogil=True)
def squared_lengths(first, stride, level, home, sizes, heads, start, size, val, out):
    """out[i] = sum of the squares of row i; the rows must owe nothing."""
    for i in range(first, len(level), stride):
        total = 0.0
        for j in range(home[i], home[i] + sizes[level[i]]):
            total += np.float64(heads[j]) * np.float64(heads[j])
        for k in range(start[i], start[i] + size[i]):
            total += np.float64(val[k]) * np.float64(val[k])
        out[i] = total


@njit(cache=True, nogil=True)
def unload(first, stride, debt, level, home, sizes, heads, start, size, idx, val, ptr, out_idx, out_val):
    """Copy the rows of a block, their debts paid, to out[ptr[i]:]; counts[i] = how many there are.

    With empty `out_idx` only the counting is done.
    """
    s, counting = np.float32(debt), len(out_idx) == 0
    counts = np.zeros(len(level), np.int64)
    for i in range(first, len(level), stride):
        n = ptr[i]
        for j in range(sizes[level[i]]):
            v = _soft(heads[home[i] + j], s)
            if v != _ZERO:
                if not counting:
                    out_idx[n], out_val[n] = j, v
                n += 1
        for k in range(start[i], start[i] + size[i]):
            v = _soft(val[k], s)
            if v != _ZERO:
                if not counting:
                    out_idx[n], out_val[n] = idx[k], v
                n += 1
        counts[i] = n - ptr[i]
    return counts
