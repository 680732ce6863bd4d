"""AdaRank (Xu, Li, 2007): boosting of queries, where a weak ranker is one feature and a strong one their sum.

Round t gives the feature f with the largest Σ_q P_t(q) E(q, f) the weight α = ½ ln (1 + Σ P E) / (1 - Σ P E), E being
the measure of the query as that feature ranks it; then P_{t+1}(q) ∝ exp(-E(q, all so far)). Rows that tie count with
the mean over their orders: a constant feature counts as a random order, and no row order matters. Queries whose
measure is the same whatever happens – no row of theirs is relevant, or all are – take no part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..deprecated import renamed_attribute
from ..errors import DataError
from ..evaluation.ndcg import dcg
from ..preferences.queries import Queries

WIDEST = 64.0
"""NDCG has gains 2^(grade - lowest) - 1: no range of grades beyond this."""
_SURE = 1.0 - 1e-9
"""A feature that ranks every query perfectly has α = ½ ln 2/0; this keeps it finite."""


@dataclass(frozen=True)
class Rounds:
    """Feature and weight of every round, and the mean of the measure over training queries after it."""

    feature: NDArray[np.int64]
    alpha: NDArray[np.float64]
    measure: NDArray[np.float64]
    worth = renamed_attribute("worth", "measure")

    def coef(self, features: int, rounds: int | None = None) -> NDArray[np.float64]:
        """The weights of the features after so many rounds."""
        return np.bincount(self.feature[:rounds], self.alpha[:rounds], minlength=features).astype(np.float64)


class QueryMeasure:
    """E(q) of scores by place, for the queries that have a relevant row: one above the lowest grade of all rows."""

    def __init__(self, queries: Queries, measure: str, cutoff: int) -> None:
        self._start, self._cutoff, self._is_ndcg = queries.start, cutoff, measure == "ndcg"
        above_lowest = queries.grade - queries.grade.min()
        if self._is_ndcg and above_lowest.max() > WIDEST:
            raise DataError(
                f"NDCG has gains 2^grade - 1, too steep for grades {above_lowest.max():g} apart; use measure='AP'"
            )
        self._gain = np.exp2(above_lowest) - 1.0 if self._is_ndcg else (above_lowest > 0).astype(np.float64)
        relevant = np.add.reduceat((self._gain > 0).astype(np.int64), queries.start[:-1])
        constant = np.diff(queries.query_levels) < 2 if self._is_ndcg else relevant == np.diff(queries.start)
        self.takes_part = (relevant > 0) & ~constant
        if not self.takes_part.any():
            raise DataError("no query has both relevant rows and others: relevant is a grade above the lowest of all")
        self._ideal = np.where(self.takes_part, self._values(self._gain), 1.0) if self._is_ndcg else 1.0

    def _values(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        from .._kernels import ties

        if self._is_ndcg:
            gains = np.empty_like(self._gain)
            ties.expected_gains(scores, self._gain, self._start, gains)
            return dcg(gains, self._start, self._cutoff)
        out = np.empty(len(self._start) - 1)
        ties.average_precisions(scores, self._gain, self._start, out)
        return out

    def __call__(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """One number in [0, 1] for each query that takes part."""
        values: NDArray[np.float64] = np.minimum(self._values(scores) / self._ideal, 1.0)[self.takes_part]
        return values


def adarank(X: Any, queries: Queries, measure: str, cutoff: int, max_iter: int) -> Rounds:
    """Boost for `max_iter` rounds; a query counts by the mean weight of its rows."""
    evaluate = QueryMeasure(queries, measure, cutoff)
    count = (np.bincount(queries.query, queries.weight) / np.diff(queries.start))[evaluate.takes_part]
    if not count.any():
        raise DataError("sample_weight is zero for every query that has a relevant row")
    single = np.stack([evaluate(column) for column in _columns(X, queries.order)])
    chance = count / count.sum()
    scores = np.zeros(len(queries.order))
    feature, alpha, mean = np.zeros(max_iter, np.int64), np.zeros(max_iter), np.zeros(max_iter)
    for t in range(max_iter):
        weighted = single @ chance
        feature[t] = int(weighted.argmax())
        gain = min(float(weighted[feature[t]]), _SURE)
        alpha[t] = 0.5 * np.log((1.0 + gain) / (1.0 - gain))
        scores += alpha[t] * _column(X, int(feature[t]), queries.order)
        together = evaluate(scores)
        mean[t] = together @ count / count.sum()
        chance = count * np.exp(-together)
        chance /= chance.sum()
    return Rounds(feature, alpha, mean)


def _columns(X: Any, order: NDArray[np.int64]) -> Any:
    return (_column(X, feature, order) for feature in range(X.shape[1]))


def _column(X: Any, feature: int, order: NDArray[np.int64]) -> NDArray[np.float64]:
    """One feature by place, as a row of doubles; of a sparse matrix (CSC), only this column is ever written out."""
    if isinstance(X, np.ndarray):
        return np.asarray(X[order, feature], dtype=np.float64)
    column = np.zeros(X.shape[0])
    stored = slice(X.indptr[feature], X.indptr[feature + 1])
    column[X.indices[stored]] = X.data[stored]
    return column[order]
