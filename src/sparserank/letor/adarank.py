"""AdaRank: a sum of features, chosen and weighted by boosting to maximize AP or nDCG."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..data.formats.tensors import Tensors
from ..optim.adarank import QueryBoosting, Rounds
from ..optim.penalties import NoPenalty
from ..optim.problems import RowProblem
from ..preferences.queries import Queries
from .base import BoostedRanker, LinearRanker, as_columns, check_features

MEASURES = {"AP": "map", "nDCG": "ndcg", "map": "map", "MAP": "map", "ndcg": "ndcg", "NDCG": "ndcg"}
"""Accepted names and those of the solver."""


@dataclass(eq=False, repr=False)
class AdaRank(LinearRanker, BoostedRanker):
    """Boosts queries until a sum of single features ranks them well (Xu and Li, 2007).

    Parameters
    ----------
    measure : {'AP', 'nDCG'}, default='AP'
        The measure to maximize. A row is relevant if its grade is above the lowest grade of all. The names 'MAP',
        'NDCG', 'map' and 'ndcg' are accepted too.
    cutoff : int, default=10
        The last rank that counts in nDCG; gains 2^(grade - lowest) - 1, discount 1 / log2(1 + rank).
    max_iter : int, default=100
        Rounds; each adds to the weight of one feature.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features.
    rounds_ : Rounds
        Feature, weight and training measure of each round.

    Examples
    --------
    >>> X = [[0.9, 0.3], [0.1, 0.2], [0.2, 0.9], [0.8, 0.1]]
    >>> AdaRank(max_iter=5).fit(X, [1, 0, 0, 1], qid=[1, 1, 2, 2]).coef_.argmax()
    np.int64(0)
    """

    rounds_: Rounds = field(init=False)

    measure: str = "AP"
    cutoff: int = 10
    max_iter: int = 100

    def _train(self, X: Any, queries: Queries) -> None:
        if self.measure not in MEASURES:
            validation.choice("measure", self.measure, ("AP", "nDCG"))
        validation.count("cutoff", self.cutoff, low=1)
        validation.count("max_iter", self.max_iter, low=1)
        solver = QueryBoosting(MEASURES[self.measure], self.cutoff, self.max_iter)
        self.rounds_ = solver.solve(RowProblem(as_columns(X), queries), NoPenalty()).weights
        self.coef_, self.n_iter_ = self.coef_after(self.max_iter), self.max_iter

    def coef_after(self, rounds: int) -> NDArray[np.float64]:
        """Return the weights of the features after some rounds.

        Parameters
        ----------
        rounds : int
            Number of rounds.

        Returns
        -------
        ndarray of shape (n_features,)
        """
        return self.rounds_.coef(self.n_features_in_, validation.count("rounds", rounds, low=1))

    def _scores_after(self, X: Any, rounds: int) -> Any:
        return X @ self.coef_after(rounds)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        rounds = self.rounds_
        return {"feature": rounds.feature, "alpha": rounds.alpha, "worth": rounds.measure}

    def _restore_arrays(self, file: Tensors) -> None:
        alpha = file.array("alpha", "float64")
        feature = file.array("feature", "int64", len(alpha))
        check_features(feature, self.n_features_in_)
        self.rounds_ = Rounds(feature, alpha, file.array("worth", "float64", len(alpha)))
        self.coef_ = self.rounds_.coef(self.n_features_in_)
