"""Pairs that are told and not learned, by the numbers of their words, and refits that leave them as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..optim.pattern_ridge import PatternRidge
from ..optim.penalties import Ridge
from ..optim.problems import ListProblem

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Edits:
    """Pairs that are not learned but told: `pinned` holds their weights, `forbidden` marks those that must go.

    barred : rows and columns of W that stay empty.
    """

    pinned: csr_array | None = None
    forbidden: csr_array | None = None
    barred: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None

    def without_barred(self, W: csr_array) -> csr_array:
        """W with those rows and columns empty."""
        if self.barred is None:
            return W
        W = W.copy()
        row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
        W.data[self.barred[0][row] | self.barred[1][W.indices]] = 0.0
        W.eliminate_zeros()
        return W


def refit(solver: PatternRidge, problem: ListProblem, ridge: Ridge, W: csr_array, edits: Edits) -> csr_array:
    """Learn the entries of W again; pinned ones are put in as they are told, and stay."""
    W, fixed = told(W, edits)
    refitted: csr_array = solver.solve(problem, ridge, W, fixed).weights
    return refitted


def told(W: csr_array, edits: Edits) -> tuple[csr_array, NDArray[np.bool_] | None]:
    """W with the pinned pairs as they are told, and which of its entries those are."""
    if edits.pinned is None:
        return W, None
    from scipy.sparse import csr_array

    row, column = edits.pinned.nonzero()
    pinned = csr_array((np.ones(len(row), np.float32), (row, column)), shape=W.shape)
    W = csr_array(W - W.multiply(pinned) + edits.pinned).astype(np.float32)
    W.sort_indices()
    place = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr)) * np.int64(W.shape[1]) + W.indices
    return W, np.isin(place, row * np.int64(W.shape[1]) + column)
