"""AdaRank (Xu and Li, 2007): boosting over queries, in which a weak ranker is one feature.

E(q, f) is the measure of query q ranked by feature f. Round t chooses the feature with the largest e = Σ_q P_t(q)
E(q, f) and gives it the weight α = ½ ln (1 + e) / (1 - e); then P_{t+1}(q) ∝ exp(-E(q, sum so far)). Tied rows count
with the mean over their orders, so the order of the rows does not matter. Queries whose measure cannot change, because
none or all of their rows are relevant, are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..deprecated import renamed_attribute
from ..errors import DataError
from ..evaluation.ndcg import dcg
from ..preferences.queries import Queries
from .penalties import NoPenalty
from .problems import RowProblem
from .solver import Solution, Solver

MAX_GRADE_RANGE = 64.0
"""nDCG has gains 2^(grade - lowest) - 1, which overflow beyond."""
MAX_GAIN = 1.0 - 1e-9
"""Keeps α finite for a feature that ranks every query perfectly."""


@dataclass(frozen=True)
class Rounds:
    """Feature and weight of each round, and the mean of the measure over training queries after it."""

    feature: NDArray[np.int64]
    alpha: NDArray[np.float64]
    measure: NDArray[np.float64]
    worth = renamed_attribute("worth", "measure")

    def coef(self, features: int, rounds: int | None = None) -> NDArray[np.float64]:
        """The weights of the features after `rounds` rounds, or after all."""
        return np.bincount(self.feature[:rounds], self.alpha[:rounds], minlength=features).astype(np.float64)


class QueryMeasure:
    """The measure of each query for scores by place. A row is relevant if its grade is above the lowest of all."""

    def __init__(self, queries: Queries, measure: str, cutoff: int) -> None:
        self._start, self._cutoff, self._is_ndcg = queries.start, cutoff, measure == "ndcg"
        above_lowest = queries.grade - queries.grade.min()
        if self._is_ndcg and above_lowest.max() > MAX_GRADE_RANGE:
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


@dataclass(frozen=True)
class QueryBoosting(Solver):
    """`max_iter` rounds of AdaRank for measure 'map' or 'ndcg'. The number of rounds takes the place of a penalty."""

    measure: str = "map"
    cutoff: int = 10
    max_iter: int = 100
    losses: ClassVar[tuple[type, ...]] = (object,)
    takes_init: ClassVar[bool] = False

    def solve(self, problem: RowProblem, penalty: NoPenalty, init: None = None) -> Solution:
        """The rounds, for X dense or CSC; a query counts by the mean weight of its rows."""
        self.check(problem.loss, penalty, init)
        X, queries = problem.X, problem.queries
        evaluate = QueryMeasure(queries, self.measure, self.cutoff)
        count = (np.bincount(queries.query, queries.weight) / np.diff(queries.start))[evaluate.takes_part]
        if not count.any():
            raise DataError("sample_weight is zero for every query that has a relevant row")
        single = np.stack([evaluate(_column(X, feature, queries.order)) for feature in range(X.shape[1])])
        chance = count / count.sum()
        scores = np.zeros(len(queries.order))
        feature, (alpha, mean) = np.zeros(self.max_iter, np.int64), np.zeros((2, self.max_iter))
        for t in range(self.max_iter):
            weighted = single @ chance
            feature[t] = int(weighted.argmax())
            gain = min(float(weighted[feature[t]]), MAX_GAIN)
            alpha[t] = 0.5 * np.log((1.0 + gain) / (1.0 - gain))
            scores += alpha[t] * _column(X, int(feature[t]), queries.order)
            together = evaluate(scores)
            mean[t] = together @ count / count.sum()
            chance = count * np.exp(-together)
            chance /= chance.sum()
        return Solution(Rounds(feature, alpha, mean), info={"n_iter": self.max_iter})


def _column(X: Any, feature: int, order: NDArray[np.int64]) -> NDArray[np.float64]:
    """One feature by place in float64; of a CSC matrix only this column becomes dense."""
    if isinstance(X, np.ndarray):
        return np.asarray(X[order, feature], dtype=np.float64)
    column = np.zeros(X.shape[0])
    stored = slice(X.indptr[feature], X.indptr[feature + 1])
    column[X.indices[stored]] = X.data[stored]
    return column[order]
