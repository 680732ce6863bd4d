"""RankBoost: a sum of stumps, boosted over pairs that are never listed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from .. import validation
from ..data.formats.tensors import Tensors
from ..optim.penalties import NoPenalty
from ..optim.problems import RowProblem
from ..optim.rankboost import PairBoosting, Stumps
from ..preferences.queries import Queries
from .base import BoostedRanker, as_columns, as_rows, check_features


@dataclass(eq=False, repr=False)
class RankBoost(BoostedRanker):
    """Boosts pairs of rows of different grades with stumps [x_f > cut] (Freund et al., 2003).

    Parameters
    ----------
    max_iter : int, default=300
        Rounds; each adds one stump, with a negative weight if smaller values are better.

    Attributes
    ----------
    stumps_ : Stumps
        Feature, cut, weight and training loss of each round.

    Examples
    --------
    >>> X = [[3.0, 0.0], [1.0, 0.0], [2.0, 1.0], [0.0, 1.0]]
    >>> ranker = RankBoost(max_iter=10).fit(X, [1, 0, 1, 0], qid=["a", "a", "b", "b"])
    >>> ranker.predict(X).argsort().tolist()[-2:]
    [0, 2]
    """

    stumps_: Stumps = field(init=False)

    max_iter: int = 300

    def _train(self, X: Any, queries: Queries) -> None:
        validation.count("max_iter", self.max_iter, low=1)
        problem = RowProblem(as_columns(X), queries)
        self.stumps_ = PairBoosting(self.max_iter).solve(problem, NoPenalty()).weights
        self.n_iter_ = len(self.stumps_.alpha)

    def _scores(self, X: Any) -> Any:
        return self.stumps_.scores(as_rows(X))

    def _scores_after(self, X: Any, rounds: int) -> Any:
        return self.stumps_.first(validation.count("rounds", rounds)).scores(as_rows(X))

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self.stumps_, name) for name in ("feature", "cut", "alpha", "loss")}

    def _restore_arrays(self, file: Tensors) -> None:
        feature = file.array("feature", "int64")
        check_features(feature, self.n_features_in_)
        self.stumps_ = Stumps(
            feature, *(file.array(name, "float64", len(feature)) for name in ("cut", "alpha", "loss"))
        )
