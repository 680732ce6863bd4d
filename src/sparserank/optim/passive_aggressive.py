"""PAMIR (Grangier and Bengio, 2008): passive-aggressive steps on drawn triples, linear or bilinear.

A triple with margin below 1 causes the smallest update that raises the margin to 1, limited by the aggressiveness C:
τ = min(C, loss / (‖q‖² ‖Δ‖²)), with ‖q‖ = 1 if there is no query vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..preferences import Triples
from .losses import Hinge
from .penalties import NoPenalty
from .scores import Bilinear
from .solver import Solution, Solver

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BATCH = 1 << 16
"""Triples drawn at a time."""


@dataclass(frozen=True)
class TripleProblem:
    """The hinge loss of drawn triples.

    score : rows of X, dense or CSR, for w·x, or a `Bilinear` for qᵀWd.
    draw : draw(n, first) returns triples first … first + n - 1.
    """

    score: Any
    draw: Callable[[int, int], Triples]
    loss: ClassVar[Hinge] = Hinge()


def draw_topic(relevant: NDArray[np.int64], items: int, seed: int, topic: int) -> Callable[[int, int], Triples]:
    """Draw a relevant item and any other one, each uniformly."""
    other = np.setdiff1d(np.arange(items), relevant)
    random = np.random.default_rng([seed, topic])
    return lambda n, first: Triples(np.full(n, topic), random.choice(relevant, n), random.choice(other, n))


@dataclass(frozen=True)
class PassiveAggressive(Solver):
    """`max_iter` steps from 0; C takes the place of a penalty. average : return the mean of the weights over all steps.

    info["violations"] is the share of the triples with a margin below 1.
    """

    C: float = 1.0
    max_iter: int = 100_000
    average: bool = False
    losses: ClassVar[tuple[type, ...]] = (Hinge,)
    takes_init: ClassVar[bool] = False

    def solve(self, problem: TripleProblem, penalty: NoPenalty, init: None = None) -> Solution:
        """w of a linear score, W of a bilinear one."""
        self.check(problem.loss, penalty, init)
        solve = self._solve_bilinear if isinstance(problem.score, Bilinear) else self._solve_linear
        weights, violations = solve(problem)
        return Solution(weights, info={"violations": violations / self.max_iter, "n_iter": self.max_iter})

    def _solve_linear(self, problem: TripleProblem) -> tuple[NDArray[np.float64], int]:
        from .._kernels.passive import dense_steps, linear_steps

        X, violations = problem.score, 0
        w, drift = np.zeros((2, X.shape[1]))
        for first in range(0, self.max_iter, BATCH):
            _, better, worse = problem.draw(min(BATCH, self.max_iter - first), first)
            if isinstance(X, np.ndarray):
                violations += dense_steps(X, better, worse, self.C, first, w, drift)
            else:
                violations += linear_steps(X.indptr, X.indices, X.data, better, worse, self.C, first, w, drift)
        return w - drift / self.max_iter if self.average else w, violations

    def _solve_bilinear(self, problem: TripleProblem) -> tuple[csr_array, int]:
        """W is dense over the columns of queries and items that occur."""
        from scipy.sparse import csr_array

        from .._kernels.passive import bilinear_steps

        words, Q = _select_used(problem.score.queries)
        features, D = _select_used(problem.score.items)
        W, violations = np.zeros((len(words), len(features))), 0
        drift = np.zeros(W.shape if self.average else (1, 1))
        rows = (Q.indptr, Q.indices, Q.data, D.indptr, D.indices, D.data)
        for first in range(0, self.max_iter, BATCH):
            drawn = problem.draw(min(BATCH, self.max_iter - first), first)
            violations += bilinear_steps(*rows, *drawn, self.C, first, W, drift, self.average)
        if self.average:
            W -= drift / self.max_iter
        row, column = np.nonzero(W)
        return csr_array((W[row, column], (words[row], features[column])), shape=problem.score.shape), violations


def _select_used(matrix: csr_array) -> tuple[NDArray[np.int64], csr_array]:
    """The columns that occur, and the matrix without the others."""
    from scipy.sparse import csr_array

    columns, place = np.unique(matrix.indices, return_inverse=True)
    small = csr_array((matrix.data, place.astype(np.int64), matrix.indptr), shape=(matrix.shape[0], len(columns)))
    return columns.astype(np.int64), small
