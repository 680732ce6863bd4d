"""The hinge loss over all pairs of a query by sorting and counting, in O(n log n) without a list of pairs.

A pair (i, j) of one query, i of a better level (a smaller number), counts w_i h(1 - (s_i - s_j)) with h(z) = max(0, z)
or its square. Query q has the rows start[q] … start[q + 1] - 1, and tier[p] is the level of row p. A Fenwick tree over
the levels sums the rows passed so far, in the order of their scores.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _add(tree, at, one, two):
    while at < tree.shape[0]:
        tree[at, 0] += one
        tree[at, 1] += two
        at += at & -at


@njit(cache=True, nogil=True)
def _sum_to(tree, at):
    one, two = 0.0, 0.0
    while at > 0:
        one += tree[at, 0]
        two += tree[at, 1]
        at -= at & -at
    return one, two


@njit(cache=True, nogil=True)
def _sweep(score, value, weight, tier, start):
    """beaten[p] = (count, sum of values) of the losers of p with s_j > s_p - 1; beating[p]: weighted, of its winners.

    A query of one level has no pairs, and its rows have zeros.
    """
    beaten, beating = np.zeros((len(score), 2)), np.zeros((len(score), 2))
    for q in range(len(start) - 1):
        first, n = start[q], start[q + 1] - start[q]
        best, worst = tier[first], tier[first + n - 1]
        if best == worst:
            continue
        order = first + np.argsort(score[first : first + n])
        tree = np.zeros((worst - best + 2, 2))
        k = n - 1
        for back in range(n - 1, -1, -1):
            p = order[back]
            while k >= 0 and score[order[k]] > score[p] - 1.0:
                j = order[k]
                _add(tree, worst - tier[j] + 1, 1.0, value[j])
                k -= 1
            beaten[p, 0], beaten[p, 1] = _sum_to(tree, worst - tier[p])
        tree[:] = 0.0
        k = 0
        for forth in range(n):
            p = order[forth]
            while k < n and score[p] > score[order[k]] - 1.0:
                i = order[k]
                _add(tree, tier[i] - best + 1, weight[i], weight[i] * value[i])
                k += 1
            beating[p, 0], beating[p, 1] = _sum_to(tree, tier[p] - best)
    return beaten, beating


@njit(cache=True, nogil=True)
def loss_and_gradient(score, weight, tier, start, squared, gradient):
    """Return the sum over all pairs; gradient[p] = its derivative by s_p."""
    total = 0.0
    beaten, beating = _sweep(score, score, weight, tier, start)
    for p in range(len(score)):
        missing = beaten[p, 0] * (1.0 - score[p]) + beaten[p, 1]
        if squared:
            excess = beating[p, 0] * (1.0 + score[p]) - beating[p, 1]
            gradient[p] = 2.0 * (excess - weight[p] * missing)
            # (1 - s_i + s_j)^2 = (1 - s_i)(1 - s_i + s_j) + s_j (1 - s_i + s_j); the second part is added at j
            total += weight[p] * (1.0 - score[p]) * missing + score[p] * excess
        else:
            gradient[p] = beating[p, 0] - weight[p] * beaten[p, 0]
            total += weight[p] * missing
    return total


@njit(cache=True, nogil=True)
def multiply_hessian(score, weight, tier, start, v, out):
    """out = H v, with H the second derivative of the squared hinge by the scores."""
    beaten, beating = _sweep(score, v, weight, tier, start)
    for p in range(len(score)):
        out[p] = 2.0 * (weight[p] * (beaten[p, 0] * v[p] - beaten[p, 1]) + beating[p, 0] * v[p] - beating[p, 1])


@njit(cache=True, nogil=True)
def best_mixture(gram, heights, alpha, enough, steps):
    """Maximize heights·α - ½ αᵀ gram α over α ≥ 0 of the same sum: move mass by pairs until none gains `enough`."""
    n = len(alpha)
    gradient = heights - gram @ alpha
    for _ in range(steps):
        up, down = -1, -1
        for k in range(n):
            if up < 0 or gradient[k] > gradient[up]:
                up = k
            if alpha[k] > 0.0 and (down < 0 or gradient[k] < gradient[down]):
                down = k
        rise = gradient[up] - gradient[down]
        if not rise > enough:
            return
        bend = gram[up, up] + gram[down, down] - 2.0 * gram[up, down]
        step = alpha[down]
        if bend > 0.0 and rise / bend < step:
            step = rise / bend
        alpha[up] += step
        alpha[down] = max(alpha[down] - step, 0.0)
        for k in range(n):
            gradient[k] -= step * (gram[k, up] - gram[k, down])
