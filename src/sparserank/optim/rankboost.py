"""RankBoost (Freund, Iyer, Schapire, Singer, 2003): boosting of pairs, where a weak ranker asks whether x_f > cut.

The pairs' distribution D(i, j) ∝ w_i exp(s_j - s_i) is never listed: a stump's gain is r = Σ pull_i [x_i > cut], where
pull_i is the mass of the pairs that row i should win less the mass of those it should lose, and that takes one pass
over the rows of each query by level. So a round costs time linear in the stored numbers of X, for any number of grades.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..preferences.queries import Queries

_SURE = 1.0 - 1e-9
"""A stump that wins every pair has α = ½ ln 2/0; this keeps it finite."""


@dataclass(frozen=True)
class Stumps:
    """Round t adds alpha[t] where feature[t] is above cut[t]; `loss` is the mean of exp(s_j - s_i) after it."""

    feature: NDArray[np.int64]
    cut: NDArray[np.float64]
    alpha: NDArray[np.float64]
    loss: NDArray[np.float64]

    def first(self, rounds: int) -> Stumps:
        """Those of the first rounds."""
        return Stumps(self.feature[:rounds], self.cut[:rounds], self.alpha[:rounds], self.loss[:rounds])

    def scores(self, X: Any) -> NDArray[np.float64]:
        """The sum of the stumps for every row; of a sparse matrix only stored numbers are looked at."""
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


def rankboost(X: Any, queries: Queries, max_iter: int) -> Stumps:
    """Boost for at most `max_iter` rounds; fewer where no stump gains anything any more."""
    from .._kernels.boosting import best_stumps, potentials

    starts, places, values = _sorted_columns(X, queries.place)
    with np.errstate(divide="ignore"):
        log_weight = np.log(queries.weight)
    scores = np.zeros(len(queries.order))
    pull, start = potentials(scores, log_weight, queries.level, queries.query_levels)
    rounds: list[tuple[int, float, float, float]] = []
    for _ in range(max_iter):
        gain, cut = best_stumps(pull, starts, places, values, len(scores))
        feature = int(np.abs(gain).argmax())
        r = float(np.clip(gain[feature], -_SURE, _SURE))
        if abs(r) < 1e-12:
            break
        alpha = 0.5 * np.log((1.0 + r) / (1.0 - r))
        entries = slice(starts[feature], starts[feature + 1])
        above = values[entries] > cut[feature]
        if cut[feature] < 0.0:  # zeros that are not stored lie above it
            scores += alpha
            scores[places[entries][~above]] -= alpha
        else:
            scores[places[entries][above]] += alpha
        pull, mass = potentials(scores, log_weight, queries.level, queries.query_levels)
        rounds.append((feature, float(cut[feature]), alpha, float(np.exp(mass - start))))
    columns = list(zip(*rounds, strict=True)) if rounds else [(), (), (), ()]
    return Stumps(np.array(columns[0], np.int64), *(np.array(column, np.float64) for column in columns[1:]))


def _sorted_columns(
    X: Any, place: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Every feature's stored entries by falling value: where each feature begins, their places, their values."""
    from .._kernels.boosting import sort_columns

    rows, features = X.shape
    if isinstance(X, np.ndarray):
        starts = np.arange(features + 1, dtype=np.int64) * rows
        values = np.array(X.T, dtype=np.float64, order="C").ravel()  # always a copy: it is sorted in place
        places = np.tile(place, features)
    else:
        starts = X.indptr.astype(np.int64)
        values, places = X.data.astype(np.float64), place[X.indices]
    sort_columns(starts, places, values)
    return starts, places, values
