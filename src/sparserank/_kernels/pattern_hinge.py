"""Stochastic steps on the hinge of triples, at the entries of a sparse W alone.

W is CSR, its columns being words of documents; queries and documents are CSR rows. One step follows another, so there
is one thread; a step costs what the rows of W hold that the words of its query have.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def steps(
    start, column, weight, drift, free, nonnegative, rate, margin, base, query, better, worse,
    query_start, query_word, query_value, item_start, item_word, item_value, difference,
):  # fmt: skip
    """Where base + qᵀ W (d⁺ - d⁻) < margin, W += rate · q (d⁺ - d⁻)ᵀ on the pattern, for triple after triple.

    drift[p] = sum_t t · (what step t, from 0 on, added to entry p), so weight - drift / n is the mean of the W after
    each of n steps. `difference` is scratch, zero before and after. Returns how many triples fell short.
    """
    short = 0
    for t in range(len(query)):
        q, plus, minus = query[t], better[t], worse[t]
        for e in range(item_start[plus], item_start[plus + 1]):
            difference[item_word[e]] += item_value[e]
        for e in range(item_start[minus], item_start[minus + 1]):
            difference[item_word[e]] -= item_value[e]
        score = np.float64(base[t])
        for e in range(query_start[q], query_start[q + 1]):
            i = query_word[e]
            row = 0.0
            for p in range(start[i], start[i + 1]):
                row += weight[p] * difference[column[p]]
            score += query_value[e] * row
        if score < margin:
            short += 1
            for e in range(query_start[q], query_start[q + 1]):
                i, size = query_word[e], rate[t] * query_value[e]
                for p in range(start[i], start[i + 1]):
                    change = size * difference[column[p]]
                    if change != 0.0 and free[p]:
                        if nonnegative and weight[p] + change < 0.0:
                            change = -weight[p]
                        weight[p] += change
                        drift[p] += t * change
        for e in range(item_start[plus], item_start[plus + 1]):
            difference[item_word[e]] = 0.0
        for e in range(item_start[minus], item_start[minus + 1]):
            difference[item_word[e]] = 0.0
    return short
