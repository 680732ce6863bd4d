"""Score functions: parameters to scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Bilinear:
    """s(q, d) = qᵀ W d: row i of `queries` against row j of `items`, W sparse, square or rectangular."""

    queries: csr_array
    items: csr_array

    @classmethod
    def of(cls, queries: Any, items: Any) -> Bilinear:
        """Take arrays or sparse matrices as they are; numbers become float32."""
        Q = rows("Q", queries)
        return cls(Q, Q if items is queries else rows("D", items))

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of W."""
        return int(self.queries.shape[1]), int(self.items.shape[1])

    def scores(self, W: csr_array) -> NDArray[np.float32]:
        """out[i, j] = queries[i]ᵀ W items[j]"""
        left = self.queries @ W
        return np.asarray((left @ self.items.T).toarray(), dtype=np.float32)


def rows(name: str, matrix: Any) -> csr_array:
    """Rows as a CSR matrix of float32 with rising indices; NaN, infinities and other shapes are refused by name."""
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
