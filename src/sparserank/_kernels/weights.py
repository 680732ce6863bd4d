"""Row arithmetic on CSR arrays."""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def row_lengths(indptr, values):
    """out[i] = sqrt(sum over row i of values**2), summed in 64 bits."""
    out = np.zeros(len(indptr) - 1, np.float64)
    for i in range(len(out)):
        total = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            total += np.float64(values[j]) * np.float64(values[j])
        out[i] = math.sqrt(total)
    return out


@njit(cache=True, nogil=True)
def scale_rows(indptr, values, divisor):
    """values of row i /= divisor[i], in place; a row whose divisor is 0 is left alone."""
    for i in range(len(indptr) - 1):
        if divisor[i] > 0.0:
            for j in range(indptr[i], indptr[i + 1]):
                values[j] = np.float32(np.float64(values[j]) / divisor[i])
