"""RankSVM's objectives: a penalty + C · Σ over pairs of the hinge, or its square, at w.

    L2, squared:  ½‖w‖² + C Σ w_i max(0, 1 - w·(x_i - x_j))²    truncated Newton (Lee, Lin, 2014)
    L2, plain:    ½‖w‖² + C Σ w_i max(0, 1 - w·(x_i - x_j))     cutting planes (Joachims, 2006)
    L1, squared:   |w|₁ + C Σ w_i max(0, 1 - w·(x_i - x_j))²    accelerated proximal gradient

Every value and slope takes one product with X, one with its transpose, and one sort of each query's scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..preferences.queries import Queries

Floats = NDArray[np.float64]
IDLE = 30
"""A plane that has not been needed for so many rounds is forgotten."""
MIXING = 20_000
"""Steps of the small problem of mixing planes, at most."""


@dataclass(frozen=True)
class Minimum:
    """Weights, and how near they are: `violation` is that of the optimality conditions, relative to the one at 0."""

    coef: Floats
    objective: float
    violation: float
    iterations: int
    converged: bool


class PairHinge:
    """C · Σ over pairs, as a function of w, with its slope."""

    def __init__(self, X: Any, queries: Queries, C: float, squared: bool) -> None:
        from .._kernels import pair_hinge as kernel

        self._kernel, self._X, self._queries, self._C, self._squared = kernel, X, queries, C, squared
        self._tier = np.repeat(np.arange(len(queries.level) - 1), np.diff(queries.level))
        self.width = int(X.shape[1])

    def scores(self, w: Floats) -> Floats:
        """s = X w, by place."""
        return np.asarray(self._X @ w, dtype=np.float64)[self._queries.order]

    def _pulled(self, slope: Floats) -> Floats:
        """Xᵀ slope, of a slope by place."""
        return np.asarray(self._X.T @ slope[self._queries.place], dtype=np.float64)

    def at(self, scores: Floats) -> tuple[float, Floats]:
        """The value, and the slope by the scores, by place."""
        slope = np.empty_like(scores)
        queries = self._queries
        centred = scores - (np.add.reduceat(scores, queries.start[:-1]) / np.diff(queries.start))[queries.query]
        total = self._kernel.loss_and_slope(centred, queries.weight, self._tier, queries.start, self._squared, slope)
        return self._C * float(total), self._C * slope

    def slope(self, slope: Floats) -> Floats:
        """The slope by w, from that by the scores."""
        return self._pulled(slope)

    def curved(self, scores: Floats, along: Floats) -> Floats:
        """The second derivative by w, times `along`; of the square only."""
        out = np.empty_like(scores)
        queries = self._queries
        self._kernel.curvature(scores, queries.weight, self._tier, queries.start, self.scores(along), out)
        return self._C * self._pulled(out)


def newton(loss: PairHinge, tol: float, max_iter: int) -> Minimum:
    """½‖w‖² + loss(w), which is quadratic in pieces: conjugate gradients inside Newton steps, then a line search."""
    w, s = np.zeros(loss.width), loss.scores(np.zeros(loss.width))
    value, slope = loss.at(s)
    gradient = loss.slope(slope)
    begin = float(np.linalg.norm(gradient))
    for done in range(max_iter + 1):
        violation = float(np.linalg.norm(gradient)) / begin if begin else 0.0
        if violation <= tol or done == max_iter:
            return Minimum(w, 0.5 * float(w @ w) + value, violation, done, violation <= tol)
        step = _conjugate(loss, s, gradient)
        ahead = loss.scores(step)
        downhill, reach = float(gradient @ step), 1.0
        now = 0.5 * float(w @ w) + value
        for _ in range(60):
            value, slope = loss.at(s + reach * ahead)
            trial = w + reach * step
            if 0.5 * float(trial @ trial) + value <= now + 1e-4 * reach * downhill:
                break
            reach *= 0.5
        else:  # nothing below: the last digits of the objective are reached
            value, slope = loss.at(s)
            return Minimum(w, 0.5 * float(w @ w) + value, violation, done, violation <= tol)
        w, s = trial, s + reach * ahead
        gradient = w + loss.slope(slope)
    raise AssertionError("the loop above always returns")


def _conjugate(loss: PairHinge, scores: Floats, gradient: Floats) -> Floats:
    """An approximate solution of (I + H) step = -gradient."""
    step, residual = np.zeros_like(gradient), -gradient
    direction, square = residual.copy(), float(residual @ residual)
    enough = 1e-2 * square
    for _ in range(min(len(gradient), 200) + 10):
        along = direction + loss.curved(scores, direction)
        length = square / float(direction @ along)
        step += length * direction
        residual = residual - length * along
        before, square = square, float(residual @ residual)
        if not square > enough:
            break
        direction = residual + square / before * direction
    return step


def cutting_planes(loss: PairHinge, tol: float, max_iter: int) -> Minimum:
    """½‖w‖² + loss(w) from below by planes, of which w = -Σ α_k slope_k is the best; `violation`: the relative gap."""
    from .._kernels.pair_hinge import best_mixture

    slopes, heights = np.zeros((1, loss.width)), np.zeros(1)  # the first plane: a hinge is never below 0
    gram, alpha, idle = np.zeros((1, 1)), np.ones(1), np.zeros(1, np.int64)
    w = best_w = np.zeros(loss.width)
    best, gap = np.inf, np.inf
    for done in range(max_iter + 1):
        value, slope = loss.at(loss.scores(w))
        if 0.5 * float(w @ w) + value < best:
            best, best_w = 0.5 * float(w @ w) + value, w
        below = float(heights @ alpha) - 0.5 * float(alpha @ gram @ alpha)
        gap = max(best - below, 0.0) / best if best > 0 else 0.0
        if gap <= tol or done == max_iter:
            break
        plane = loss.slope(slope)
        kept = idle < IDLE
        slopes, heights = np.vstack([slopes[kept], plane]), np.append(heights[kept], value - float(plane @ w))
        cross = slopes @ plane
        gram = np.block([[gram[np.ix_(kept, kept)], cross[:-1, None]], [cross[None, :]]])
        alpha, idle = np.append(alpha[kept], 0.0), np.append(idle[kept], 0)
        best_mixture(gram, heights, alpha, 0.1 * gap * best, MIXING)
        idle = np.where(alpha > 0, 0, idle + 1)
        w = -(alpha @ slopes)
    return Minimum(best_w, best, gap, done, gap <= tol)


def proximal(loss: PairHinge, tol: float, max_iter: int) -> Minimum:
    """|w|₁ + loss(w) by FISTA, with a step found by halving and a fresh start whenever the objective would rise."""
    w = ahead = np.zeros(loss.width)
    value, slope = loss.at(loss.scores(w))
    gradient = loss.slope(slope)
    begin, best = float(np.abs(gradient).max(initial=0.0)), value
    steep, momentum, violation = max(float(np.linalg.norm(gradient)), 1e-12), 1.0, np.inf
    for done in range(max_iter + 1):
        violation = _unmet(w, gradient) / begin if begin else 0.0
        if violation <= tol or done == max_iter:
            break
        base, slope = loss.at(loss.scores(ahead))
        uphill = loss.slope(slope)
        steep *= 0.7
        while True:
            trial = _shrunk(ahead - uphill / steep, 1.0 / steep)
            move = trial - ahead
            value, slope = loss.at(loss.scores(trial))
            if value <= base + float(uphill @ move) + 0.5 * steep * float(move @ move) * (1 + 1e-9) + 1e-12 * abs(base):
                break
            steep *= 2.0
        total = value + float(np.abs(trial).sum())
        if total > best and momentum > 1.0:
            ahead, momentum = w, 1.0
            continue
        best, after = min(best, total), (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead, w, momentum = trial + (momentum - 1.0) / after * (trial - w), trial, after
        gradient = loss.slope(slope)
    return Minimum(w, loss.at(loss.scores(w))[0] + float(np.abs(w).sum()), violation, done, violation <= tol)


def _shrunk(w: Floats, by: float) -> Floats:
    return np.asarray(np.sign(w) * np.maximum(np.abs(w) - by, 0.0))


def _unmet(w: Floats, gradient: Floats) -> float:
    """The largest distance of 0 from the subdifferential of |w|₁ + loss, over coordinates."""
    inside = np.maximum(np.abs(gradient) - 1.0, 0.0)
    return float(np.where(w == 0.0, inside, np.abs(gradient + np.sign(w))).max(initial=0.0))
