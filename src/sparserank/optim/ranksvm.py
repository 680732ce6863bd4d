"""RankSVM's objectives: a penalty + C · Σ over pairs of the hinge, or its square, at w.

    L2, squared:  ½‖w‖² + C Σ w_i max(0, 1 - w·(x_i - x_j))²    truncated Newton (Lee, Lin, 2014)
    L2, plain:    ½‖w‖² + C Σ w_i max(0, 1 - w·(x_i - x_j))     cutting planes (Joachims, 2006)
    L1, squared:   |w|₁ + C Σ w_i max(0, 1 - w·(x_i - x_j))²    accelerated proximal gradient

Every value and gradient takes one product with X, one with its transpose, and one sort of each query's scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..preferences.queries import Queries
from .linalg import conjugate_gradient
from .penalties import L1
from .solver import Solution

Floats = NDArray[np.float64]
MAX_IDLE_ROUNDS = 30
"""A plane that was not used for so many rounds is dropped."""
MAX_MIXTURE_STEPS = 20_000


class PairHinge:
    """C · Σ over pairs of the hinge, as a function of w."""

    def __init__(self, X: Any, queries: Queries, C: float, squared: bool) -> None:
        from .._kernels import pair_hinge as kernel

        self._kernel, self._X, self._queries, self._C, self._squared = kernel, X, queries, C, squared
        self._tier = np.repeat(np.arange(len(queries.level) - 1), np.diff(queries.level))
        self.width = int(X.shape[1])

    def scores(self, w: Floats) -> Floats:
        """s = X w, by place."""
        return np.asarray(self._X @ w, dtype=np.float64)[self._queries.order]

    def evaluate(self, scores: Floats) -> tuple[float, Floats]:
        """The value, and the gradient by w."""
        by_score, queries = np.empty_like(scores), self._queries
        centered = scores - (np.add.reduceat(scores, queries.start[:-1]) / np.diff(queries.start))[queries.query]
        args = centered, queries.weight, self._tier, queries.start, self._squared, by_score
        total = self._kernel.loss_and_gradient(*args)
        return self._C * float(total), self._project(self._C * by_score)

    def multiply_hessian(self, scores: Floats, v: Floats) -> Floats:
        """The Hessian by w, times v; of the squared hinge only."""
        out, queries = np.empty_like(scores), self._queries
        self._kernel.multiply_hessian(scores, queries.weight, self._tier, queries.start, self.scores(v), out)
        return self._C * self._project(out)

    def _project(self, by_score: Floats) -> Floats:
        """Xᵀ g, g by place."""
        return np.asarray(self._X.T @ by_score[self._queries.place], dtype=np.float64)


def _solution(w: Floats, objective: float, violation: float, n_iter: int, tol: float) -> Solution:
    """violation : of the optimality conditions, relative to the one at w = 0."""
    info = {"objective": objective, "violation": violation, "n_iter": n_iter, "converged": violation <= tol}
    return Solution(w, info=info)


def newton(loss: PairHinge, tol: float, max_iter: int) -> Solution:
    """½‖w‖² + loss(w), which is piecewise quadratic: conjugate gradient inside Newton steps, then a line search."""
    w, s = np.zeros(loss.width), loss.scores(np.zeros(loss.width))
    value, gradient = loss.evaluate(s)
    first_norm = float(np.linalg.norm(gradient))
    for n_iter in range(max_iter + 1):
        violation = float(np.linalg.norm(gradient)) / first_norm if first_norm else 0.0
        now = 0.5 * float(w @ w) + value
        if violation <= tol or n_iter == max_iter:
            break
        step, _ = conjugate_gradient(
            lambda v: v + loss.multiply_hessian(s, v),  # noqa: B023
            -gradient,
            np.zeros_like(gradient),
            max_iter=min(len(gradient), 200) + 10,
            tol=0.1,
        )
        step_scores, downhill, length = loss.scores(step), float(gradient @ step), 1.0
        for _ in range(60):
            trial, trial_scores = w + length * step, s + length * step_scores
            trial_value, trial_gradient = loss.evaluate(trial_scores)
            if 0.5 * float(trial @ trial) + trial_value <= now + 1e-4 * length * downhill:
                break
            length *= 0.5
        else:  # nothing below: the last digits of the objective are reached
            break
        w, s, value, gradient = trial, trial_scores, trial_value, trial + trial_gradient
    return _solution(w, now, violation, n_iter, tol)


def cutting_planes(loss: PairHinge, tol: float, max_iter: int) -> Solution:
    """½‖w‖² + loss(w) from below by planes; w = -Σ α_k gradient_k minimizes the bound. violation: the relative gap."""
    from .._kernels.pair_hinge import best_mixture

    gradients, heights = np.zeros((1, loss.width)), np.zeros(1)  # the first plane: a hinge is never below 0
    gram, alpha, idle = np.zeros((1, 1)), np.ones(1), np.zeros(1, np.int64)
    w = best_w = np.zeros(loss.width)
    best, gap = np.inf, np.inf
    for n_iter in range(max_iter + 1):
        value, plane = loss.evaluate(loss.scores(w))
        if 0.5 * float(w @ w) + value < best:
            best, best_w = 0.5 * float(w @ w) + value, w
        below = float(heights @ alpha) - 0.5 * float(alpha @ gram @ alpha)
        gap = max(best - below, 0.0) / best if best > 0 else 0.0
        if gap <= tol or n_iter == max_iter:
            break
        kept = idle < MAX_IDLE_ROUNDS
        gradients, heights = np.vstack([gradients[kept], plane]), np.append(heights[kept], value - float(plane @ w))
        cross = gradients @ plane
        gram = np.block([[gram[np.ix_(kept, kept)], cross[:-1, None]], [cross[None, :]]])
        alpha, idle = np.append(alpha[kept], 0.0), np.append(idle[kept], 0)
        best_mixture(gram, heights, alpha, 0.1 * gap * best, MAX_MIXTURE_STEPS)
        idle = np.where(alpha > 0, 0, idle + 1)
        w = -(alpha @ gradients)
    return _solution(best_w, best, gap, n_iter, tol)


def proximal(loss: PairHinge, tol: float, max_iter: int) -> Solution:
    """|w|₁ + loss(w) by FISTA with backtracking; momentum restarts whenever the objective would rise."""
    penalty = L1(1.0)
    w = y = np.zeros(loss.width)
    value, gradient = loss.evaluate(loss.scores(w))
    largest, best = float(np.abs(gradient).max(initial=0.0)), value
    L, t, violation = max(float(np.linalg.norm(gradient)), 1e-12), 1.0, np.inf
    for n_iter in range(max_iter + 1):
        violation = _largest_violation(w, gradient) / largest if largest else 0.0
        if violation <= tol or n_iter == max_iter:
            break
        at_y, y_gradient = loss.evaluate(loss.scores(y))
        L *= 0.7
        while True:
            trial = penalty.prox(y - y_gradient / L, 1.0 / L)
            step = trial - y
            value, trial_gradient = loss.evaluate(loss.scores(trial))
            bound = at_y + float(y_gradient @ step) + 0.5 * L * float(step @ step) * (1 + 1e-9) + 1e-12 * abs(at_y)
            if value <= bound:
                break
            L *= 2.0
        total = value + penalty.value(trial)
        if total > best and t > 1.0:
            y, t = w, 1.0
            continue
        best, t_next = min(best, total), (1.0 + np.sqrt(1.0 + 4.0 * t**2)) / 2.0
        y, w, t, gradient = trial + (t - 1.0) / t_next * (trial - w), trial, t_next, trial_gradient
    return _solution(w, loss.evaluate(loss.scores(w))[0] + penalty.value(w), violation, n_iter, tol)


def _largest_violation(w: Floats, gradient: Floats) -> float:
    """The largest distance of 0 from the subdifferential of |w|₁ + loss, over coordinates."""
    inside = np.maximum(np.abs(gradient) - 1.0, 0.0)
    return float(np.where(w == 0.0, inside, np.abs(gradient + np.sign(w))).max(initial=0.0))
