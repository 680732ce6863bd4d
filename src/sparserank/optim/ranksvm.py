"""RankSVM: a penalty plus the hinge loss, or its square, over all pairs of a query, in three solvers.

    l2 ‖w‖² + C Σ w_i max(0, 1 - w·(x_i - x_j))²      truncated Newton (Lee and Lin, 2014)
    l2 ‖w‖² + C Σ w_i max(0, 1 - w·(x_i - x_j))       cutting planes (Joachims, 2006)
    l1 |w|₁ + C Σ w_i max(0, 1 - w·(x_i - x_j))²      accelerated proximal gradient

Every value takes one product with X and one sort of the scores of each query; a gradient takes a product with Xᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..preferences.queries import Queries
from .coordinate_descent import compute_violations
from .linalg import conjugate_gradient
from .losses import Hinge, SquaredHinge
from .penalties import L1, L2, ElasticNet, Separable
from .solver import Solution, Solver

Floats = NDArray[np.float64]
MAX_IDLE_ROUNDS = 30
"""A plane that was not used for this many rounds is dropped."""
MAX_MIXTURE_STEPS = 20_000


@dataclass(frozen=True)
class PairHinge:
    """C · Σ over pairs of the hinge loss or its square, as a function of w."""

    X: Any
    queries: Queries
    C: float
    squared: bool

    @property
    def loss(self) -> Hinge | SquaredHinge:
        """The loss of a pair."""
        return SquaredHinge() if self.squared else Hinge()

    @cached_property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        """The weight and the level of each place, and where each query starts."""
        queries = self.queries
        level = np.repeat(np.arange(len(queries.level) - 1), np.diff(queries.level))
        return queries.weight, level, queries.start

    def start(self, init: Floats | None) -> Floats:
        """The first w."""
        return np.zeros(self.X.shape[1]) if init is None else np.asarray(init, dtype=np.float64)

    def scores(self, w: Floats) -> Floats:
        """s = X w, by place."""
        return np.asarray(self.X @ w, dtype=np.float64)[self.queries.order]

    def evaluate(self, scores: Floats) -> tuple[float, Floats]:
        """The value, and its derivative by the scores; `project` turns that into the gradient."""
        from .._kernels.pair_hinge import loss_and_gradient

        by_score, queries = np.empty_like(scores), self.queries
        centered = scores - (np.add.reduceat(scores, queries.start[:-1]) / np.diff(queries.start))[queries.query]
        total = loss_and_gradient(centered, *self._arrays, self.squared, by_score)
        return self.C * float(total), self.C * by_score

    def multiply_hessian(self, scores: Floats, v: Floats) -> Floats:
        """The Hessian by w, times v; of the squared hinge loss only."""
        from .._kernels.pair_hinge import multiply_hessian

        out = np.empty_like(scores)
        multiply_hessian(scores, *self._arrays, self.scores(v), out)
        return self.C * self.project(out)

    def project(self, by_score: Floats) -> Floats:
        """Xᵀ g, with g by place."""
        return np.asarray(self.X.T @ by_score[self.queries.place], dtype=np.float64)


@dataclass(frozen=True)
class _PairHingeSolver(Solver):
    """Stop when the violation of optimality is `tol` times the one at the start, which is w = 0 without `init`."""

    tol: float = 1e-4
    max_iter: int = 1000

    def _solution(self, w: Floats, objective: float, violation: float, n_iter: int) -> Solution:
        info = {"objective": objective, "violation": violation, "n_iter": n_iter, "converged": violation <= self.tol}
        return Solution(w, info=info)


class TruncatedNewton(_PairHingeSolver):
    """Newton steps by conjugate gradient, with a line search; the objective is piecewise quadratic."""

    losses: ClassVar[tuple[type, ...]] = (SquaredHinge,)
    penalties: ClassVar[tuple[type, ...]] = (L2,)

    def solve(self, problem: PairHinge, penalty: Separable, init: Floats | None = None) -> Solution:
        """The minimum, from `init` or from zero."""
        self.check(problem.loss, penalty)
        w, l2 = problem.start(init), penalty.l2
        s = problem.scores(w)
        value, by_score = problem.evaluate(s)
        gradient = 2.0 * l2 * w + problem.project(by_score)
        first_norm = float(np.linalg.norm(gradient))
        for n_iter in range(self.max_iter + 1):
            violation = float(np.linalg.norm(gradient)) / first_norm if first_norm else 0.0
            now = l2 * float(w @ w) + value
            if violation <= self.tol or n_iter == self.max_iter:
                break
            step, _ = conjugate_gradient(
                lambda v: 2.0 * l2 * v + problem.multiply_hessian(s, v),  # noqa: B023
                -gradient,
                np.zeros_like(gradient),
                max_iter=min(len(gradient), 200) + 10,
                tol=0.1,
            )
            step_scores, downhill, length = problem.scores(step), float(gradient @ step), 1.0
            for _ in range(60):
                trial, trial_scores = w + length * step, s + length * step_scores
                value, by_score = problem.evaluate(trial_scores)
                if l2 * float(trial @ trial) + value <= now + 1e-4 * length * downhill:
                    break
                length *= 0.5
            else:  # no trial is lower: the objective is exact to its last digits
                break
            w, s, gradient = trial, trial_scores, 2.0 * l2 * trial + problem.project(by_score)
        return self._solution(w, now, violation, n_iter)


class CuttingPlanes(_PairHingeSolver):
    """A lower bound of the loss by planes; the violation is the relative gap between objective and bound."""

    losses: ClassVar[tuple[type, ...]] = (Hinge,)
    penalties: ClassVar[tuple[type, ...]] = (L2,)

    def solve(self, problem: PairHinge, penalty: Separable, init: Floats | None = None) -> Solution:
        """The minimum; w = -Σ α_k gradient_k / (2 l2) minimizes the bound."""
        from .._kernels.pair_hinge import best_mixture

        self.check(problem.loss, penalty)
        w = best_w = problem.start(init)
        l2 = penalty.l2
        gradients, heights = np.zeros((1, len(w))), np.zeros(1)  # the first plane: a hinge is never below 0
        gram, alpha, idle = np.zeros((1, 1)), np.ones(1), np.zeros(1, np.int64)
        best, gap = np.inf, np.inf
        for n_iter in range(self.max_iter + 1):
            value, by_score = problem.evaluate(problem.scores(w))
            if l2 * float(w @ w) + value < best:
                best, best_w = l2 * float(w @ w) + value, w
            below = float(heights @ alpha) - 0.5 * float(alpha @ gram @ alpha)
            gap = max(best - below, 0.0) / best if best > 0 else 0.0
            if gap <= self.tol or n_iter == self.max_iter:
                break
            plane, used = problem.project(by_score), idle < MAX_IDLE_ROUNDS
            gradients, heights = np.vstack([gradients[used], plane]), np.append(heights[used], value - float(plane @ w))
            cross = gradients @ plane / (2.0 * l2)
            gram = np.block([[gram[np.ix_(used, used)], cross[:-1, None]], [cross[None, :]]])
            alpha, idle = np.append(alpha[used], 0.0), np.append(idle[used], 0)
            best_mixture(gram, heights, alpha, 0.1 * gap * best, MAX_MIXTURE_STEPS)
            idle = np.where(alpha > 0, 0, idle + 1)
            w = -(alpha @ gradients) / (2.0 * l2)
        return self._solution(best_w, best, gap, n_iter)


class ProximalGradient(_PairHingeSolver):
    """FISTA with backtracking; momentum restarts whenever the objective would rise."""

    losses: ClassVar[tuple[type, ...]] = (SquaredHinge,)
    penalties: ClassVar[tuple[type, ...]] = (L1, L2, ElasticNet)

    def solve(self, problem: PairHinge, penalty: Separable, init: Floats | None = None) -> Solution:
        """The minimum, from `init` or from zero."""
        self.check(problem.loss, penalty)
        w = y = problem.start(init)
        best, by_score = problem.evaluate(problem.scores(w))
        gradient = problem.project(by_score)
        largest = float(np.abs(gradient).max(initial=0.0))
        L, t, violation = max(float(np.linalg.norm(gradient)), 1e-12), 1.0, np.inf
        for n_iter in range(self.max_iter + 1):
            worst = float(compute_violations(w, gradient, penalty).max(initial=0.0))
            violation = worst / largest if largest else 0.0
            if violation <= self.tol or n_iter == self.max_iter:
                break
            at_y, by_score = problem.evaluate(problem.scores(y))
            y_gradient = problem.project(by_score)
            L *= 0.7
            while True:
                trial = penalty.prox(y - y_gradient / L, 1.0 / L)
                step = trial - y
                value, by_score = problem.evaluate(problem.scores(trial))
                bound = at_y + float(y_gradient @ step) + 0.5 * L * float(step @ step) * (1 + 1e-9) + 1e-12 * abs(at_y)
                if value <= bound:
                    break
                L *= 2.0
            total = value + penalty.value(trial)
            if total > best and t > 1.0:
                y, t = w, 1.0
                continue
            best, t_next = min(best, total), (1.0 + np.sqrt(1.0 + 4.0 * t**2)) / 2.0
            y, w, t, gradient = trial + (t - 1.0) / t_next * (trial - w), trial, t_next, problem.project(by_score)
        return self._solution(w, problem.evaluate(problem.scores(w))[0] + penalty.value(w), violation, n_iter)
