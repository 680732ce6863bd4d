"""Exact scores of some documents, summed like the inverted index: in float64, over ascending columns."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def rescore(
    first, last, q_starts, q_terms, q_weights, w_starts, w_rows, w_weights, W_starts, W_columns, W_values,
    pair_weight, pair_offset, r_starts, r_terms, r_weights, docs, counts, expanded, scores,
):  # fmt: skip
    """Set scores[i, j] to the score of docs[i, j] for query i, j < counts[i]; `expanded` is 0 before and after."""
    for query in range(first, last):
        for i in range(q_starts[query], q_starts[query + 1]):
            expanded[q_terms[i]] += np.float64(q_weights[i])
        for i in range(w_starts[query], w_starts[query + 1]):
            row, weight = w_rows[i], pair_weight * np.float64(w_weights[i])
            for j in range(W_starts[row], W_starts[row + 1]):
                expanded[pair_offset + W_columns[j]] += weight * np.float64(W_values[j])
        for place in range(counts[query]):
            doc, total = docs[query, place], 0.0
            for j in range(r_starts[doc], r_starts[doc + 1]):
                if 0 <= r_terms[j] < len(expanded):  # a damaged file may hold any number
                    total += expanded[r_terms[j]] * np.float64(r_weights[j])
            scores[query, place] = np.float32(total)
        for i in range(q_starts[query], q_starts[query + 1]):
            expanded[q_terms[i]] = 0.0
        for i in range(w_starts[query], w_starts[query + 1]):
            for j in range(W_starts[w_rows[i]], W_starts[w_rows[i] + 1]):
                expanded[pair_offset + W_columns[j]] = 0.0


SCANNED_POSTINGS = 64
"""A list of at most so many postings for each wanted document is read from the start; a longer one is searched."""


@njit(cache=True, nogil=True)
def weights_at(places, terms, starts, docs, weights):
    """Return out[i, j], the weight of term j in document places[i], 0 if it lacks the term.

    `places` ascend, and so do the documents of a term.
    """
    out = np.zeros((len(places), len(terms)), np.float32)
    for j in range(len(terms)):
        at, end = starts[terms[j]], starts[terms[j] + 1]
        is_short = end - at <= SCANNED_POSTINGS * (len(places) - 1)
        for i in range(len(places)):
            place, high = places[i], end
            if is_short:
                while at < end and docs[at] < place:
                    at += 1
            else:
                while at < high:
                    middle = (at + high) // 2
                    if docs[middle] < place:
                        at = middle + 1
                    else:
                        high = middle
            if at == end:
                break
            if docs[at] == place:
                out[i, j] = weights[at]
    return out


@njit(cache=True, nogil=True)
def contributions(found, terms, weights, n_lexical, k):
    """Explain the scores of documents: found[i, terms[j]] * weights[j] is contribution j to the score of document i.

    Return the positions of the k largest contributions of each document by absolute value, how many there are, and the
    sums of all that are positive and lexical (j < n_lexical), positive and learned, or negative. Of equal ones the
    first comes first.
    """
    top, counts, sums = np.zeros((len(found), k), np.int64), np.zeros(len(found), np.int64), np.zeros((len(found), 3))
    sizes = np.zeros(k)
    for row in range(len(found)):
        n = 0
        for j in range(len(weights)):
            value = weights[j] * np.float64(found[row, terms[j]])
            if value == 0.0:
                continue
            sums[row, 2 if value < 0.0 else 1 if j >= n_lexical else 0] += value
            size = abs(value)
            if n == k and (k == 0 or size <= sizes[n - 1]):
                continue
            n += n < k
            at = n - 1
            while at > 0 and sizes[at - 1] < size:
                top[row, at], sizes[at] = top[row, at - 1], sizes[at - 1]
                at -= 1
            top[row, at], sizes[at] = j, size
        counts[row] = n
    return top, counts, sums
