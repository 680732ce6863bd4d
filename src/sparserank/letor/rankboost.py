"""RankBoost: a sum of stumps, boosted over pairs that are never listed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..data.formats.tensors import Tensors
from ..optim.rankboost import Stumps, rankboost
from ..preferences.queries import Queries
from .base import ByQueryRanker


class RankBoost(ByQueryRanker):
    """Boosts pairs of rows, each better than the other by grade, with stumps [x_f > cut] (Freund et al., 2003).

    max_iter : rounds; each adds one stump, with a negative weight where smaller is better. `stumps_` tells of each,
        and `predict_after(X, t)` scores as after t of them, to choose t on validation data.

    >>> X = [[3.0, 0.0], [1.0, 0.0], [2.0, 1.0], [0.0, 1.0]]
    >>> ranker = RankBoost(max_iter=10).fit(X, [1, 0, 1, 0], qid=["a", "a", "b", "b"])
    >>> ranker.predict(X).argsort().tolist()[-2:]
    [0, 2]
    """

    stumps_: Stumps

    def __init__(self, max_iter: int = 300) -> None:
        self.max_iter = max_iter

    def _learn(self, X: Any, queries: Queries) -> None:
        validation.count("max_iter", self.max_iter, low=1)
        self.stumps_ = rankboost(X if isinstance(X, np.ndarray) else X.tocsc(), queries, self.max_iter)
        self.n_iter_ = len(self.stumps_.alpha)

    def _scores(self, X: Any) -> Any:
        return self.stumps_.scores(X if isinstance(X, np.ndarray) else X.tocsr())

    def predict_after(self, X: Any, rounds: int) -> NDArray[np.float64]:
        """The scores of the first rounds alone."""
        kept = self._fitted().stumps_
        X = self._rows(X, reset=False)
        return kept.first(validation.count("rounds", rounds)).scores(X if isinstance(X, np.ndarray) else X.tocsr())

    def _arrays(self) -> dict[str, NDArray[Any]]:
        told = self.stumps_
        return {"feature": told.feature, "cut": told.cut, "alpha": told.alpha, "loss": told.loss}

    def _restore_arrays(self, file: Tensors) -> None:
        feature = file.array("feature", "int64")
        if len(feature) and not 0 <= feature.min() <= feature.max() < self.n_features_in_:
            raise ValueError("a stump on a feature that is not there")
        self.stumps_ = Stumps(
            feature, *(file.array(name, "float64", len(feature)) for name in ("cut", "alpha", "loss"))
        )
