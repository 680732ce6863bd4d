"""RankSVM: w·x with the hinge over all pairs of a query, counted and never listed."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from sklearn.exceptions import ConvergenceWarning

from .. import validation
from ..errors import ConfigError
from ..optim.ranksvm import PairHinge, cutting_planes, newton, proximal
from ..preferences.queries import Queries
from .base import LinearRanker


class RankSVM(LinearRanker):
    """Learns w so that a better row of a query scores above a worse one by 1 (Herbrich et al., 2000; Joachims, 2002).

    penalty : 'l2', ½‖w‖², or 'l1', |w|₁, which leaves few weights.
    loss : 'squared_hinge' or 'hinge' (with 'l2' only), summed over all pairs of each query.
    C : what that sum counts against the penalty.
    tol : 'l2' stops where the gradient is `tol` times that at w = 0 ('hinge': where the objective is known to within
        that share), 'l1' where no coordinate violates its optimality by more than `tol` times the largest slope at 0.
        What is reached is `violation_`; reaching max_iter first warns and sets converged_ = False.

    >>> X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    >>> RankSVM(C=10.0).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).predict(X).round(1).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """

    _told: ClassVar[tuple[str, ...]] = (*LinearRanker._told, "violation_", "objective_")

    def __init__(
        self, C: float = 1.0, penalty: str = "l2", loss: str = "squared_hinge", tol: float = 1e-4, max_iter: int = 1000
    ) -> None:
        self.C = C
        self.penalty = penalty
        self.loss = loss
        self.tol = tol
        self.max_iter = max_iter

    def _learn(self, X: Any, queries: Queries) -> None:
        validation.number("C", self.C, low=0, open_low=True)
        validation.choice("penalty", self.penalty, ("l2", "l1"))
        validation.choice("loss", self.loss, ("squared_hinge", "hinge"))
        validation.number("tol", self.tol, low=0, open_low=True)
        validation.count("max_iter", self.max_iter, low=1)
        if self.penalty == "l1" and self.loss == "hinge":
            raise ConfigError("penalty='l1' needs a slope to follow, which the hinge lacks; use loss='squared_hinge'")
        solve = cutting_planes if self.loss == "hinge" else newton if self.penalty == "l2" else proximal
        found = solve(PairHinge(X, queries, self.C, self.loss == "squared_hinge"), self.tol, self.max_iter)
        self.coef_, self.n_iter_, self.converged_ = found.weights, found.info["n_iter"], found.info["converged"]
        self.violation_, self.objective_ = found.info["violation"], found.info["objective"]
        if not self.converged_:
            warnings.warn(
                f"RankSVM stopped after {self.n_iter_} iterations at a violation of {self.violation_:.2g}, above "
                f"tol={self.tol:g}; raise max_iter, or lower C, or scale the features",
                ConvergenceWarning,
                stacklevel=3,
            )
