"""RankBoost (Freund, Iyer, Schapire and Singer, 2003): boosting over pairs, with stumps [x_f > cut] as weak rankers.

The pairs (i, j), with masses ∝ w_i exp(s_j - s_i), are never listed. The gain of a stump is r = Σ_i g_i [x_i > cut]:
g_i is the mass of the pairs that row i should win minus the mass of those that it should lose, and one pass over the
rows of a query by level computes it. A round costs time linear in the stored numbers of X, for any number of grades.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .penalties import NoPenalty
from .problems import RowProblem
from .solver import Solution, Solver

MAX_GAIN = 1.0 - 1e-9
"""Keeps α finite for a stump that wins every pair."""


@dataclass(frozen=True)
class Stumps:
    """Round t adds alpha[t] if feature[t] is above cut[t]; `loss` is the mean of exp(s_j - s_i) after it."""

    feature: NDArray[np.int64]
    cut: NDArray[np.float64]
    alpha: NDArray[np.float64]
    loss: NDArray[np.float64]

    def first(self, rounds: int) -> Stumps:
        """The stumps of the first rounds."""
        return Stumps(self.feature[:rounds], self.cut[:rounds], self.alpha[:rounds], self.loss[:rounds])

    def scores(self, X: Any) -> NDArray[np.float64]:
        """The sum of the stumps for each row; of a sparse matrix only stored numbers are read."""
        from .._kernels.boosting import add_steps, add_steps_dense

        order = np.lexsort((self.cut, self.feature))
        feature, cut, alpha = self.feature[order], self.cut[order], self.alpha[order]
        starts = np.searchsorted(feature, np.arange(X.shape[1] + 1))
        out = np.full(X.shape[0], alpha[cut < 0.0].sum() if not isinstance(X, np.ndarray) else 0.0)
        if isinstance(X, np.ndarray):
            add_steps_dense(X, starts, cut, alpha, out)
        else:
            add_steps(X.indptr, X.indices, X.data, starts, cut, alpha, out)
        return out


@dataclass(frozen=True)
class PairBoosting(Solver):
    """At most `max_iter` rounds of RankBoost. The number of rounds takes the place of a penalty."""

    max_iter: int = 300
    losses: ClassVar[tuple[type, ...]] = (object,)
    takes_init: ClassVar[bool] = False

    def solve(self, problem: RowProblem, penalty: NoPenalty, init: None = None) -> Solution:
        """The stumps, for X dense or CSC; it stops early if no stump gains anything."""
        from .._kernels.boosting import best_stumps, potentials

        self.check(problem.loss, penalty, init)
        queries = problem.queries
        starts, places, values = _sorted_columns(problem.X, queries.place)
        with np.errstate(divide="ignore"):
            log_weight = np.log(queries.weight)
        scores = np.zeros(len(queries.order))
        gradient, start = potentials(scores, log_weight, queries.level, queries.query_levels)
        rounds: list[tuple[int, float, float, float]] = []
        for _ in range(self.max_iter):
            gain, cut = best_stumps(gradient, starts, places, values, len(scores))
            feature = int(np.abs(gain).argmax())
            r = float(np.clip(gain[feature], -MAX_GAIN, MAX_GAIN))
            if abs(r) < 1e-12:
                break
            alpha = 0.5 * np.log((1.0 + r) / (1.0 - r))
            entries = slice(starts[feature], starts[feature + 1])
            above = values[entries] > cut[feature]
            if cut[feature] < 0.0:  # zeros that are not stored are above the cut
                scores += alpha
                scores[places[entries][~above]] -= alpha
            else:
                scores[places[entries][above]] += alpha
            gradient, mass = potentials(scores, log_weight, queries.level, queries.query_levels)
            rounds.append((feature, float(cut[feature]), alpha, float(np.exp(mass - start))))
        columns = list(zip(*rounds, strict=True)) if rounds else [(), (), (), ()]
        stumps = Stumps(np.array(columns[0], np.int64), *(np.array(column, np.float64) for column in columns[1:]))
        return Solution(stumps, info={"n_iter": len(rounds)})


def _sorted_columns(
    X: Any, place: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The stored entries of each feature by falling value: where each feature starts, the places, the values."""
    from .._kernels.boosting import sort_columns

    rows, features = X.shape
    if isinstance(X, np.ndarray):
        starts = np.arange(features + 1, dtype=np.int64) * rows
        values = np.array(X.T, dtype=np.float64, order="C").ravel()  # a copy, which is sorted in place
        places = np.tile(place, features)
    else:
        starts = X.indptr.astype(np.int64)
        values, places = X.data.astype(np.float64), place[X.indices]
    sort_columns(starts, places, values)
    return starts, places, values
