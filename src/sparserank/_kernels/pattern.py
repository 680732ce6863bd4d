"""Products of a sparse W with documents and queries, at the entries of W alone.

W is CSR, and its columns are words of documents. A call computes rows `first` … `last - 1` of W: rows are independent,
so any number of threads gives the same bits. Documents are stored by word (CSC of documents × words).
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def times_documents(first, last, start, column, weight, word_start, document, value, out):
    """out[i, d] = sum_j W[i, j] D[d, j] for rows i from `first` to `last`; out is zero there before."""
    for i in range(first, last):
        for p in range(start[i], start[i + 1]):
            w, j = weight[p], column[p]
            if w != 0.0:
                for t in range(word_start[j], word_start[j + 1]):
                    out[i, document[t]] += w * value[t]


@njit(cache=True, nogil=True)
def at_pairs(first, last, start, column, left, word_start, document, value, out):
    """out[p] += sum_d left[i, d] D[d, j] for every entry p = (i, j) of W."""
    for i in range(first, last):
        for p in range(start[i], start[i + 1]):
            j = column[p]
            total = np.float32(0.0)
            for t in range(word_start[j], word_start[j + 1]):
                total += left[i, document[t]] * value[t]
            out[p] += total


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
def gram_rows(first, last, gram_start, gram_column, gram, product, out):
    """out[i] = sum_k G[i, k] product[k] for rows i from `first` to `last`; out is zero there before."""
    for i in range(first, last):
        for g in range(gram_start[i], gram_start[i + 1]):
            k, factor = gram_column[g], gram[g]
            for d in range(product.shape[1]):
                out[i, d] += factor * product[k, d]


@njit(cache=True, nogil=True)
def between_grams(first, last, start, column, weight, gram_start, gram_column, gram, word_gram, out):
    """out[p] = (G W K)[i, j] for every entry p = (i, j) of W; G is CSR over its rows, K dense over its columns."""
    row = np.zeros(len(word_gram), np.float32)
    for i in range(first, last):
        if start[i] == start[i + 1]:
            continue
        _add_gram_row(i, start, column, weight, gram_start, gram_column, gram, row)
        for p in range(start[i], start[i + 1]):
            words, total = word_gram[column[p]], np.float32(0.0)
            for j in range(len(row)):
                total += row[j] * words[j]
            out[p] = total
        row[:] = 0.0
