"""nDCG of dense scores, for choosing between many of them: whole matrices at a time, ties by place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def mean_ndcg(scores: NDArray[np.float32], grades: Any, own: NDArray[np.int64] | None = None, k: int = 10) -> float:
    """Mean nDCG@k over the rows with a grade above 0 (all grades there are, as CSR); own[i] is left out of row i.

    >>> from scipy.sparse import csr_array
    >>> mean_ndcg(np.array([[3.0, 2.0, 1.0]], np.float32), csr_array([[1.0, 0.0, 0.0]]), k=2)
    1.0
    """
    n, m = scores.shape
    k = min(k, m)
    if own is not None and (own >= 0).any():
        scores = scores.copy()
        scores[np.flatnonzero(own >= 0), own[own >= 0]] = -np.inf
    top = np.argpartition(-scores, k - 1, axis=1)[:, :k] if k < m else np.tile(np.arange(m), (n, 1))
    top.sort(axis=1)
    found = np.take_along_axis(scores, top, axis=1)
    order = np.argsort(-found, axis=1, kind="stable")
    top, found = np.take_along_axis(top, order, axis=1), np.take_along_axis(found, order, axis=1)
    discount = 1.0 / np.log2(np.arange(2, k + 2))
    gains = np.asarray(grades[np.repeat(np.arange(n), k), top.ravel()]).reshape(n, k) * np.isfinite(found)
    asked = np.diff(grades.indptr) > 0
    best = np.array(
        [_ideal(grades.data[a:b], discount) for a, b in zip(grades.indptr, grades.indptr[1:], strict=False)]
    )
    return float(np.mean((gains @ discount)[asked] / best[asked])) if asked.any() else 0.0


def _ideal(grades: NDArray[Any], discount: NDArray[np.float64]) -> float:
    best = -np.sort(-grades)[: len(discount)]
    return float(best @ discount[: len(best)])
