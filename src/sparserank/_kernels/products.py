"""Dense products of sparse matrices, summed in float64."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def transposed_product(first, last, a_start, a_row, a_value, b_start, b_column, b_value, out):
    """out[i] = sum_r A[r, i] B[r] for the columns i = first … last - 1 of A (CSC); B is CSR, out is float32."""
    total = np.zeros(out.shape[1], np.float64)
    for i in range(first, last):
        for a in range(a_start[i], a_start[i + 1]):
            row, factor = a_row[a], np.float64(a_value[a])
            for b in range(b_start[row], b_start[row + 1]):
                total[b_column[b]] += factor * np.float64(b_value[b])
        for j in range(len(total)):
            out[i, j] = np.float32(total[j])
            total[j] = 0.0
