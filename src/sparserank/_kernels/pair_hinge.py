"""The hinge over all pairs of a query, by sorting and counting: n log n, and no pair is ever listed.

A pair (i, j) of one query, i of a higher level (a smaller number), counts w_i h(1 - (s_i - s_j)) with h(z) = max(0, z)
or its square. Rows stand by query, `start` and `tier` say where and of which level; a Fenwick tree over the levels
holds what has been passed in the order of scores.
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
def _sweep(score, value, weight, tier, first, last, lowest, highest, order, beaten, beating):
    """beaten[p] = (count, sum of values) of the losers of p with s_j > s_p - 1; beating[p]: weighted, of its winners.

    Levels run from `highest` (the best, the smallest number) to `lowest`. Only these rows are written.
    """
    levels = lowest - highest + 1
    tree = np.zeros((levels + 1, 2))
    k = last - first - 1
    for back in range(last - first - 1, -1, -1):
        p = first + order[back]
        while k >= 0 and score[first + order[k]] > score[p] - 1.0:
            j = first + order[k]
            _add(tree, lowest - tier[j] + 1, 1.0, value[j])
            k -= 1
        beaten[p, 0], beaten[p, 1] = _sum_to(tree, lowest - tier[p])
    tree[:] = 0.0
    k = 0
    for forth in range(last - first):
        p = first + order[forth]
        while k < last - first and score[p] > score[first + order[k]] - 1.0:
            i = first + order[k]
            _add(tree, tier[i] - highest + 1, weight[i], weight[i] * value[i])
            k += 1
        beating[p, 0], beating[p, 1] = _sum_to(tree, tier[p] - highest)


@njit(cache=True, nogil=True)
def loss_and_gradient(score, weight, tier, start, squared, gradient):
    """The sum over all pairs, and gradient[p] = its derivative by s_p."""
    total = 0.0
    beaten = np.zeros((len(score), 2))
    beating = np.zeros((len(score), 2))
    for q in range(len(start) - 1):
        first, last = start[q], start[q + 1]
        if tier[first] == tier[last - 1]:
            gradient[first:last] = 0.0
            continue
        order = np.argsort(score[first:last])
        _sweep(score, score, weight, tier, first, last, tier[last - 1], tier[first], order, beaten, beating)
        for p in range(first, last):
            missing = beaten[p, 0] * (1.0 - score[p]) + beaten[p, 1]
            if squared:
                excess = beating[p, 0] * (1.0 + score[p]) - beating[p, 1]
                gradient[p] = 2.0 * (excess - weight[p] * missing)
                # (1 - s_i + s_j)^2 = (1 - s_i)(1 - s_i + s_j) + s_j (1 - s_i + s_j), the second part seen from j
                total += weight[p] * (1.0 - score[p]) * missing + score[p] * excess
            else:
                gradient[p] = beating[p, 0] - weight[p] * beaten[p, 0]
                total += weight[p] * missing
    return total


@njit(cache=True, nogil=True)
def multiply_hessian(score, weight, tier, start, v, out):
    """out = H v, with H the second derivative of the squared hinge by the scores."""
    beaten = np.zeros((len(score), 2))
    beating = np.zeros((len(score), 2))
    for q in range(len(start) - 1):
        first, last = start[q], start[q + 1]
        if tier[first] == tier[last - 1]:
            out[first:last] = 0.0
            continue
        order = np.argsort(score[first:last])
        _sweep(score, v, weight, tier, first, last, tier[last - 1], tier[first], order, beaten, beating)
        for p in range(first, last):
            out[p] = 2.0 * (weight[p] * (beaten[p, 0] * v[p] - beaten[p, 1]) + beating[p, 0] * v[p] - beating[p, 1])


@njit(cache=True, nogil=True)
def best_mixture(gram, heights, alpha, enough, steps):
    """max heights·α - ½ αᵀ gram α over α ≥ 0 with the sum it has: moves mass by pairs until none gains `enough`."""
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
