"""nDCG of dense scores, for choosing between many of them: whole matrices at a time, ties by place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def mean_ndcg(scores: NDArray[np.float32], grades: Any, own: NDArray[np.int64] | None = None, k: int = 10) -> float:
    """Mean nDCG@k over the rows with a grade above 0 (all grades there are, as CSR); own[i] is left out of row i.

    >>> from scipy.sparse import csr_array
    >>> mean_ndcg(np.array([[3.0, 2.0, 1.0]], np.float32), csr_array([[1.0, 0.0, 0.0]]), k=2)
    1.0
    """
    found = ndcg(scores, grades, own, k)
    return float(np.mean(found)) if len(found) else 0.0


def ndcg(scores: NDArray[np.float32], grades: Any, own: NDArray[np.int64] | None = None, k: int = 10) -> Floats:
    """nDCG@k of every row with a grade above 0, in their order."""
    from .._kernels.list_gains import gains

    n, m = scores.shape
    out, best = np.zeros(n), np.zeros(n)
    own = np.full(n, -1, np.int64) if own is None else own
    if m:
        gains(scores, own, grades.indptr, grades.indices, grades.data, min(k, m), out, best)
    asked = best > 0.0
    return np.asarray(out[asked] / best[asked], np.float64)
