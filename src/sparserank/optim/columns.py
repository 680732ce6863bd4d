"""Vectors as the kernels want them: columns renumbered by falling frequency, plain arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..preferences import Triples
from .scores import Bilinear

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Csr = tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float32]]


def falling_frequency(matrix: csr_array) -> NDArray[np.int64]:
    """Columns from the most frequent down."""
    return np.argsort(-np.bincount(matrix.indices, minlength=matrix.shape[1]), kind="stable").astype(np.int64)


def renumbered(matrix: csr_array, place: NDArray[np.int64]) -> csr_array:
    """Column j becomes column place[j]; indices rise."""
    from scipy.sparse import csr_array

    indices = place.astype(matrix.indices.dtype)[matrix.indices]
    # there and back sorts by counting; the way by columns is the faster one of the two that scipy has
    return csr_array((matrix.data, indices, matrix.indptr), shape=matrix.shape).tocsc().tocsr()


def arrays(matrix: csr_array) -> Csr:
    """Row pointers, columns and values of a CSR matrix."""
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data.astype(np.float32)


def centre_margins(still: csr_array, score: Bilinear, triples: Triples, first: int, count: int) -> NDArray[np.float64]:
    """qᵀ C (d⁺ − d⁻) of some triples, `still` being the rows of queries · C."""
    q, better, worse = (column[first : first + count] for column in triples)
    difference = score.items[better] - score.items[worse]
    return np.asarray(still[q].multiply(difference).sum(axis=1), dtype=np.float64).ravel()
