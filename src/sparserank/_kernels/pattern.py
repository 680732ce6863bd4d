"""Products of a sparse W with documents and queries, at the entries of W alone.

W is CSR, and its columns are words of documents. A call computes rows `first` … `last - 1` of W: rows are independent,
so any number of threads gives the same bits. Documents are stored by word (CSC of documents × words). Places are
unsigned in the innermost loops, where a test whether they are negative costs a third of the time.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def times_documents(first, last, start, column, weight, word_start, document, value, out):
    """out[i, d] = sum_j W[i, j] D[d, j] for rows i from `first` to `last`; out is zero there before."""
    for i in range(first, last):
        row = out[i]
        for p in range(start[i], start[i + 1]):
            w, j = weight[p], column[p]
            if w != 0.0:
                for t in range(np.uint64(word_start[j]), np.uint64(word_start[j + 1])):
                    row[np.uint32(document[t])] += w * value[t]


@njit(cache=True, nogil=True)
def _add_at_pairs(first, last, column, left, word_start, document, value, out):
    """out[p] += sum_d left[d] D[d, j] for the entries p = (i, j), first … last - 1, of one row i."""
    for p in range(first, last):
        j, total = column[p], np.float32(0.0)
        for t in range(np.uint64(word_start[j]), np.uint64(word_start[j + 1])):
            total += left[np.uint32(document[t])] * value[t]
        out[p] += total


@njit(cache=True, nogil=True)
def at_pairs(first, last, start, column, left, word_start, document, value, out):
    """out[p] += sum_d left[i, d] D[d, j] for every entry p = (i, j) of W."""
    for i in range(first, last):
        _add_at_pairs(start[i], start[i + 1], column, left[i], word_start, document, value, out)


@njit(cache=True, nogil=True)
def _add_gram_row(i, start, column, weight, gram_start, gram_column, gram, row):
    """row += (G W)[i]"""
    for g in range(gram_start[i], gram_start[i + 1]):
        k, factor = gram_column[g], gram[g]
        for p in range(start[k], start[k + 1]):
            row[column[p]] += factor * weight[p]


@njit(cache=True, nogil=True)
def gram_times(first, last, start, column, weight, gram_start, gram_column, gram, scale, n_columns, out):
    """out[p] += scale · (G W)[i, j] for every entry p = (i, j) of W, G being CSR over the rows of W."""
    row = np.zeros(n_columns, np.float32)
    for i in range(first, last):
        if start[i] == start[i + 1]:
            continue
        _add_gram_row(i, start, column, weight, gram_start, gram_column, gram, row)
        for p in range(start[i], start[i + 1]):
            out[p] += scale * row[column[p]]
        for g in range(gram_start[i], gram_start[i + 1]):
            k = gram_column[g]
            for p in range(start[k], start[k + 1]):
                row[column[p]] = 0.0


@njit(cache=True, nogil=True)
def gram_at_pairs(
    first, last, start, column, gram_start, gram_column, gram, product, word_start, document, value, out
):  # fmt: skip
    """out[p] += (G product D)[i, j] for every entry p = (i, j) of W; G is CSR over the rows of W and of product."""
    left = np.empty(product.shape[1], np.float32)
    for i in range(first, last):
        left[:] = 0.0
        for g in range(gram_start[i], gram_start[i + 1]):
            row, factor = product[gram_column[g]], gram[g]
            for d in range(len(left)):
                left[d] += factor * row[d]
        _add_at_pairs(start[i], start[i + 1], column, left, word_start, document, value, out)


@njit(cache=True, nogil=True)
def between_grams(
    first, last, start, column, weight, gram_start, gram_column, gram, word_start, word, word_gram, out
):  # fmt: skip
    """out[p] = (G W K)[i, j] for every entry p = (i, j) of W; G is CSR over its rows, K symmetric CSR over its columns.

    Most words never occur together, so a row of K has few entries; the row of G W stays in the cache.
    """
    row = np.zeros(len(word_start) - 1, np.float32)
    for i in range(first, last):
        if start[i] == start[i + 1]:
            continue
        _add_gram_row(i, start, column, weight, gram_start, gram_column, gram, row)
        for p in range(start[i], start[i + 1]):
            j = column[p]
            out[p] = _dot(np.uint64(word_start[j]), np.uint64(word_start[j + 1]), word, word_gram, row)
        row[:] = 0.0


@njit(cache=True, nogil=True)
def _dot(begin, end, place, value, row):
    """sum_t value[t] row[place[t]]: each addition of a sum waits for the one before, so four sums run side by side."""
    a, b, c, d = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    t, four = begin, np.uint64(4)
    while t + four <= end:
        a += value[t] * row[place[t]]
        b += value[t + np.uint64(1)] * row[place[t + np.uint64(1)]]
        c += value[t + np.uint64(2)] * row[place[t + np.uint64(2)]]
        d += value[t + np.uint64(3)] * row[place[t + np.uint64(3)]]
        t += four
    while t < end:
        a += value[t] * row[place[t]]
        t += np.uint64(1)
    return (a + b) + (c + d)
