"""CoordinateDescent: Fig. 1.1 of Stevens, Bengio and Singer, *Efficient Learning of Sparse Ranking Functions*.

    min over w   sum_i c_i log(1 + sum_{j below i} exp(w·x_j - w·x_i + margin_ij)) + l1 |w|₁ + l2 ‖w‖²

One weight at a time, by the minimum of an upper bound of the objective along it, so that no step ever increases it; see
`kernels.domination` for the sums that make a step linear in the rows that have the feature.

Only a working set of weights is visited: those that are not zero and the zeros that violate optimality most. When the
set has come to rest, the gradient of all weights is looked at, and the set grows, until nothing violates optimality by
more than tol times the largest entry of the gradient at w = 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import ConfigError
from ..preferences.queries import Queries
from .losses import Domination
from .penalties import L1, L2, ElasticNet, NoPenalty, Separable
from .scores import Linear

Floats = NDArray[np.float64]

FIRST_SET = 500
"""Weights that are visited first where more violate optimality."""

KEPT = 2 / 3
"""The share of the weights that stay when some must go."""

STEP, LEAST_ALPHA = 0.7, 1e-6
"""A path goes down by this factor, to this share of the alpha that leaves no weight."""


@dataclass(frozen=True)
class Round:
    """How things stood when the gradient of all weights was looked at."""

    epochs: int
    objective: float
    violation: float
    nonzeros: int
    visited: int


@dataclass(frozen=True)
class LinearSolution:
    """The end of one run.

    w : the weights. loss, objective : without and with the penalty. epochs : passes over the working set.
    violation : how far 0 is from the subdifferential, in its worst entry; `converged` means at most tol · `scale`,
        the largest entry of the gradient at w = 0.
    """

    w: Floats
    penalty: Separable
    loss: float
    objective: float
    violation: float
    scale: float
    epochs: int
    converged: bool
    rounds: tuple[Round, ...]

    @property
    def nonzeros(self) -> int:
        """How many weights are not zero."""
        return int(np.count_nonzero(self.w))

    @property
    def relative_violation(self) -> float:
        """The violation as a share of the gradient at w = 0."""
        return self.violation / self.scale if self.scale > 0 else 0.0

    @property
    def message(self) -> str:
        """How it ended, in a sentence."""
        how = "came to rest" if self.converged else "was stopped at max_iter"
        return (
            f"coordinate descent {how} after {self.epochs} passes with {self.nonzeros} weights; "
            f"optimality is violated by {self.relative_violation:.2g} of the gradient at 0"
        )


@dataclass(frozen=True)
class CoordinateDescent:
    """The settings: tol, relative to the gradient at w = 0, and max_iter, the most passes over the working set."""

    tol: float = 1e-4
    max_iter: int = 1000

    def __post_init__(self) -> None:
        validation.number("tol", self.tol, low=0)
        validation.count("max_iter", self.max_iter, low=0)

    def solve(
        self, score: Linear, queries: Queries, loss: Domination, penalty: Separable, start: Floats | None = None
    ) -> LinearSolution:
        """The minimum, from `start` or from zero."""
        descent = self.descent(score, queries, loss)
        if start is not None:
            descent.w[:] = start
        return descent.to(penalty)

    def descent(self, score: Linear, queries: Queries, loss: Domination) -> Descent:
        """A descent that stands at w = 0; a loss that this solver cannot take is refused."""
        if not isinstance(loss, Domination):
            raise ConfigError(f"coordinate descent takes the domination loss; got {type(loss).__name__}")
        return Descent(self, score, queries, loss)


class Descent:
    """One problem, and how far it is solved: each `to(penalty)` goes on from the weights of the one before."""

    def __init__(self, settings: CoordinateDescent, score: Linear, queries: Queries, loss: Domination) -> None:
        from .._kernels.domination import COLUMNS

        self.settings, self._columns = settings, score
        self._offset = loss.compute_offsets(queries)
        self.queries = queries = loss.select_windows(queries).require_pairs()
        n, levels = len(queries.order), len(queries.level) - 1
        owner = np.repeat(np.arange(len(queries)), np.diff(queries.query_levels))
        alone = (np.diff(queries.query_levels) == 1)[owner]
        level = np.repeat(np.where(alone, -1, np.arange(levels)), np.diff(queries.level))
        self._level: NDArray[Any] = queries.by_row(level).astype(np.int16 if levels < 2**15 else np.int64)
        self._owner, self._place, self._order = owner, queries.place.view(np.uint64), queries.order.view(np.uint64)
        self._begin, self._first, self._cost = queries.level, queries.query_levels, queries.weight
        self.w = np.zeros(score.shape[1])
        self._score, self._low, self._high = np.empty(n), np.zeros(n), np.zeros(n)
        self._sums = np.zeros((levels, COLUMNS))
        self._stamp, self._clock = np.zeros(len(queries), np.int64), np.zeros(1, np.int64)
        self._touched = np.empty(len(queries), np.int64)
        self._pulled, self._gradient = np.zeros(n), np.empty(score.shape[1])
        self._all = np.arange(score.shape[1])
        self._measure(queries)
        self._open = self._reach > 0.0
        self.loss = self._refresh()
        self.scale = float(np.abs(self._full_gradient()).max(initial=0.0))

    def _measure(self, queries: Queries) -> None:
        """How far each feature ranges within a query, and what that says about the curvature."""
        from .._kernels.columns import ranges

        wins = queries.first_loser < queries.query_end
        mass = np.bincount(queries.query, np.where(wins, queries.weight, 0.0), len(queries))
        if len(queries) == 1:
            self._reach = self._columns.ranges
            self._bound = mass[0] * self._reach**2 / 4.0
            return
        self._reach, self._bound = np.zeros_like(self.w), np.zeros_like(self.w)
        query = np.where(self._level < 0, -1, queries.by_row(queries.query))
        ranges(*self._matrix, query, np.diff(queries.start), mass, self._reach, self._bound)

    @property
    def _matrix(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        return self._columns.pointer, self._columns.rows, self._columns.values

    def _refresh(self) -> float:
        """Scores and sums from the weights, without what rounding has added up; the loss."""
        from .._kernels.domination import rebuild, rescore

        rescore(*self._matrix, self.w, self._offset, self._score)
        return float(
            rebuild(self._score, self._order, self._begin, self._first, self._cost, self._low, self._high, self._sums)
        )

    def _full_gradient(self) -> Floats:
        from .._kernels.domination import against, pull

        pull(self._order, self._begin, self._first, self._cost, self._low, self._high, self._sums, self._pulled)
        against(*self._matrix, self._pulled, self._all, self._gradient)
        return self._gradient

    def at(self, w: Floats) -> tuple[float, Floats]:
        """The loss of these weights and its gradient, without the penalty."""
        self.w[:] = w
        return self._refresh(), self._full_gradient().copy()

    def to(self, penalty: Separable) -> LinearSolution:
        """The minimum with this penalty, from where the weights are."""
        if not isinstance(penalty, NoPenalty | L1 | L2 | ElasticNet):
            raise ConfigError(f"coordinate descent takes no penalty, L1, L2 or both; got {type(penalty).__name__}")
        rounds: list[Round] = []
        goal, epochs, visited = self.settings.tol * self.scale, 0, FIRST_SET
        while True:
            loss = self._refresh()
            missed = self._violations(penalty)
            worst = float(missed.max(initial=0.0))
            objective = loss + penalty.value(self.w)
            rounds.append(Round(epochs, objective, worst, int(np.count_nonzero(self.w)), visited))
            if worst <= goal or epochs >= self.settings.max_iter:
                break
            working = self._working_set(missed, visited)
            visited = 2 * len(working)
            epochs += self._rest(working, penalty, max(goal / 2.0, worst / 4.0), epochs)
        return LinearSolution(
            self.w.copy(), penalty, loss, objective, worst, self.scale, epochs, worst <= goal, tuple(rounds)
        )

    def _violations(self, penalty: Separable) -> Floats:
        """`kernels.domination.violation` of every weight that may move."""
        g = self._full_gradient() + 2.0 * penalty.l2 * self.w
        missed = np.where(
            self.w == 0.0, np.maximum(np.abs(g) - penalty.l1, 0.0), np.abs(g + np.copysign(penalty.l1, self.w))
        )
        missed[~self._open] = 0.0
        return missed

    def _working_set(self, missed: Floats, visited: int) -> NDArray[np.int64]:
        """The weights that are not zero, and of the others those that violate optimality most."""
        zero = self.w == 0.0
        room = max(visited - int((~zero).sum()), FIRST_SET)
        news = np.flatnonzero(zero & (missed > 0.0))
        if len(news) > room:
            news = news[np.argpartition(-missed[news], room)[:room]]
        return np.union1d(np.flatnonzero(~zero & self._open), news)

    def _rest(self, working: NDArray[np.int64], penalty: Separable, goal: float, done: int) -> int:
        """Visit the working set until it violates optimality by no more than `goal`; how many passes that took."""
        from .._kernels.domination import descend

        active, slack, epochs = len(working), np.inf, 0
        while done + epochs < self.settings.max_iter:
            active, worst = descend(
                *self._matrix, self._level, self._place, self._owner, self._order, self._begin, self._first,
                self._cost, working, active, self.w, self._reach, self._bound, penalty.l1, penalty.l2, slack,
                self._offset, self._score, self._low, self._high, self._sums, self._stamp, self._clock, self._touched,
            )  # fmt: skip
            epochs += 1
            slack = worst
            if worst <= goal:
                break
        return epochs

    def cut_to(self, penalty: Separable, most: int) -> LinearSolution:
        """No more than `most` weights, by leaving out the least and solving again, a third of them at a time.

        What a weight is worth is |w_r| ‖x_r‖^½, halfway between its size and its share in the scores.
        """
        found = self.to(penalty)
        while found.nonzeros > most:
            left = max(most, int(KEPT * found.nonzeros))
            worth = np.abs(self.w) * np.sqrt(self._columns.lengths)
            self._open[np.argsort(-worth, kind="stable")[left:]] = False
            self.w[~self._open] = 0.0
            found = self.to(penalty)
        return found

    def down_to(self, penalty: L1, most: int) -> LinearSolution:
        """The least alpha that leaves no more than `most` weights, and its minimum, by a warm-started path of alphas.

        The number of weights need not rise with every fall of alpha; the path stops where it first exceeds `most`, and
        the last step is halved until alpha is known to a thousandth or just so many weights are left.
        """
        high, low = self.scale, 0.0
        best = self.to(replace(penalty, alpha=high))
        while best.nonzeros < most and high > LEAST_ALPHA * self.scale and low < 0.999 * high:
            middle = high * STEP if low == 0.0 else (high * low) ** 0.5
            found = self.to(replace(penalty, alpha=middle))
            if found.nonzeros > most:
                low, self.w[:] = middle, best.w
            else:
                high, best = middle, found
        return best
