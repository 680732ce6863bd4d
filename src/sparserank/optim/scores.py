"""Score functions: parameters to scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Linear:
    """s(x) = w·x with X by columns, for coordinate descent; it can be used in any number of solves.

    pointer, rows, values : the CSC arrays of X; float32 stays float32.
    """

    pointer: NDArray[Any]
    rows: NDArray[Any]
    values: NDArray[Any]
    shape: tuple[int, int]

    @classmethod
    def of(cls, X: Any) -> Linear:
        """Use a CSC matrix as it is; convert a CSR or dense one."""
        from scipy.sparse import csc_array

        columns = csc_array(X)
        unsigned = np.uint32 if columns.indices.dtype.itemsize == 4 else np.uint64
        return cls(columns.indptr, columns.indices.view(unsigned), columns.data, columns.shape)

    def scaled(self, by: NDArray[np.float64]) -> Linear:
        """A copy with column r multiplied by by[r]."""
        values = self.values * np.repeat(by, np.diff(self.pointer)).astype(self.values.dtype, copy=False)
        return Linear(self.pointer, self.rows, values, self.shape)

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """lengths[r] = ‖X[:, r]‖."""
        from .._kernels.columns import lengths

        out = np.zeros(self.shape[1])
        lengths(self.pointer, self.values, out)
        return out

    @cached_property
    def ranges(self) -> NDArray[np.float64]:
        """ranges[r] = max_i X[i, r] - min_i X[i, r], absent entries being zeros."""
        from .._kernels.columns import ranges

        n, widest = self.shape[0], np.zeros(self.shape[1])
        one = np.zeros(n, np.int32)
        ranges(self.pointer, self.rows, self.values, one, np.array([n]), np.ones(1), widest, np.empty_like(widest))
        return widest


@dataclass(frozen=True)
class Bilinear:
    """s(q, d) = qᵀ W d: row i of `queries` against row j of `items`, W sparse, square or rectangular."""

    queries: csr_array
    items: csr_array

    @classmethod
    def of(cls, queries: Any, items: Any) -> Bilinear:
        """Use arrays or sparse matrices without scaling; numbers become float32."""
        Q = rows("Q", queries)
        return cls(Q, Q if items is queries else rows("D", items))

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of W."""
        return int(self.queries.shape[1]), int(self.items.shape[1])

    def scores(self, W: csr_array) -> NDArray[np.float32]:
        """out[i, j] = queries[i]ᵀ W items[j]

        A score that float32 cannot hold raises DataError with its place.
        """
        scores = np.asarray(((self.queries @ W) @ self.items.T).toarray(), dtype=np.float32)
        if np.isfinite(scores).all():
            return scores
        # a product of three float32 factors fits into a float64, so only true overflows remain
        exact = ((self.queries.astype(np.float64) @ W) @ self.items.T).toarray()
        return in_float32(exact)


def in_float32(scores: NDArray[np.float64]) -> NDArray[np.float32]:
    """Scores (queries × documents) as float32; the first that does not fit raises DataError."""
    over = ~(np.abs(scores) <= np.finfo(np.float32).max)
    if over.any():
        i, j = (int(place) for place in np.argwhere(over)[0])
        raise DataError(
            f"the score of row {i} of Q and row {j} of D is {scores[i, j]:.3g}, which is beyond float32 "
            f"({np.finfo(np.float32).max:.3g}); scale the rows or W down"
        )
    return scores.astype(np.float32)


def rows(name: str, matrix: Any) -> csr_array:
    """A CSR matrix of float32 with rising indices; NaN, infinities and other shapes raise DataError."""
    from scipy.sparse import csr_array, issparse

    if not issparse(matrix):
        matrix = np.asarray(matrix)
        if matrix.dtype.kind not in "biuf" or matrix.ndim != 2:
            raise DataError(f"{name} must be a matrix of numbers; got {matrix.dtype} of shape {matrix.shape}")
    out = csr_array(matrix).astype(np.float32)
    if not np.isfinite(out.data).all():
        row = int(np.searchsorted(out.indptr, np.flatnonzero(~np.isfinite(out.data))[0], side="right")) - 1
        raise DataError(f"{name}: row {row} holds a number that is not finite (or too large for float32)")
    out.sum_duplicates()
    out.eliminate_zeros()
    return out
