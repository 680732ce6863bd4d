"""Discounted cumulative gain: every nDCG of the package is computed here, from gains in rank order.

The caller orders the documents, because tie rules differ on purpose:

- measures of a run order ties by document id, as trec_eval does, so that input order does not matter;
- `ndcg` of dense score matrices orders ties by column: it compares thousands of candidate models on held-out queries;
- AdaRank averages over all orders of tied rows (`_kernels.ties`), so a constant feature equals a random order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def log2_discount(rank: NDArray[np.int64]) -> Floats:
    """The usual discount, log2(1 + rank)."""
    return np.asarray(np.log2(rank + 1.0))


def letor4_discount(rank: NDArray[np.int64]) -> Floats:
    """The discount of LETOR 4.0: 1 at ranks 1 and 2, then log2(rank)."""
    return np.asarray(np.maximum(np.log2(rank), 1.0))


def dcg(
    gains: ArrayLike,
    start: ArrayLike | None = None,
    cutoff: int | None = None,
    discount: Callable[[NDArray[np.int64]], Floats] = log2_discount,
) -> Floats:
    """out[q] = sum over ranks r <= cutoff of gains[start[q] + r - 1] / discount(r); without `start`, of one query.

    >>> dcg([3.0, 0.0, 2.0]).tolist()
    [4.0]
    """
    gain: Floats = np.asarray(gains, np.float64)
    bounds = np.array([0, len(gain)]) if start is None else np.asarray(start)
    query = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    rank = np.arange(1, len(gain) + 1) - bounds[query]
    if cutoff is not None:
        top = rank <= cutoff
        gain, query, rank = gain[top], query[top], rank[top]
    return np.bincount(query, gain / discount(rank), len(bounds) - 1).astype(np.float64, copy=False)


def ratio(part: Floats, whole: Floats) -> Floats:
    """part / whole, and 0 where whole is 0."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def ndcg(scores: NDArray[np.float32], grades: Any, excluded: NDArray[np.int64] | None = None, k: int = 10) -> Floats:
    """nDCG@k of every row of dense scores that has a grade above 0 (CSR); ties rank by column.

    excluded[i] is the document that is left out of row i's ranking, or -1.

    >>> from scipy.sparse import csr_array
    >>> ndcg(np.array([[3.0, 2.0, 1.0]], np.float32), csr_array([[1.0, 0.0, 0.0]]), k=2).tolist()
    [1.0]
    """
    from .._kernels.ranking import top_gains

    n, m = scores.shape
    gains, ideal = np.zeros((2, n, min(k, m)))
    excluded = np.full(n, -1, np.int64) if excluded is None else excluded
    if m:
        top_gains(scores, excluded, grades.indptr, grades.indices, grades.data, gains, ideal)
    start = np.arange(n + 1) * gains.shape[1]
    actual, best = dcg(gains.ravel(), start), dcg(ideal.ravel(), start)
    return np.asarray(actual[best > 0.0] / best[best > 0.0], np.float64)


def mean_ndcg(
    scores: NDArray[np.float32], grades: Any, excluded: NDArray[np.int64] | None = None, k: int = 10
) -> float:
    """The mean of `ndcg`, or 0 if no row has a grade above 0."""
    values = ndcg(scores, grades, excluded, k)
    return float(np.mean(values)) if len(values) else 0.0
