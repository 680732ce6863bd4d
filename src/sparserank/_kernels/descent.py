"""Stochastic gradient descent of the squared error, one row of basis functions per step."""

import math

from numba import njit


@njit(cache=True, nogil=True)
def squared_steps(phi, target, weight, alpha, rate, decays, done, w):
    """w -= η (-c (t - w·φ) φ + alpha w) for each row; η = rate, or 0.1 / √(5 i) at step i, counted from 1.

    Returns -1, or the step after which w was no longer finite.
    """
    for n in range(phi.shape[0]):
        eta = 0.1 / math.sqrt(5.0 * (done + n + 1)) if decays else rate
        miss = target[n]
        for m in range(phi.shape[1]):
            miss -= w[m] * phi[n, m]
        largest = 0.0
        for m in range(phi.shape[1]):
            w[m] += eta * (weight[n] * miss * phi[n, m] - alpha * w[m])
            largest = max(largest, abs(w[m]))
        if not largest < 1e150:
            return done + n
    return -1
