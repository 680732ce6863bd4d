"""Discounted cumulative gain: every nDCG of the package is computed here, from gains in rank order.

The caller orders the documents, because tie rules differ on purpose:

- measures of a run order ties by document id, as trec_eval does, so that input order does not matter;
- `ndcg` of candidate lists orders ties by place: it compares thousands of candidate models on held-out queries;
- AdaRank averages over all orders of tied rows (`_kernels.ties`), so a constant feature equals a random order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import validation
from ..thread_pool import map_in_threads

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


def ndcg(
    start: NDArray[np.int64],
    scores: NDArray[np.float32],
    grades: NDArray[np.float32],
    cutoffs: Sequence[int] = (10,),
    n_jobs: int | None = None,
) -> list[Floats]:
    """For each cutoff k, nDCG@k of every list that has a grade above 0; ties rank by place.

    List i has the scores and grades at the places start[i] … start[i + 1] - 1; a place at -inf is not ranked.

    >>> [values.tolist() for values in ndcg(np.array([0, 3]), np.float32([3, 2, 1]), np.float32([1, 0, 0]), [2])]
    [[1.0]]
    """
    from .._kernels.ranking import top_gains

    n = len(start) - 1
    gains, ideal = np.zeros((2, n, max(cutoffs)))

    def rank(bound: tuple[int, int]) -> None:
        first, last = bound
        top_gains(start[first : last + 1], scores, grades, gains[first:last], ideal[first:last])

    threads = validation.threads(n_jobs)
    map_in_threads(rank, pairwise(n * part // threads for part in range(threads + 1)), threads)
    rows = np.arange(len(start)) * gains.shape[1]
    out = []
    for k in cutoffs:
        actual, best = dcg(gains.ravel(), rows, k), dcg(ideal.ravel(), rows, k)
        out.append(np.asarray(actual[best > 0.0] / best[best > 0.0], np.float64))
    return out
