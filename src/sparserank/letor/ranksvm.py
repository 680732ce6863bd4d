"""RankSVM: w·x with the hinge loss over all pairs of a query, counted and never listed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.exceptions import ConvergenceWarning

from .. import validation
from ..errors import ConfigError
from ..optim.penalties import L1, L2
from ..optim.ranksvm import CuttingPlanes, PairHinge, ProximalGradient, TruncatedNewton
from ..preferences.queries import Queries
from .base import LinearRanker


@dataclass(eq=False, repr=False)
class RankSVM(LinearRanker):
    """Trains w so that a better row of a query scores above a worse one by 1 (Herbrich et al., 2000; Joachims, 2002).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the penalty: the inverse of `alpha`, the name that RankSVM is known by.
    penalty : {'l2', 'l1'}, default='l2'
        ½‖w‖², or |w|₁, which leaves few nonzero weights.
    loss : {'squared_hinge', 'hinge'}, default='squared_hinge'
        Summed over all pairs of each query; 'hinge' requires penalty='l2'.
    tol : float, default=1e-4
        With 'l2', stop when the gradient is `tol` times that at w = 0 ('hinge': when the objective is known to within
        that share). With 'l1', stop when no coordinate violates optimality by more than `tol` times the largest
        gradient at w = 0.
    max_iter : int, default=1000
        The most iterations; reaching it emits a ConvergenceWarning.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features.
    converged_ : bool
        Whether `tol` was reached before `max_iter`.
    violation_, objective_ : float
        Violation of optimality, and the objective, at the end.

    Examples
    --------
    >>> X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    >>> RankSVM(C=10.0).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).predict(X).round(1).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """

    _saved_attributes: ClassVar[tuple[str, ...]] = (*LinearRanker._saved_attributes, "violation_", "objective_")

    C: float = 1.0
    penalty: str = "l2"
    loss: str = "squared_hinge"
    tol: float = 1e-4
    max_iter: int = 1000

    def _train(self, X: Any, queries: Queries) -> None:
        validation.number("C", self.C, low=0, open_low=True)
        validation.choice("penalty", self.penalty, ("l2", "l1"))
        validation.choice("loss", self.loss, ("squared_hinge", "hinge"))
        validation.number("tol", self.tol, low=0, open_low=True)
        validation.count("max_iter", self.max_iter, low=1)
        if self.penalty == "l1" and self.loss == "hinge":
            raise ConfigError("penalty='l1' needs a differentiable loss; use loss='squared_hinge'")
        squared = self.loss == "squared_hinge"
        kind = ProximalGradient if self.penalty == "l1" else TruncatedNewton if squared else CuttingPlanes
        solver = kind(self.tol, self.max_iter)
        penalty = L1(1.0) if self.penalty == "l1" else L2(0.5)
        solution = solver.solve(PairHinge(X, queries, self.C, squared), penalty)
        self.coef_, self.n_iter_ = solution.weights, solution.info["n_iter"]
        self.converged_ = solution.info["converged"]
        self.violation_, self.objective_ = solution.info["violation"], solution.info["objective"]
        if not self.converged_:
            warnings.warn(
                f"RankSVM stopped after {self.n_iter_} iterations at a violation of {self.violation_:.2g}, "
                f"above tol={self.tol:g}; raise max_iter, or lower C, or scale the features",
                ConvergenceWarning,
                stacklevel=3,
            )
