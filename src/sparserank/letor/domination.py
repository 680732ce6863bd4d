"""DominationRanker: w·x so that every better row beats all worse ones at once (Stevens, Bengio and Singer, 2010)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
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
from .base import LinearRanker
from .topics import is_topic_matrix, topic_grades

Floats = NDArray[np.float64]

PENALTIES = ("l1", "l2", "elasticnet", "none")


@dataclass(frozen=True)
class TopicRows:
    """What the rows of all topics share: query ids, weights, and margins of items, or of items × topics."""

    qid: Any
    weight: Any
    margins: Any

    def by_query(self, grades: Any, topic: int) -> Queries:
        """The rows of one topic, with its column of the grades."""
        margins = self.margins[:, topic] if np.ndim(self.margins) == 2 else self.margins
        return Queries.of(grades[:, [topic]].toarray().ravel(), self.qid, self.weight, margins)


@dataclass(frozen=True)
class DominationSolver:
    """Minimizes loss + penalty by coordinate descent on this machine; `sparserank.spark` has a solver for a cluster."""

    loss: Domination
    penalty: Separable
    descent: CoordinateDescent
    n_jobs: int | None = None

    def fit_one(self, score: Linear, queries: Queries, max_features: int | None) -> Solution:
        """One w."""
        problem = LinearProblem(score, queries, self.loss)
        return self.descent.solve(problem, self.penalty, max_features=max_features)

    def fit_topic(self, score: Linear, queries: Queries, max_features: int | None) -> Solution | None:
        """The w of one topic; None if all its grades are equal."""
        if select_windows(self.loss, queries).skipped == len(queries):
            return None
        return DominationSolver.fit_one(self, score, queries, max_features)

    def fit_topics(
        self, score: Linear, grades: Any, rows: TopicRows, max_features: int | None
    ) -> list[Solution | None]:
        """The w of every column of grades."""

        def fit(topic: int) -> Solution | None:
            return self.fit_topic(score, rows.by_query(grades, topic), max_features)

        with ThreadPoolExecutor(validation.threads(self.n_jobs)) as pool:
            return list(pool.map(fit, range(grades.shape[1])))


@dataclass(eq=False, repr=False)
class DominationRanker(LinearRanker):
    """Minimizes sum_i c_i log(1 + sum_{j below i} exp(w·x_j - w·x_i + Δ(i, j))) + penalty(w), Δ(i, j) = s(i) - s(j).

    There is no intercept, which does not change a ranking, and features are not scaled. X is read by columns: CSC is
    used as it is, CSR or dense is converted to CSC once.

    Parameters
    ----------
    loss : {'graded', 'base'}, default='graded'
        'graded': j is below i if its grade is lower (the paper's "multi-valued"). 'base': j is below i if i has a grade
        above 0 and j has not.
    margin : float, mapping or sequence, default=0.0
        s, the paper's separable margin. A number means s = margin · grade; a mapping {grade: s}, or a sequence with s
        of the grades 0, 1, 2, …, means any s. Δ(i, j) must not be negative for any j below i.
    penalty : {'l1', 'l2', 'elasticnet', 'none'} or penalty object, default='l1'
        alpha · |w|₁; alpha · ‖w‖²; alpha · (l1_ratio · |w|₁ + (1 - l1_ratio) · ‖w‖²); none; or an object of
        `sparserank.optim.penalties`.
    alpha : float, default=1.0
        Regularization strength.
    l1_ratio : float, default=0.5
        The share of L1 in 'elasticnet'.
    max_features : int, default=None
        The most nonzero weights. With 'l1' it replaces alpha: alpha decreases from where all weights are 0, each step
        starting from the one before. With other penalties, the smallest weights are pruned and the rest is trained
        again, until no more than `max_features` are left.
    tol : float, default=1e-4
        Stop when no weight violates optimality by more than tol times the largest entry of the gradient at w = 0.
    max_iter : int, default=1000
        The most passes over the weights; reaching it emits a ConvergenceWarning.
    share : float, default=0.0
        For topics with an L2 part in the penalty. Above 0, topics are trained twice: the second time a feature is
        penalized less the larger its weights were over all topics, by that power of their root mean square.
    n_jobs : int, default=None
        Threads, one topic each. None means all cores. Any number gives the same bits.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or csr_array of shape (n_topics, n_features)
        Weights of the features.
    alpha_ : float or ndarray
        The regularization strength at the end.
    converged_ : bool
        Whether `tol` was reached before `max_iter`.
    violation_, objective_ : float
        Violation of optimality relative to the gradient at 0, and the objective, at the end.
    skipped_topics_ : int
        Topics whose grades are all equal; they have no weights.
    solution_ : Solution or tuple
        What the solver returned (for each topic, None for a skipped one).

    Examples
    --------
    >>> X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    >>> ranker = DominationRanker(alpha=0.1).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2])
    >>> ranker.coef_.round(2).tolist(), ranker.converged_
    ([2.94, 0.0], True)
    """

    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": None, "margins": None}
    _saved_attributes: ClassVar[tuple[str, ...]] = (
        *LinearRanker._saved_attributes, "alpha_", "violation_", "objective_", "skipped_topics_",
    )  # fmt: skip
    solution_: Any = field(init=False)
    alpha_: Any = field(init=False)

    loss: Any = "graded"
    margin: float | Mapping[float, float] | Sequence[float] = 0.0
    penalty: Any = "l1"
    alpha: float = 1.0
    l1_ratio: float = 0.5
    max_features: int | None = None
    tol: float = 1e-4
    max_iter: int = 1000
    share: float = 0.0
    n_jobs: int | None = None

    def fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        *,
        solver: Callable[..., DominationSolver] = DominationSolver,
        **weights: Any,
    ) -> Self:
        """Train one w from grades by query, or one w per topic from a matrix of items × topics.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Feature vectors.
        y : array-like of shape (n_rows,), or array or sparse matrix of shape (n_rows, n_topics)
            Grades. With topics, `coef_` has a row and `predict` a column per topic.
        qid : array-like of shape (n_rows,), default=None
            Query ids. None means that all rows are one query.
        solver : callable, default=DominationSolver
            Makes the solver from the loss, the penalty, the settings of coordinate descent and `n_jobs`.
        **weights
            `sample_weight`: weight of each row as a winner. `margins`: s of each row, added to that of its grade, such
            as a count of clicks; of shape (n_rows, n_topics) if topics differ.

        Returns
        -------
        self

        Examples
        --------
        >>> X, clicks = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [90, 10, 0]
        >>> ranker = DominationRanker(loss="base", penalty="l2", alpha=0.01)
        >>> w = ranker.fit(X, [1, 1, 0], margins=[0.1 * count for count in clicks]).coef_
        >>> bool(w[0] > 2 * w[1] > 0)
        True
        """
        with self._refitting():
            chosen_solver = self._make_solver(solver)
            if is_topic_matrix(y):
                self._fit_topics(chosen_solver, X, y, qid, weights)
            else:
                X, queries = self._validate(X, y, qid, weights)
                self._train(X, queries.require_pairs(), chosen_solver)
        return self

    def _train(self, X: Any, queries: Queries, solver: DominationSolver | None = None) -> None:
        solver = solver or self._make_solver(DominationSolver)
        self.skipped_queries_ = select_windows(solver.loss, queries).skipped
        solution = solver.fit_one(Linear.of(X), queries, self.max_features)
        self.coef_, self.solution_, info = solution.weights, solution, solution.info
        self.n_iter_, self.alpha_, self.objective_ = info["epochs"], info["penalty"].alpha, info["objective"]
        self.violation_, self.converged_ = info["relative_violation"], info["converged"]
        if not self.converged_:
            self._warn(info["message"], stacklevel=4)

    def _fit_topics(self, solver: DominationSolver, X: Any, y: Any, qid: Any, weights: dict[str, Any]) -> None:
        grades = topic_grades(y)
        margins = _topic_margins(weights.pop("margins", None), grades.shape)
        X, _ = self._validate(X, np.zeros(grades.shape[0]), qid, dict(weights))
        score, scale = Linear.of(X), np.ones(X.shape[1])
        rows = TopicRows(qid, weights.get("sample_weight"), margins)
        if self.share > 0.0:
            first = [one.weights for one in solver.fit_topics(score, grades, rows, None) if one is not None]
            scale = shared_scale(np.stack(first), self.share) if first else scale
            score = score.scaled(scale)
        solutions = solver.fit_topics(score, grades, rows, self.max_features)
        rescaled = [None if one is None else replace(one, weights=one.weights * scale) for one in solutions]
        self._set_topics(rescaled, len(scale), solver.penalty.alpha)

    def _set_topics(self, solutions: list[Solution | None], n_features: int, alpha: float) -> None:
        from scipy.sparse import csr_array, vstack

        empty = csr_array((1, n_features), dtype=np.float64)
        solved = [solution for solution in solutions if solution is not None]
        if not solved:
            raise DataError(f"nothing to learn: none of the {len(solutions)} topics has rows of two different grades")
        self.coef_ = csr_array(vstack([empty if one is None else csr_array(one.weights[None, :]) for one in solutions]))
        self.solution_, self.skipped_topics_ = tuple(solutions), len(solutions) - len(solved)
        self.n_iter_ = max(solution.info["epochs"] for solution in solved)
        self.converged_ = all(solution.info["converged"] for solution in solved)
        self.alpha_ = np.array([alpha if one is None else one.info["penalty"].alpha for one in solutions])
        self.objective_ = float(sum(solution.info["objective"] for solution in solved))
        self.violation_ = max(solution.info["relative_violation"] for solution in solved)
        if not self.converged_:
            stopped = [topic for topic, one in enumerate(solutions) if one is not None and not one.info["converged"]]
            self._warn(f"{len(stopped)} of {len(solutions)} topics, {stopped[0]} first, were stopped at max_iter", 5)

    def _warn(self, problem: str, stacklevel: int) -> None:
        advice = "raise max_iter, or alpha, or scale the features"
        warnings.warn(f"{problem}; {advice}", ConvergenceWarning, stacklevel=stacklevel)

    def _validate(self, X: Any, y: Any, qid: Any, weights: dict[str, Any]) -> tuple[Any, Queries]:
        margins = weights.pop("margins", None)
        X, queries = super()._validate(X, y, qid, weights)
        return X, queries if margins is None else queries.with_margins(margins)

    def _make_solver(self, solver: Callable[..., DominationSolver]) -> DominationSolver:
        validation.number("alpha", self.alpha, low=0)
        validation.threads(self.n_jobs)
        descent = CoordinateDescent(self.tol, self.max_iter)
        loss = self.loss if isinstance(self.loss, Domination) else Domination(self.loss, self.margin)
        penalty = self._make_penalty()
        if self.max_features is not None:
            validation.count("max_features", self.max_features, low=1)
        if validation.number("share", self.share, low=0) > 0.0 and not penalty.l2 > 0.0:
            raise ConfigError("share needs an L2 part in the penalty: penalty='l2' or 'elasticnet', with alpha above 0")
        return solver(loss, penalty, descent, self.n_jobs)

    def _make_penalty(self) -> Separable:
        if isinstance(self.penalty, NoPenalty | L1 | L2 | ElasticNet):
            return self.penalty
        name = validation.choice("penalty", self.penalty, PENALTIES)
        if name == "elasticnet":
            return ElasticNet(self.alpha, self.l1_ratio)
        return NoPenalty() if name == "none" else L1(self.alpha) if name == "l1" else L2(self.alpha)

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


def shared_scale(weights: Floats, share: float) -> Floats:
    """The scale of each feature, the larger the larger its weights are over all topics (topics × features).

    The scale is normalized such that these weights have the same penalty as before.
    """
    scale: Floats = np.sqrt((weights**2).mean(axis=0)) ** share
    nonzero = scale > 0.0
    if not nonzero.any():
        return np.ones(weights.shape[1])
    penalty = float((weights[:, nonzero] ** 2 / scale[nonzero] ** 2).sum())
    return np.asarray(scale * np.sqrt(penalty / float((weights**2).sum())))


def _topic_margins(margins: Any, shape: tuple[int, int]) -> Any:
    """Margins of items, or of items × topics, as an array; None stays None."""
    from scipy.sparse import issparse

    if margins is None:
        return None
    try:
        array = margins.toarray() if issparse(margins) else np.asarray(margins, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"margins must be numbers; got {margins!r:.100}") from None
    if array.ndim == 2 and array.shape != shape:
        raise DataError(f"margins must have the shape of Y, {shape}, or one number per row; got {array.shape}")
    return array
