"""Matrices of counts: sorted columns, frequent columns, and weighted sums of fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import ConfigError, DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def inverse_document_frequency(df: NDArray[np.int64], documents: int, weight: str) -> NDArray[np.float32]:
    """Return the rarity of words that df of so many documents have; the weight "bm25" has a formula of its own.

    >>> inverse_document_frequency(np.array([1]), 2, "tfidf")
    array([1.4054651], dtype=float32)
    """
    if weight == "bm25":
        idf = np.log1p((documents - df + 0.5) / (df + 0.5))
    else:
        idf = 1.0 + np.log((1.0 + documents) / (1.0 + df))
    return np.asarray(idf, np.float32)


def sort_columns(counts: csr_array) -> csr_array:
    """Sort the columns of each row; two transpositions are faster than sorting unless there are very many columns."""
    out = counts.copy() if counts.nnz * 8 < counts.shape[1] else counts.tocsc().tocsr()
    out.sort_indices()
    return out


def frequent_columns(counts: csr_array, columns: int | None) -> NDArray[np.intp]:
    """The columns that occur, or the `columns` most frequent ones of them, in their order."""
    used = np.flatnonzero(np.bincount(counts.indices, minlength=counts.shape[1]))
    if columns is None or columns >= len(used):
        return used
    # in 64 bits: a float32 sum stops growing at 2^24 and depends on the order of the texts
    frequency = np.bincount(counts.indices, counts.data, counts.shape[1])[used]
    return used[np.sort(np.argsort(-frequency, kind="stable")[:columns])]


def weighted_sum(parts: list[csr_array], weights: Sequence[float] | None) -> csr_array:
    """Return the sum of the counts of fields, each times its weight; None: 1."""
    weights = [1.0] * len(parts) if weights is None else [validation.number("field weight", w, low=0) for w in weights]
    if len(weights) != len(parts):
        raise ConfigError(f"{len(parts)} fields need {len(parts)} weights; got {len(weights)}")
    if len(parts) == 1 and weights[0] == 1.0:
        return parts[0]
    total = parts[0] * np.float32(weights[0])
    for part, weight in zip(parts[1:], weights[1:], strict=True):
        if part.shape[0] != total.shape[0]:
            raise DataError(f"fields of unequal length: {total.shape[0]} and {part.shape[0]} texts")
        total = total + part * np.float32(weight)
    total.eliminate_zeros()
    return sort_columns(total)


def stack_rows(parts: list[csr_array], width: int) -> csr_array:
    """Return the rows of all parts."""
    from scipy.sparse import csr_array, vstack

    if not parts:
        return csr_array((0, width), dtype=np.float32)
    return parts[0] if len(parts) == 1 else csr_array(vstack(parts, format="csr"))
