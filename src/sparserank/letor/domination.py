"""DominationRanker: w·x so that every better row beats all worse ones at once (Stevens, Bengio and Singer).

One w from grades by query, or one sparse w a topic. The constructor stores, `fit` judges and delegates, names that end
in `_` are what was learned.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from .. import validation
from ..data.formats.tensors import Tensors, pack_csr
from ..errors import ConfigError, DataError
from ..optim.coordinate_descent import CoordinateDescent
from ..optim.losses import Domination
from ..optim.penalties import L1, L2, ElasticNet, NoPenalty, Separable
from ..optim.problems import LinearProblem, select_windows
from ..optim.scores import Linear
from ..optim.solver import Solution
from ..preferences.queries import Queries
from .base import LinearRanker, by_topic, topic_grades

Floats = NDArray[np.float64]

PENALTIES = ("l1", "l2", "elasticnet", "none")


@dataclass(frozen=True)
class Rows:
    """What the rows of all topics have in common: query ids, weights, and margins, of items × topics or of items."""

    qid: Any
    weight: Any
    margins: Any

    def by_query(self, grades: Any, topic: int) -> Queries:
        """The rows of one topic, with its column of the grades."""
        of_topic = self.margins[:, topic] if np.ndim(self.margins) == 2 else self.margins
        return Queries.of(grades[:, [topic]].toarray().ravel(), self.qid, self.weight, of_topic)


@dataclass(frozen=True)
class DominationSolver:
    """Minimizes loss + penalty by coordinate descent on this machine; `sparserank.spark` has a solver for a cluster."""

    loss: Domination
    penalty: Separable
    descent: CoordinateDescent
    n_jobs: int | None = None

    def solve(self, score: Linear, queries: Queries, max_features: int | None) -> Solution:
        """One w over all queries."""
        problem = LinearProblem(score, queries, self.loss)
        return self.descent.solve(problem, self.penalty, max_features=max_features)

    def solve_topic(self, score: Linear, queries: Queries, max_features: int | None) -> Solution | None:
        """The w of one topic; None if all its grades are equal."""
        if select_windows(self.loss, queries).skipped == len(queries):
            return None
        return DominationSolver.solve(self, score, queries, max_features)

    def solve_topics(self, score: Linear, grades: Any, rows: Rows, max_features: int | None) -> list[Solution | None]:
        """The w of every column of grades."""

        def solve(topic: int) -> Solution | None:
            return self.solve_topic(score, rows.by_query(grades, topic), max_features)

        with ThreadPoolExecutor(validation.threads(self.n_jobs)) as pool:
            return list(pool.map(solve, range(grades.shape[1])))


class DominationRanker(LinearRanker):
    """Minimises  sum_i c_i log(1 + sum_{j below i} exp(w·x_j - w·x_i + Δ(i, j))) + penalty(w),  Δ(i, j) = s(i) - s(j).

    loss : 'graded', j is below i where its grade is lower (the paper's "multi-valued"), or 'base', where i has a grade
        above 0 and j has not.
    margin : s, the paper's separable margin. A number: s = margin · grade. A mapping {grade: s}, or a sequence with s
        of the grades 0, 1, 2, …: any s. `fit(…, margins=s)` adds a number for each item, such as a count of clicks.
        Δ(i, j) must not be negative for any j below i.
    penalty : 'l1', alpha · |w|₁; 'l2', alpha · ‖w‖²; 'elasticnet', alpha · (l1_ratio · |w|₁ + (1 - l1_ratio) · ‖w‖²);
        'none'; or an object of `sparserank.optim.penalties`.
    max_features : the most weights that may be left. With 'l1' it stands for alpha: that comes down from where none is
        left, each step starting from the one before, and `alpha_` is where it ended. With the others alpha stays, the
        least weights are left out, and the rest is learned again, until no more are left than wanted.
    tol : stops where no weight violates optimality by more than tol times the largest entry of the gradient at w = 0;
        `violation_` is that share as it was reached. Reaching max_iter passes over the weights first warns and sets
        converged_ = False.
    share : for topics with a penalty on squares. Above 0, topics learn twice: the second time a feature is held back
        less the larger its weights were over all topics the first time, by that power of their root mean square.
    n_jobs : threads, one topic each; None: all cores. Any number gives the same bits.

    There is no intercept, which no ranking would notice, and nothing is scaled. X is read by columns: CSC is taken as
    it is, CSR or dense is turned into CSC once.

    `fit(X, y, qid)` learns one w; `fit(X, Y)` with a matrix Y of items × topics, dense or sparse, learns one w a topic
    from its column of grades: `coef_` is then a CSR matrix of topics × features, and `predict` gives a column a topic.
    A topic whose grades are all equal teaches nothing, gets no weight and is counted in `skipped_topics_`. `solution_`
    holds what the solver says (of each topic, None for a skipped one).

    >>> X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    >>> ranker = DominationRanker(alpha=0.1).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.coef_.round(2).tolist(), ranker.converged_
    ([2.94, 0.0], True)
    """

    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": None, "margins": None}
    _told: ClassVar[tuple[str, ...]] = (
        *LinearRanker._told, "alpha_", "violation_", "objective_", "skipped_topics_",
    )  # fmt: skip
    solution_: Any
    alpha_: Any

    def __init__(
        self,
        loss: Any = "graded",
        margin: float | Mapping[float, float] | Sequence[float] = 0.0,
        penalty: Any = "l1",
        alpha: float = 1.0,
        l1_ratio: float = 0.5,
        max_features: int | None = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        share: float = 0.0,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.margin = margin
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.max_features = max_features
        self.tol = tol
        self.max_iter = max_iter
        self.share = share
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        *,
        solver: Callable[..., DominationSolver] = DominationSolver,
        **weights: Any,
    ) -> Self:
        """Learn one w from grades by query, or one w a topic from a matrix of items × topics.

        sample_weight : what a row's term counts as a winner.
        margins : s of each row, added to what `margin` gives for its grade; of items × topics where topics differ.
        solver : called with the loss, the penalty, `CoordinateDescent` and n_jobs; its result solves.

        >>> X, clicks = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [90, 10, 0]
        >>> ranker = DominationRanker(loss="base", penalty="l2", alpha=0.01)
        >>> w = ranker.fit(X, [1, 1, 0], margins=[0.1 * count for count in clicks]).coef_
        >>> bool(w[0] > 2 * w[1] > 0)
        True
        """
        self._make_solver = solver
        try:
            if not by_topic(y):
                return super().fit(X, y, qid, **weights)
            with self._refitting():
                self._fit_topics(X, y, qid, weights)
            return self
        finally:
            del self._make_solver

    def _fit_topics(self, X: Any, y: Any, qid: Any, weights: dict[str, Any]) -> None:
        solver = self._solver()
        grades = topic_grades(y)
        margins = _topic_margins(weights.pop("margins", None), grades.shape)
        X, _ = self._checked(X, np.zeros(grades.shape[0]), qid, dict(weights))
        score, worth = Linear.of(X), np.ones(X.shape[1])
        rows = Rows(qid, weights.get("sample_weight"), margins)
        if self.share > 0.0:
            known = [one.weights for one in solver.solve_topics(score, grades, rows, None) if one is not None]
            worth = shared_worth(np.stack(known), self.share) if known else worth
            score = score.scaled(worth)
        found = solver.solve_topics(score, grades, rows, self.max_features)
        scaled = [None if one is None else replace(one, weights=one.weights * worth) for one in found]
        self._take_topics(scaled, len(worth), solver.penalty.alpha)

    def _checked(self, X: Any, y: Any, qid: Any, weights: dict[str, Any]) -> tuple[Any, Queries]:
        margins = weights.pop("margins", None)
        X, queries = super()._checked(X, y, qid, weights)
        return X, queries if margins is None else queries.with_margins(margins)

    def _learn(self, X: Any, queries: Queries) -> None:
        solver = self._solver()
        self.skipped_queries_ = select_windows(solver.loss, queries).skipped
        solution = solver.solve(Linear.of(X), queries, self.max_features)
        self.coef_, self.solution_, info = solution.weights, solution, solution.info
        self.n_iter_, self.alpha_, self.objective_ = info["epochs"], info["penalty"].alpha, info["objective"]
        self.violation_, self.converged_ = info["relative_violation"], info["converged"]
        if not self.converged_:
            self._warn(info["message"])

    def _take_topics(self, found: list[Solution | None], n_features: int, alpha: float) -> None:
        from scipy.sparse import csr_array, vstack

        empty = csr_array((1, n_features), dtype=np.float64)
        known = [solution for solution in found if solution is not None]
        if not known:
            raise DataError(f"nothing to learn: none of the {len(found)} topics has rows of two different grades")
        self.coef_ = csr_array(vstack([empty if one is None else csr_array(one.weights[None, :]) for one in found]))
        self.solution_, self.skipped_topics_ = tuple(found), len(found) - len(known)
        self.n_iter_ = max(solution.info["epochs"] for solution in known)
        self.converged_ = all(solution.info["converged"] for solution in known)
        self.alpha_ = np.array([alpha if one is None else one.info["penalty"].alpha for one in found])
        self.objective_ = float(sum(solution.info["objective"] for solution in known))
        self.violation_ = max(solution.info["relative_violation"] for solution in known)
        if not self.converged_:
            stopped = [topic for topic, one in enumerate(found) if one is not None and not one.info["converged"]]
            self._warn(f"{len(stopped)} of {len(found)} topics, {stopped[0]} first, were stopped at max_iter")

    def _warn(self, what: str) -> None:
        advice = "raise max_iter, or alpha, or scale the features"
        warnings.warn(f"{what}; {advice}", ConvergenceWarning, stacklevel=5)

    # ---- settings made objects

    def _solver(self) -> DominationSolver:
        """Validate the settings and make the solver."""
        validation.number("alpha", self.alpha, low=0)
        validation.threads(self.n_jobs)
        descent = CoordinateDescent(self.tol, self.max_iter)
        loss = self.loss if isinstance(self.loss, Domination) else Domination(self.loss, self.margin)
        penalty = self._penalised()
        if self.max_features is not None:
            validation.count("max_features", self.max_features, low=1)
        if validation.number("share", self.share, low=0) > 0.0 and not penalty.l2 > 0.0:
            raise ConfigError("share needs a penalty on squares: penalty='l2' or 'elasticnet', with alpha above 0")
        return self._make_solver(loss, penalty, descent, self.n_jobs)

    def _penalised(self) -> Separable:
        if isinstance(self.penalty, NoPenalty | L1 | L2 | ElasticNet):
            return self.penalty
        kind = validation.choice("penalty", self.penalty, PENALTIES)
        if kind == "elasticnet":
            return ElasticNet(self.alpha, self.l1_ratio)
        return NoPenalty() if kind == "none" else L1(self.alpha) if kind == "l1" else L2(self.alpha)

    # ---- scores and the model file

    def _scores(self, X: Any) -> Any:
        if isinstance(self.coef_, np.ndarray):
            return super()._scores(X)
        scores = X @ self.coef_.T
        return scores if isinstance(scores, np.ndarray) else scores.toarray()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        if isinstance(self.coef_, np.ndarray):
            return super()._arrays()
        return pack_csr("coef", self.coef_)

    def _restore_arrays(self, file: Tensors) -> None:
        if "coef" in file.arrays:
            super()._restore_arrays(file)
        else:
            self.coef_ = file.csr("coef", (None, self.n_features_in_), "float64")


def shared_worth(weights: Floats, share: float) -> Floats:
    """How little each feature is to be held back, by what it was worth to all topics (topics × features).

    Scaled such that these weights would pay the same penalty as before.
    """
    worth: Floats = np.sqrt((weights**2).mean(axis=0)) ** share
    there = worth > 0.0
    if not there.any():
        return np.ones(weights.shape[1])
    paid = float((weights[:, there] ** 2 / worth[there] ** 2).sum())
    return np.asarray(worth * np.sqrt(paid / float((weights**2).sum())))


def _topic_margins(margins: Any, shape: tuple[int, int]) -> Any:
    """Margins of items, or of items × topics, as an array; None stays None."""
    from scipy.sparse import issparse

    if margins is None:
        return None
    try:
        given = margins.toarray() if issparse(margins) else np.asarray(margins, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"margins must be numbers; got {margins!r:.100}") from None
    if given.ndim == 2 and given.shape != shape:
        raise DataError(f"margins must have the shape of Y, {shape}, or one number a row; got {given.shape}")
    return given
