"""CoordinateDescent: Fig. 1.1 of Stevens, Bengio and Singer, *Efficient Learning of Sparse Ranking Functions*.

    min over w   sum_i c_i log(1 + sum_{j below i} exp(w·x_j - w·x_i + margin_ij)) + l1 |w|₁ + l2 ‖w‖²

One weight at a time, by the minimum of an upper bound of the objective along it, so that no step ever increases it; see
`_kernels.domination` for the sums that make a step linear in the rows that have the feature.

Only a working set of weights is visited: the nonzeros and the zeros that violate optimality most. Once it converged,
the gradient of all weights is computed and the set grows, until nothing violates optimality by more than tol times the
largest entry of the gradient at w = 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..preferences.queries import Queries
from .losses import Domination
from .penalties import L1, L2, ElasticNet, NoPenalty, Separable
from .problems import LinearProblem, select_windows
from .solver import Solution, Solver

Floats = NDArray[np.float64]

FIRST_WORKING_SET = 500
"""Weights in the first working set, if more violate optimality."""
KEPT_SHARE = 2 / 3
"""The share of the weights that stay in one round of pruning."""
PATH_FACTOR, SMALLEST_ALPHA = 0.7, 1e-6
"""The factor between two alphas of a path, and its end as a share of the alpha that leaves no weight."""


@dataclass(frozen=True)
class Round:
    """The state when the gradient of all weights was computed."""

    epochs: int
    objective: float
    violation: float
    nonzeros: int
    working_set: int


def make_solution(
    w: Floats, penalty: Separable, loss: float, violation: float, scale: float, epochs: int, converged: bool,
    rounds: tuple[Round, ...] = (),
) -> Solution:  # fmt: skip
    """The solution of a linear problem.

    violation : the distance of 0 from the subdifferential, in its worst entry. scale : the largest entry of the
        gradient at w = 0.
    """
    nonzeros, relative = int(np.count_nonzero(w)), violation / scale if scale > 0 else 0.0
    message = (
        f"coordinate descent {'converged' if converged else 'stopped at max_iter'} after {epochs} passes with "
        f"{nonzeros} weights; the violation of optimality is {relative:.2g} of the gradient at 0"
    )
    info = {
        "penalty": penalty,
        "loss": loss,
        "objective": loss + penalty.value(w),
        "violation": violation,
        "relative_violation": relative,
        "scale": scale,
        "epochs": epochs,
        "nonzeros": nonzeros,
        "converged": converged,
        "message": message,
    }
    return Solution(w, rounds, info)


@dataclass(frozen=True)
class CoordinateDescent(Solver):
    """The settings: tol, relative to the gradient at w = 0, and max_iter, the most passes over the working set."""

    tol: float = 1e-4
    max_iter: int = 1000
    losses: ClassVar[tuple[type, ...]] = (Domination,)
    penalties: ClassVar[tuple[type, ...]] = (NoPenalty, L1, L2, ElasticNet)

    def __post_init__(self) -> None:
        validation.number("tol", self.tol, low=0)
        validation.count("max_iter", self.max_iter, low=0)

    def solve(
        self, problem: LinearProblem, penalty: Separable, init: Floats | None = None, max_features: int | None = None
    ) -> Solution:
        """The minimum, from `init` or from zero; with at most `max_features` weights.

        To keep `max_features`, L1 searches the smallest alpha that leaves no more; other penalties prune.
        """
        self.check(problem.loss, penalty)
        descent = Descent(problem, self)
        if init is not None:
            descent.w[:] = init
        if max_features is None:
            return descent.minimize(penalty)
        if isinstance(penalty, L1):
            return descent.search_alpha(penalty, max_features)
        return descent.prune(penalty, max_features)


class Descent:
    """One problem, and its current weights; each `minimize(penalty)` starts from the weights of the one before."""

    def __init__(self, problem: LinearProblem, settings: CoordinateDescent) -> None:
        from .._kernels.domination import COLUMNS

        self.settings, self._columns, self._offset = settings, problem.score, problem.offsets
        self.queries = queries = select_windows(problem.loss, problem.queries).require_pairs()
        n, levels, n_features = len(queries.order), len(queries.level) - 1, problem.score.shape[1]
        self._level_query = np.repeat(np.arange(len(queries)), np.diff(queries.query_levels))
        alone = (np.diff(queries.query_levels) == 1)[self._level_query]
        level = np.repeat(np.where(alone, -1, np.arange(levels)), np.diff(queries.level))
        self._level: NDArray[Any] = queries.by_row(level).astype(np.int16 if levels < 2**15 else np.int64)
        self._position, self._order = queries.place.view(np.uint64), queries.order.view(np.uint64)
        self._level_start, self._query_start, self._weight = queries.level, queries.query_levels, queries.weight
        self.w = np.zeros(n_features)
        self._score, self._loser_exp, self._winner_exp = np.empty(n), np.zeros(n), np.zeros(n)
        self._sums = np.zeros((levels, COLUMNS))
        self._stamp, self._clock = np.zeros(len(queries), np.int64), np.zeros(1, np.int64)
        self._touched = np.empty(len(queries), np.int64)
        self._score_gradient, self._gradient = np.zeros(n), np.empty(n_features)
        self._all = np.arange(n_features)
        self._bound_curvature(queries)
        self._open = self._feature_range > 0.0
        self.loss = self._refresh()
        self.scale = float(np.abs(self._full_gradient()).max(initial=0.0))

    def _bound_curvature(self, queries: Queries) -> None:
        """The largest range of each feature within a query, and the bound of the curvature that follows."""
        from .._kernels.columns import ranges

        wins = queries.first_loser < queries.query_end
        mass = np.bincount(queries.query, np.where(wins, queries.weight, 0.0), len(queries))
        if len(queries) == 1:
            self._feature_range = self._columns.ranges
            self._bound = mass[0] * self._feature_range**2 / 4.0
            return
        self._feature_range, self._bound = np.zeros_like(self.w), np.zeros_like(self.w)
        query = np.where(self._level < 0, -1, queries.by_row(queries.query))
        ranges(*self._matrix, query, np.diff(queries.start), mass, self._feature_range, self._bound)

    @property
    def _matrix(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        return self._columns.pointer, self._columns.rows, self._columns.values

    @property
    def _levels(self) -> tuple[NDArray[Any], ...]:
        return self._order, self._level_start, self._query_start, self._weight

    @property
    def _state(self) -> tuple[Floats, ...]:
        return self._loser_exp, self._winner_exp, self._sums

    def _refresh(self) -> float:
        """Scores and sums from the weights, without accumulated rounding; returns the loss."""
        from .._kernels.domination import compute_scores, rebuild

        compute_scores(*self._matrix, self.w, self._offset, self._score)
        return float(rebuild(self._score, *self._levels, *self._state))

    def _full_gradient(self) -> Floats:
        from .._kernels.domination import feature_gradient, score_gradient

        score_gradient(*self._levels, *self._state, self._score_gradient)
        feature_gradient(*self._matrix, self._score_gradient, self._all, self._gradient)
        return self._gradient

    def evaluate(self, w: Floats) -> tuple[float, Floats]:
        """The loss of these weights and its gradient, without the penalty."""
        self.w[:] = w
        return self._refresh(), self._full_gradient().copy()

    def minimize(self, penalty: Separable) -> Solution:
        """The minimum with this penalty, from the current weights."""
        rounds: list[Round] = []
        goal, epochs, size = self.settings.tol * self.scale, 0, FIRST_WORKING_SET
        while True:
            loss = self._refresh()
            violations = self._violations(penalty)
            worst = float(violations.max(initial=0.0))
            rounds.append(Round(epochs, loss + penalty.value(self.w), worst, int(np.count_nonzero(self.w)), size))
            if worst <= goal or epochs >= self.settings.max_iter:
                break
            working = self._working_set(violations, size)
            size = 2 * len(working)
            epochs += self._descend(working, penalty, max(goal / 2.0, worst / 4.0), epochs)
        return make_solution(self.w.copy(), penalty, loss, worst, self.scale, epochs, worst <= goal, tuple(rounds))

    def _violations(self, penalty: Separable) -> Floats:
        """`_kernels.domination.violation` of every weight that may move."""
        out = compute_violations(self.w, self._full_gradient(), penalty)
        out[~self._open] = 0.0
        return out

    def _working_set(self, violations: Floats, size: int) -> NDArray[np.int64]:
        """The nonzero weights, and the zeros that violate optimality most."""
        zero = self.w == 0.0
        room = max(size - int((~zero).sum()), FIRST_WORKING_SET)
        news = np.flatnonzero(zero & (violations > 0.0))
        if len(news) > room:
            news = news[np.argpartition(-violations[news], room)[:room]]
        return np.union1d(np.flatnonzero(~zero & self._open), news)

    def _descend(self, working: NDArray[np.int64], penalty: Separable, goal: float, done: int) -> int:
        """Pass over the working set until its violation is at most `goal`; returns the number of passes."""
        from .._kernels.domination import descend

        active, slack, epochs = len(working), np.inf, 0
        while done + epochs < self.settings.max_iter:
            active, worst = descend(
                *self._matrix, self._level, self._position, self._level_query, *self._levels, working, active, self.w,
                self._feature_range, self._bound, penalty.l1, penalty.l2, slack, self._offset, self._score,
                *self._state, self._stamp, self._clock, self._touched,
            )  # fmt: skip
            epochs += 1
            slack = worst
            if worst <= goal:
                break
        return epochs

    def prune(self, penalty: Separable, max_features: int) -> Solution:
        """At most `max_features` weights: remove the least important third and solve again, until few enough are left.

        The importance of a weight is |w_r| ‖x_r‖^½, halfway between its size and its share in the scores.
        """
        solution = self.minimize(penalty)
        while solution.info["nonzeros"] > max_features:
            n_kept = max(max_features, int(KEPT_SHARE * solution.info["nonzeros"]))
            importance = np.abs(self.w) * np.sqrt(self._columns.lengths)
            self._open[np.argsort(-importance, kind="stable")[n_kept:]] = False
            self.w[~self._open] = 0.0
            solution = self.minimize(penalty)
        return solution

    def search_alpha(self, penalty: L1, max_features: int) -> Solution:
        """The minimum for the smallest alpha that leaves at most `max_features` weights, by a warm-started path.

        The path stops where the weights first exceed `max_features`; the last step is then bisected until alpha is
        known to a thousandth or exactly `max_features` weights are left.
        """
        high, low = self.scale, 0.0
        best = self.minimize(replace(penalty, alpha=high))
        while best.info["nonzeros"] < max_features and high > SMALLEST_ALPHA * self.scale and low < 0.999 * high:
            middle = high * PATH_FACTOR if low == 0.0 else (high * low) ** 0.5
            solution = self.minimize(replace(penalty, alpha=middle))
            if solution.info["nonzeros"] > max_features:
                low, self.w[:] = middle, best.weights
            else:
                high, best = middle, solution
        return best


def compute_violations(w: Floats, gradient: Floats, penalty: Separable) -> Floats:
    """The distance of 0 from the subdifferential of loss + penalty, along each weight."""
    g = gradient + 2.0 * penalty.l2 * w
    return np.where(w == 0.0, np.maximum(np.abs(g) - penalty.l1, 0.0), np.abs(g + np.copysign(penalty.l1, w)))
