"""AdaRank: a sum of features, chosen and weighted by boosting so that MAP or NDCG rises."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..data.formats.tensors import Tensors
from ..optim.adarank import Rounds, adarank
from ..preferences.queries import Queries
from .base import LinearRanker


class AdaRank(LinearRanker):
    """Boosts queries until a sum of single features ranks them well (Xu and Li, 2007).

    measure : 'map' or 'ndcg', what is made to rise; a row is relevant where its grade is above the lowest grade of all.
    cutoff : how many ranks NDCG looks at; gains 2^(grade - lowest) - 1, discount 1 / log2(1 + rank).
    max_iter : rounds; each adds to the weight of one feature. `rounds_` tells of each, and `coef_after(t)` is the model
        as it was after t of them, to choose t on validation data.

    >>> X = [[0.9, 0.3], [0.1, 0.2], [0.2, 0.9], [0.8, 0.1]]
    >>> AdaRank(max_iter=5).fit(X, [1, 0, 0, 1], qid=[1, 1, 2, 2]).coef_.argmax()
    np.int64(0)
    """

    rounds_: Rounds

    def __init__(self, measure: str = "map", cutoff: int = 10, max_iter: int = 100) -> None:
        self.measure = measure
        self.cutoff = cutoff
        self.max_iter = max_iter

    def _learn(self, X: Any, queries: Queries) -> None:
        validation.choice("measure", self.measure, ("map", "ndcg"))
        validation.count("cutoff", self.cutoff, low=1)
        validation.count("max_iter", self.max_iter, low=1)
        self.rounds_ = adarank(
            X if isinstance(X, np.ndarray) else X.tocsc(), queries, self.measure, self.cutoff, self.max_iter
        )
        self.coef_, self.n_iter_ = self.coef_after(self.max_iter), self.max_iter

    def coef_after(self, rounds: int) -> NDArray[np.float64]:
        """The weights of the features after so many rounds."""
        return self.rounds_.coef(self.n_features_in_, validation.count("rounds", rounds, low=1))

    def predict_after(self, X: Any, rounds: int) -> NDArray[np.float64]:
        """The scores of the first rounds alone."""
        coef = self._fitted().coef_after(rounds)
        return np.asarray(self._rows(X, reset=False) @ coef, dtype=np.float64)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        told = self.rounds_
        return {"feature": told.feature, "alpha": told.alpha, "worth": told.worth}

    def _restore_arrays(self, file: Tensors) -> None:
        alpha = file.array("alpha", "float64")
        feature = file.array("feature", "int64", len(alpha))
        if len(feature) and not 0 <= feature.min() <= feature.max() < self.n_features_in_:
            raise ValueError("a feature that is not there")
        self.rounds_ = Rounds(feature, alpha, file.array("worth", "float64", len(alpha)))
        self.coef_ = self.rounds_.coef(self.n_features_in_)
