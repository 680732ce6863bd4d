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


@njit(cache=True, nogil=True)
def weights_at(place, terms, starts, docs, weights):
    """Return the weight of each term in one document, 0 if it lacks the term; docs of a term ascend."""
    out = np.zeros(len(terms), np.float32)
    for i in range(len(terms)):
        low, high = starts[terms[i]], starts[terms[i] + 1]
        end = high
        while low < high:
            middle = (low + high) // 2
            if docs[middle] < place:
                low = middle + 1
            else:
                high = middle
        if low < end and docs[low] == place:
            out[i] = weights[low]
    return out
