"""W = BBᵀ, cut to the entries that move scores most, without ever holding more than a few rows of it.

The impact of W_ij is |W_ij| · m_i · m_j, with m_i the root mean square of column i over the training rows. One pass
counts the impacts by size, a second one collects those that can be among the largest.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from .list_problem import squared_lengths

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float32]

BLOCK_BYTES = 16 << 20
"""Of BBᵀ, a thread."""
KEPT_BITS = 16
"""Impacts are counted by so many leading bits of a float32: the exponent and 8 of the fraction, without the sign."""


def mean_sizes(X: csr_array) -> Floats:
    """out[j] = the root mean square of column j."""
    return np.asarray(np.sqrt(squared_lengths(X) / max(X.shape[0], 1)), dtype=np.float32)


def cut_product(B: Floats, sizes: Floats, wanted: int, n_jobs: int | None = None) -> csr_array:
    """The `wanted` entries of BBᵀ with the largest impact, of equal ones those that come first; zeros are left out.

    >>> cut_product(np.array([[1.0], [2.0]], np.float32), np.ones(2, np.float32), 3).toarray().tolist()
    [[0.0, 2.0], [2.0, 4.0]]
    """
    from scipy.sparse import csr_array

    factor = B * sizes[:, None]
    kept = np.flatnonzero(factor.any(axis=1))
    factor = np.ascontiguousarray(factor[kept])
    least = 1
    if wanted < len(kept) ** 2:
        least = _least(factor, wanted, n_jobs)
    parts = list(_each(factor, n_jobs, lambda start, block: _above(start, block, least)))
    row, column, impact = (np.concatenate(part) for part in zip(*parts, strict=True)) if parts else _nothing()
    chosen = largest(impact, wanted)
    row, column, impact = kept[row[chosen]], kept[column[chosen]], impact[chosen]
    values = impact / (sizes[row] * sizes[column])
    pointer = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(B)))])
    return csr_array((values, column.astype(np.int32), pointer), shape=(len(B), len(B)))


def largest(values: Floats, wanted: int) -> NDArray[np.intp]:
    """The places of the `wanted` largest sizes, rising; of equal ones the first."""
    size = np.abs(values)
    if len(size) <= wanted:
        return np.flatnonzero(size)
    least = np.partition(size, len(size) - wanted)[len(size) - wanted]
    keep = size > least
    ties = np.flatnonzero(size == least)
    keep[ties[: wanted - int(keep.sum())]] = True
    return np.flatnonzero(keep & (size > 0))


def _least(factor: Floats, wanted: int, n_jobs: int | None) -> int:
    """The leading bits of a size that no more than `wanted` entries are above, and `wanted` or more reach."""
    count = np.zeros(1 << KEPT_BITS, np.int64)
    for one in _each(factor, n_jobs, lambda _, block: np.bincount(_bits(block).ravel(), minlength=1 << KEPT_BITS)):
        count += one
    reach = np.cumsum(count[::-1])[::-1]
    return max(1, int(np.flatnonzero(reach >= wanted)[-1]))


def _above(start: int, block: Floats, least: int) -> tuple[Any, Any, Any]:
    row, column = np.nonzero(_bits(block) >= least)
    return (row + start).astype(np.int32), column.astype(np.int32), block[row, column]


def _bits(block: Floats) -> NDArray[np.uint32]:
    return (block.view(np.uint32) & np.uint32(0x7FFFFFFF)) >> np.uint32(31 - KEPT_BITS)


def _nothing() -> tuple[Any, Any, Any]:
    return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32)


def _each(factor: Floats, n_jobs: int | None, look: Any) -> Iterator[Any]:
    """look(start, factor[start:stop] @ factorᵀ) for every block of rows, in order."""
    from .._kernels.class_pairs import product_rows

    turned = np.ascontiguousarray(factor.T)
    rows = max(1, BLOCK_BYTES // (4 * max(len(factor), 1)))

    def one(start: int) -> Any:
        block = np.empty((min(rows, len(factor) - start), len(factor)), np.float32)
        product_rows(factor, turned, start, block)
        return look(start, block)

    with ThreadPoolExecutor(validation.threads(n_jobs)) as pool:
        yield from pool.map(one, range(0, len(factor), rows))
