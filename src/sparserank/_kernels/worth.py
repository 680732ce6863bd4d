"""What a ranking is worth to each query, ties counted as the mean over every order of the tied rows."""

import math

import numpy as np
from numba import njit

AVERAGE_PRECISION = 0
DISCOUNTED_GAIN = 1


@njit(cache=True, nogil=True)
def worths(score, gain, start, measure, cutoff, out):
    """out[q] = the measure of query q, places start[q] … start[q + 1] - 1, ranked by falling score.

    Average precision: relevant are rows with a positive gain, and cutoff does not matter. Discounted gain: of the first
    `cutoff` ranks, with discount 1 / log2(1 + rank); the caller divides by the ideal. Nothing relevant: 0.
    """
    for q in range(len(start) - 1):
        first, last = start[q], start[q + 1]
        order = np.argsort(-score[first:last])
        total = 0.0
        relevant_above, above = 0.0, 0
        k = 0
        while k < last - first:
            end, tied, sum_gain = k, 0.0, 0.0
            while end < last - first and score[first + order[end]] == score[first + order[k]]:
                here = gain[first + order[end]]
                sum_gain += here
                tied += 1.0 if here > 0.0 else 0.0
                end += 1
            size = end - k
            if measure == DISCOUNTED_GAIN:
                for rank in range(k + 1, min(end, cutoff) + 1):
                    total += sum_gain / size / math.log2(1.0 + rank)
            elif tied > 0.0:
                further = (tied - 1.0) / (size - 1.0) if size > 1 else 0.0
                for i in range(size):
                    total += tied / size * (relevant_above + 1.0 + i * further) / (above + i + 1.0)
            relevant_above += tied
            above += size
            k = end
        if measure == AVERAGE_PRECISION and relevant_above > 0.0:
            total /= relevant_above
        out[q] = total
