"""Rankings with ties, as the mean over every order of the tied rows."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _run_end(score, order, first, k):
    """Where the run of scores equal to that of order[k] ends."""
    end = k
    while end < len(order) and score[first + order[end]] == score[first + order[k]]:
        end += 1
    return end


@njit(cache=True, nogil=True)
def expected_gains(score, gain, start, out):
    """out[start[q] + r - 1] = the mean gain at rank r of query q, whose rows are start[q] … start[q + 1] - 1."""
    for q in range(len(start) - 1):
        first, n = start[q], start[q + 1] - start[q]
        order = np.argsort(-score[first : first + n])
        k = 0
        while k < n:
            end = _run_end(score, order, first, k)
            total = 0.0
            for i in range(k, end):
                total += gain[first + order[i]]
            out[first + k : first + end] = total / (end - k)
            k = end


@njit(cache=True, nogil=True)
def average_precisions(score, gain, start, out):
    """out[q] = the mean average precision of query q; rows with a positive gain are relevant. 0 without any."""
    for q in range(len(start) - 1):
        first, n = start[q], start[q + 1] - start[q]
        order = np.argsort(-score[first : first + n])
        total, relevant_above, k = 0.0, 0.0, 0
        while k < n:
            end = _run_end(score, order, first, k)
            size, relevant = end - k, 0.0
            for i in range(k, end):
                relevant += 1.0 if gain[first + order[i]] > 0.0 else 0.0
            if relevant > 0.0:
                # Given a relevant row at place i of the run, each of the i rows above it is relevant with this chance.
                chance = (relevant - 1.0) / (size - 1.0) if size > 1 else 0.0
                for i in range(size):
                    total += relevant / size * (relevant_above + 1.0 + i * chance) / (k + i + 1.0)
            relevant_above += relevant
            k = end
        out[q] = total / relevant_above if relevant_above > 0.0 else 0.0
