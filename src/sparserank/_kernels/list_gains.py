"""Discounted gains of dense scores, row by row."""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def gains(scores, own, start, item, grade, k, out, best):
    """out[i] = sum over the k best items of row i of grade / log2(rank + 1); best[i] the most that can be had.

    Ties go to the earlier item; item own[i] is no item of row i (none: below 0), and neither is one at -inf.
    """
    n, m = scores.shape
    graded = np.zeros(m, np.float64)
    top_score, top_item, ideal = np.empty(k, np.float64), np.empty(k, np.int64), np.empty(k, np.float64)
    for i in range(n):
        for p in range(start[i], start[i + 1]):
            graded[item[p]] = grade[p]
        top_score[:], ideal[:] = -np.inf, 0.0
        filled = 0
        for j in range(m):
            s = scores[i, j]
            if j != own[i] and s > top_score[k - 1]:
                at = k - 1
                while at > 0 and s > top_score[at - 1]:
                    top_score[at], top_item[at] = top_score[at - 1], top_item[at - 1]
                    at -= 1
                top_score[at], top_item[at] = s, j
                filled = min(filled + 1, k)
        for rank in range(filled):
            out[i] += graded[top_item[rank]] / math.log2(rank + 2.0)
        for p in range(start[i], start[i + 1]):
            g = np.float64(grade[p])
            graded[item[p]] = 0.0
            if g > ideal[k - 1]:
                at = k - 1
                while at > 0 and g > ideal[at - 1]:
                    ideal[at] = ideal[at - 1]
                    at -= 1
                ideal[at] = g
        for rank in range(k):
            best[i] += ideal[rank] / math.log2(rank + 2.0)
