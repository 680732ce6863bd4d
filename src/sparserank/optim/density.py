"""Density on request: a controller that moves alpha while W is learned, so that it ends with the wanted nonzeros.

The paper tries λ by hand until W is 5–10 % dense. Here alpha follows log(nonzeros / wanted) as a thermostat follows the
temperature: a share of the error, and a share of its change, at every settling. The number swings from batch to batch,
so at the end the last shrinking is left out and W is cut to the largest entries instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .low_rank_pruning import largest

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ERROR_GAIN, CHANGE_GAIN, MOST = 0.2, 0.6, 0.7


@dataclass
class Thermostat:
    """Holds alpha; `feel` moves it."""

    wanted: int
    alpha: float
    last: float = 0.0

    def feel(self, nonzeros: int) -> float:
        """The alpha for the batches to come, given the nonzeros there are now."""
        error = math.log(max(nonzeros, 1) / self.wanted)
        move = ERROR_GAIN * error + CHANGE_GAIN * (error - self.last)
        self.last = error
        self.alpha *= math.exp(min(max(move, -MOST), MOST))
        return self.alpha


def cut(W: csr_array, wanted: int) -> csr_array:
    """Only the `wanted` entries of largest size; of equal ones those that come first.

    >>> from scipy.sparse import csr_array
    >>> cut(csr_array([[3.0, -1.0], [0.5, 2.0]]), 2).toarray().tolist()
    [[3.0, 0.0], [0.0, 2.0]]
    """
    if W.nnz <= wanted:
        return W
    keep = np.zeros(W.nnz, np.bool_)
    keep[largest(W.data, wanted)] = True
    out = W.copy()
    out.data[~keep] = 0.0
    out.eliminate_zeros()
    return out
