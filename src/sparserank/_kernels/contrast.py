"""The contrastive loss of the scores s_ij = z_i · z_j of all pairs of a batch, and its gradient.

The loss of row i, with P the other rows of its class and N the rows of other classes, is

    (1 - mix) · (log Σ_{j≠i} exp s_ij - mean_{p∈P} s_ip)  +  mix · mean_{p∈P} log(1 + Σ_{n∈N} exp(s_in - s_ip))

a mixture of the supervised contrastive loss and the domination loss of Stevens et al. (2010). Exponents are shifted by
the row's largest score. A row that is alone in its class has no loss. Each call writes only its own rows, so the number
of threads does not change the result.
"""

import math

import numpy as np
from numba import njit

ADAM_BETA_1, ADAM_BETA_2 = 0.9, 0.999
"""Adam's decay rates β₁ and β₂."""


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def contrast_rows(Z, transposed, code, mix, start, stop, gradient, loss):
    """gradient[i, j] = d loss_i / d s_ij and loss[i], for i in start … stop - 1; `transposed` is Zᵀ."""
    n = len(code)
    scores, sizes = np.empty(n, np.float32), np.empty(n, np.float32)
    for i in range(start, stop):
        gradient[i] = np.float32(0.0)
        loss[i] = 0.0
        scores[:] = np.float32(0.0)
        for k in range(Z.shape[1]):
            z = Z[i, k]
            for j in range(n):
                scores[j] += z * transposed[k, j]
        own = 0
        for j in range(n):
            own += code[j] == code[i]
        if own < 2:
            continue
        share = np.float32(1.0) / np.float32(own - 1)
        _row(i, scores, sizes, code, np.float32(mix), share, gradient[i], loss)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _row(i, scores, sizes, code, mix, share, gradient, loss):
    n, top = len(scores), np.float32(-np.inf)
    for j in range(n):
        if j != i:
            top = max(top, scores[j])
    scores[i] = top
    others, winners = np.float32(0.0), np.float32(0.0)
    for j in range(n):
        sizes[j] = np.float32(math.exp(scores[j] - top))
    sizes[i] = np.float32(0.0)
    for j in range(n):
        if code[j] == code[i]:
            winners += sizes[j]
        else:
            others += sizes[j]
    # 1e-30: if the exponentials of a winner and of every loser underflow relative to the largest
    contrast, beaten = (np.float32(1.0) - mix) / (others + winners), np.float32(0.0)
    total, tiny = (np.float32(1.0) - mix) * np.float32(math.log(others + winners)), np.float32(1e-30)
    for j in range(n):
        gradient[j] = contrast * sizes[j]
        if code[j] == code[i] and j != i:
            against = others + sizes[j] + tiny
            beaten += share / against
            gradient[j] -= share * ((np.float32(1.0) - mix) + mix * others / against)
            gap = scores[j] - top
            total += share * (mix * np.float32(math.log(against)) - gap)
    for j in range(n):
        if code[j] != code[i]:
            gradient[j] += mix * beaten * sizes[j]
    loss[i] = total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def multiply_rows(gradient, Z, start, stop, out):
    """out[i] = sum_j gradient[i, j] Z[j], for i in start … stop - 1."""
    for i in range(start, stop):
        out[i] = np.float32(0.0)
        for j in range(len(Z)):
            s = gradient[i, j]
            for k in range(Z.shape[1]):
                out[i, k] += s * Z[j, k]


@njit(cache=True, nogil=True)
def adam(A, gradient, mean, square, rate, step):
    """Adam's update number `step` of A, in place."""
    scaled_rate = np.float32(rate / (1.0 - ADAM_BETA_1**step))
    correction = np.float32(1.0 / (1.0 - ADAM_BETA_2**step))
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            g = gradient[i, k]
            mean[i, k] += np.float32(1.0 - ADAM_BETA_1) * (g - mean[i, k])
            square[i, k] += np.float32(1.0 - ADAM_BETA_2) * (g * g - square[i, k])
            A[i, k] -= scaled_rate * mean[i, k] / (np.float32(math.sqrt(square[i, k] * correction)) + np.float32(1e-9))
