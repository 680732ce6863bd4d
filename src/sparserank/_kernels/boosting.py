"""RankBoost: the weights of all pairs in time linear in the rows, and the best decision stump of every feature."""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _log_add(a, b):
    """log(exp(a) + exp(b)); either may be -inf."""
    high, low = (a, b) if a > b else (b, a)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


@njit(cache=True, nogil=True)
def potentials(score, log_weight, level, query_levels):
    """potential[p] = weight of the pairs that row p should win - weight of those it should lose; and log(total weight).

    The pair (i, j) of one query, i of a higher level, has the weight w_i exp(s_j - s_i) / total. The losers of a level
    are a suffix of its query, so a log-sum-exp over levels suffices: the time is linear in the rows, and no exponent
    overflows. `log_weight` is log(w_i).
    """
    n = len(score)
    win = np.full(n, -math.inf)
    lose = np.full(n, -math.inf)
    highest = -math.inf
    for q in range(len(query_levels) - 1):
        below = -math.inf
        for tier in range(query_levels[q + 1] - 1, query_levels[q] - 1, -1):
            own = -math.inf
            for p in range(level[tier], level[tier + 1]):
                if below > -math.inf:
                    win[p] = log_weight[p] - score[p] + below
                    highest = max(highest, win[p])
                own = _log_add(own, score[p])
            below = _log_add(below, own)
        above = -math.inf
        for tier in range(query_levels[q], query_levels[q + 1]):
            own = -math.inf
            for p in range(level[tier], level[tier + 1]):
                if above > -math.inf:
                    lose[p] = score[p] + above
                own = _log_add(own, log_weight[p] - score[p])
            above = _log_add(above, own)
    total = 0.0
    for p in range(n):
        total += math.exp(win[p] - highest)
    potential = np.empty(n)
    for p in range(n):
        potential[p] = (math.exp(win[p] - highest) - math.exp(lose[p] - highest)) / total
    return potential, highest + math.log(total)


@njit(cache=True, nogil=True)
def best_stumps(potential, starts, rows, values, n):
    """For each feature, r and the threshold with the largest |r|, r = sum of the potential of rows with x > threshold.

    Feature f has the entries starts[f] … starts[f + 1] - 1, by falling value; all other of the n rows are zero. A
    threshold is halfway between two neighbouring different values. A feature with only one value has r = 0.
    """
    features = len(starts) - 1
    best = np.zeros(features)
    cut = np.zeros(features)
    for f in range(features):
        first, last = starts[f], starts[f + 1]
        zeros = n - (last - first)
        above, hidden = 0.0, 0.0
        if zeros > 0:
            for k in range(first, last):
                hidden -= potential[rows[k]]
        k = first
        passed = zeros == 0
        while k < last or not passed:
            if not passed and (k == last or values[k] <= 0.0):
                here = 0.0
                above += hidden
                passed = True
                while k < last and values[k] == 0.0:
                    above += potential[rows[k]]
                    k += 1
            else:
                here = values[k]
                while k < last and values[k] == here:
                    above += potential[rows[k]]
                    k += 1
            if k < last and (passed or values[k] > 0.0):
                after = values[k]
            elif not passed:
                after = 0.0
            else:
                break
            if abs(above) > abs(best[f]):
                best[f] = above
                cut[f] = after + 0.5 * (here - after)
                if not (cut[f] < here):
                    cut[f] = after
    return best, cut


@njit(cache=True, nogil=True)
def sort_columns(starts, rows, values):
    """Sort the entries of every column by falling value, in place."""
    for f in range(len(starts) - 1):
        first, last = starts[f], starts[f + 1]
        order = np.argsort(-values[first:last], kind="mergesort")
        values[first:last] = values[first:last][order]
        rows[first:last] = rows[first:last][order]


@njit(cache=True, nogil=True)
def _step(x, first, last, cut, alpha):
    """The sum of alpha over the thresholds below x; thresholds rise."""
    total = 0.0
    k = first
    while k < last and cut[k] < x:
        total += alpha[k]
        k += 1
    return total


@njit(cache=True, nogil=True)
def add_steps(indptr, indices, data, starts, cut, alpha, out):
    """out[i] += sum_f step_f(x_if) - step_f(0) over stored x_if; the caller adds step_f(0) of every feature."""
    features = len(starts) - 1
    at_zero = np.empty(features)
    for f in range(features):
        at_zero[f] = _step(0.0, starts[f], starts[f + 1], cut, alpha)
    for i in range(len(indptr) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            f = indices[k]
            if starts[f] < starts[f + 1]:
                out[i] += _step(data[k], starts[f], starts[f + 1], cut, alpha) - at_zero[f]


@njit(cache=True, nogil=True)
def add_steps_dense(X, starts, cut, alpha, out):
    """out[i] += sum_f step_f(x_if)"""
    for f in range(len(starts) - 1):
        if starts[f] < starts[f + 1]:
            for i in range(X.shape[0]):
                out[i] += _step(X[i, f], starts[f], starts[f + 1], cut, alpha)
