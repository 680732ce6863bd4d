"""PatternL1: a list problem with a ridge and an L1 penalty, and the L1 that leaves a given number of pairs.

    min over W   ½ (‖Y - Q W Dᵀ‖² + a ‖W Dᵀ‖² + b ‖Q W‖² + a b ‖W‖²) + l1 sum_ij h_ij |w_ij|

h_ij = √((QᵀQ)_ii + a) √((DᵀD)_jj + b), the scale that gives all pairs the same curvature. With G minus the gradient of
the quadratic part, W is optimal if |G_ij| ≤ l1 h_ij, with equality and the sign of w_ij where w_ij ≠ 0. So pairs are
screened by G, some rows at a time: those beyond l1 h_ij join the pattern, and FISTA solves the problem on the pattern,
until none is beyond. Memory is bounded by the pairs of the pattern and some rows of G.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import validation
from .linalg import dot
from .losses import Squared
from .pattern_ridge import LocalOperator, NormalEquations, Operator
from .penalties import L1, Ridge
from .problems import ListProblem, Matrix
from .pruning import Importance, PairBudget, prune_rows
from .solver import Solution, Solver

if TYPE_CHECKING:
    from scipy.sparse import csr_array

L1_FACTOR = 0.5
"""The smallest factor between two l1 of the path."""
CLOSE = 0.9
"""The path ends once this share of the budget is used."""
SMALLEST_L1 = 1e-6
"""The path ends at this share of the l1 that leaves no pair."""
BISECTIONS = 3
"""Bisections between an l1 with too few pairs and one with too many."""
BLOCK_ROWS = 256
"""Rows of G that are made at a time."""
JOINING = 2
"""Pairs that may join the pattern at once, as a multiple of the budget."""


@dataclass(frozen=True)
class Effort:
    """FISTA steps on one pattern, screenings at one l1, and the tolerance as a share of l1."""

    steps: int = 40
    rounds: int = 1
    tol: float = 0.02


EFFORT = Effort()


@dataclass(frozen=True)
class PatternL1(Solver):
    """`solve` for one strength of L1, `solve_path` for the strength that leaves the pairs of the budget.

    ridge : the other part of the penalty. forbidden : pairs that must stay 0.
    budget : bounds how many pairs join the pattern at a time, and in `solve_path` how many there are.
    """

    ridge: Ridge
    budget: PairBudget
    forbidden: csr_array | None = None
    effort: Effort = EFFORT
    n_jobs: int | None = None
    losses: ClassVar[tuple[type, ...]] = (Squared,)
    penalties: ClassVar[tuple[type, ...]] = (L1,)

    def solve(self, problem: ListProblem, penalty: L1, init: csr_array | None = None) -> Solution:
        """The solution for this penalty, from `init` or from zero."""
        self.check(problem.loss, penalty)
        search = _PatternSearch(problem, self)
        W = search.empty if init is None else init.tocsr()[search.live]
        return search.finish(search.minimize(W, penalty.alpha), penalty.alpha)

    def solve_path(self, problem: ListProblem) -> Solution:
        """The solution with at most the pairs of the budget; info["alpha"] is its l1."""
        return _PatternSearch(problem, self).follow_path()


class _PatternSearch:
    """The problem of the words that some query has; other rows of W stay empty."""

    def __init__(self, problem: ListProblem, settings: PatternL1) -> None:
        self.live = np.flatnonzero(np.bincount(problem.Q.indices, minlength=problem.shape[0]))
        self._shape, self._problem = problem.shape, replace(problem, Q=problem.Q[:, self.live])
        self._ridge, self._effort, self._budget = settings.ridge, settings.effort, settings.budget
        self._forbidden = None if settings.forbidden is None else settings.forbidden.tocsr()[self.live]
        self._scale = Importance.of(self._problem, settings.ridge)
        self._threads = validation.threads(settings.n_jobs)

    def follow_path(self) -> Solution:
        """Solve for falling l1, each from the solution before, until the budget is used."""
        W, pairs = self.empty, self._budget.pairs
        l1 = top = self._screen(W, 0.0, 1)[1]
        if top == 0.0:
            return self.finish(W, 0.0)
        more, under, factor = W, top, L1_FACTOR
        while more.nnz < CLOSE * pairs and l1 > SMALLEST_L1 * top:
            W, under = more, l1
            l1 *= factor
            more = self.minimize(W, l1)
            factor = _next_factor(W.nnz, more.nnz, under / l1, pairs)
        return self._bisect(W, under, more, l1)

    def _bisect(self, small: csr_array, l1_small: float, large: csr_array, l1_large: float) -> Solution:
        """Search between an l1 that leaves few enough pairs and one that leaves too many."""
        pairs = self._budget.pairs
        if large.nnz <= pairs:
            return self.finish(large, l1_large)
        for _ in range(BISECTIONS):
            middle = float(np.sqrt(l1_small * l1_large))
            if small.nnz >= CLOSE * pairs:
                break
            candidate = self.minimize(self._descend(_union(small, large), middle), middle)
            if candidate.nnz <= pairs:
                small, l1_small = candidate, middle
            else:
                large, l1_large = candidate, middle
        return self.finish(small, l1_small)

    def minimize(self, W: csr_array, l1: float) -> csr_array:
        """The solution for one l1, from W."""
        for _ in range(self._effort.rounds):
            joining, _ = self._screen(W, l1, self._budget.pairs)
            if not joining.nnz:
                break
            W = self._descend(_union(W, joining), l1)
        return W

    def _screen(self, W: csr_array, l1: float, pairs: int) -> tuple[csr_array, float]:
        """The pairs outside W's pattern that are furthest beyond l1 h_ij, and the largest |G_ij| / h_ij of them."""
        inverse = Importance(1.0 / self._scale.rows, 1.0 / self._scale.columns)
        most = replace(self._budget, max_pairs=pairs * JOINING, pairs_per_word=None)
        violating = prune_rows(self._gradient_rows(W), self._problem.shape, inverse, most, self._forbidden)
        row = np.repeat(np.arange(violating.shape[0]), np.diff(violating.indptr))
        ratio = np.abs(violating.data) * inverse.rows[row] * inverse.columns[violating.indices]
        violating.data = np.where(ratio > l1 * (1.0 + self._effort.tol), ratio, 0.0).astype(np.float32)
        violating.eliminate_zeros()
        return violating, float(ratio.max(initial=0.0))

    def _gradient_rows(self, W: csr_array) -> Iterator[tuple[NDArray[np.intp], Matrix]]:
        """The rows of G = Qᵀ V Y D - (QᵀVQ + a) W (DᵀD + b); 0 on the pattern of W."""
        problem, D, b = self._problem, self._problem.D, np.float32(self._ridge.document)
        by_word, columns = problem.weighted_queries.T.tocsr(), D.T.tocsr()
        words, mean = np.asarray(by_word.sum(axis=1)).ravel(), np.float32(problem.target_mean)
        for at in range(0, W.shape[0], BLOCK_ROWS):
            some = np.arange(at, min(at + BLOCK_ROWS, W.shape[0]))
            AW = ((by_word[some] @ problem.Q) @ W).toarray() + np.float32(self._ridge.query) * W[some].toarray()
            AW = AW.astype(np.float32)
            left = (by_word[some] @ problem.targets).toarray().astype(np.float32) - mean * words[some][:, None]
            left -= (D @ np.ascontiguousarray(AW.T)).T
            G = np.ascontiguousarray((columns @ np.ascontiguousarray(left.T)).T) - b * AW
            G[np.repeat(np.arange(len(some)), np.diff(W.indptr[at : at + BLOCK_ROWS + 1])), W[some].indices] = 0.0
            yield some, G

    def _descend(self, W: csr_array, l1: float) -> csr_array:
        """FISTA on W's pattern; entries that end at 0 leave the pattern."""
        from scipy.sparse import csr_array

        rows = np.flatnonzero(np.diff(W.indptr))
        equations = NormalEquations.of(replace(self._problem, Q=self._problem.Q[:, rows]), self._ridge)
        A = LocalOperator(equations, W[rows], self._threads)
        data = _fista(A, W.data.astype(np.float32), L1(l1), self._budget.nonnegative, self._effort)
        W = csr_array((data, W.indices, W.indptr), shape=W.shape, copy=True)
        W.eliminate_zeros()
        return W

    @property
    def empty(self) -> csr_array:
        """W = 0."""
        from scipy.sparse import csr_array

        return csr_array(self._problem.shape, dtype=np.float32)

    def finish(self, W: csr_array, l1: float) -> Solution:
        """The solution with the rows of all query words."""
        from scipy.sparse import csr_array

        indptr = np.zeros(self._shape[0] + 1, W.indptr.dtype)
        indptr[self.live + 1] = np.diff(W.indptr)
        whole = csr_array((W.data, W.indices, np.cumsum(indptr, dtype=W.indptr.dtype)), shape=self._shape)
        return Solution(whole, info={"alpha": l1})


def _next_factor(before: int, now: int, ratio: float, target: int) -> float:
    """The factor of l1 that should leave slightly fewer pairs than the target, by extrapolation of their growth."""
    if not 0 < before < now:
        return L1_FACTOR
    growth = float(np.log(now / before) / np.log(ratio))
    return float(np.clip((now / (0.5 * (1.0 + CLOSE) * target)) ** (1.0 / growth), L1_FACTOR, 0.98))


def _union(W: csr_array, joining: csr_array) -> csr_array:
    """W on the pairs of both; those that join are 0."""
    from scipy.sparse import csr_array

    old, new = _places(W), _places(joining)
    both = np.union1d(old, new)
    data = np.zeros(len(both), np.float32)
    data[np.searchsorted(both, old)] = W.data
    row, column = np.divmod(both, W.shape[1])
    indptr = np.searchsorted(row, np.arange(W.shape[0] + 1))
    return csr_array((data, column.astype(np.int32), indptr.astype(np.int32)), shape=W.shape)


def _places(M: csr_array) -> NDArray[np.int64]:
    row = np.repeat(np.arange(M.shape[0], dtype=np.int64), np.diff(M.indptr))
    return np.asarray(row * M.shape[1] + M.indices, dtype=np.int64)


def _fista(A: Operator, w: Matrix, penalty: L1, nonnegative: bool, effort: Effort) -> Matrix:
    """FISTA on u = h w, whose quadratic part has a unit diagonal; momentum restarts when it points uphill.

    One product a step: the product at the extrapolated point y follows from those at the last two iterates. L estimates
    the Lipschitz constant and grows when a step meets more curvature.
    """
    h: Matrix = np.sqrt(A.diagonal)
    b: Matrix = A.right_side() / h
    u: Matrix = w * h
    L, t = 2.0, 1.0
    Au = A(u / h) / h
    y, Ay = u, Au
    for _ in range(effort.steps):
        ahead: Matrix = np.add(y, (b - Ay) / np.float32(L), dtype=np.float32)
        new: Matrix = penalty.prox(np.maximum(ahead, np.float32(0.0)) if nonnegative else ahead, 1.0 / L)
        A_new = A(new / h) / h
        step, A_step = new - y, A_new - Ay
        length = dot(step, step)
        if length > 0.0 and dot(step, A_step) > L * length * 1.0001:
            L = 1.5 * dot(step, A_step) / length
            y, Ay, t = u, Au, 1.0
            continue
        restart = dot(y - new, new - u) > 0.0
        t, before = (1.0, 1.0) if restart else (0.5 + float(np.sqrt(0.25 + t * t)), t)
        momentum = np.float32(0.0 if restart else (before - 1.0) / t)
        y, Ay = new + momentum * (new - u), A_new + momentum * (A_new - Au)
        u, Au = new, A_new
        if L * float(np.abs(step).max(initial=0.0)) <= effort.tol * penalty.alpha:
            break
    return np.asarray(u / h, dtype=np.float32)
