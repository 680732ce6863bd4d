"""PatternL1: a list problem with a ridge and an L1 penalty, and the L1 that leaves a given number of pairs.

    min over W   ½ (‖Y - Q W Dᵀ‖² + a ‖W Dᵀ‖² + b ‖Q W‖² + a b ‖W‖²) + l1 sum_ij h_ij |w_ij|

h_ij = √((QᵀQ)_ii + a) √((DᵀD)_jj + b), the scale that gives all pairs the same curvature. With G minus the gradient of
the quadratic part, W is optimal if |G_ij| ≤ l1 h_ij, with equality and the sign of w_ij where w_ij ≠ 0. So pairs are
screened by G, some rows at a time: those beyond l1 h_ij join the pattern, and FISTA solves the problem on the pattern,
until none is beyond. Memory is bounded by the pairs of the pattern and some rows of G.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import validation
from .closed_form import BLOCK_ROWS
from .linalg import dot
from .pattern_ridge import LocalOperator, NormalEquations, Operator
from .penalties import L1, Ridge
from .problems import ListProblem, Matrix
from .pruning import Importance, PairBudget, prune_rows
from .solver import Solution

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
JOINING = 2
"""Pairs that may join the pattern at once, as a multiple of the budget."""


@dataclass(frozen=True)
class Effort:
    """FISTA steps on one pattern, screenings at one l1, and the tolerance as a share of l1."""

    steps: int = 40
    rounds: int = 1
    tol: float = 0.02


EFFORT = Effort()


class PatternL1:
    """A problem and its ridge penalty; `solve` for one l1, `solve_path` for a budget of pairs."""

    def __init__(
        self,
        problem: ListProblem,
        ridge: Ridge,
        forbidden: csr_array | None = None,
        effort: Effort = EFFORT,
        n_jobs: int | None = None,
    ) -> None:
        # a word that no query has keeps no pair
        self._live = np.flatnonzero(np.bincount(problem.Q.indices, minlength=problem.shape[0]))
        self._shape, self._problem = problem.shape, replace(problem, Q=problem.Q[:, self._live])
        self._ridge, self._effort = ridge, effort
        self._forbidden = None if forbidden is None else forbidden.tocsr()[self._live]
        self._scale = Importance.of(self._problem, ridge)
        self._threads = validation.threads(n_jobs)

    def solve(self, penalty: L1, budget: PairBudget) -> Solution:
        """The solution for one l1; the budget bounds how many pairs join at a time."""
        return self._finish(self._solve(self._empty(), penalty.alpha, budget), penalty.alpha)

    def solve_path(self, budget: PairBudget) -> Solution:
        """The solution with at most the pairs of the budget; info["alpha"] is its l1. Falling l1, warm-started."""
        W = self._empty()
        l1 = top = self._screen(W, 0.0, replace(budget, max_pairs=1, pairs_per_word=None))[1]
        if top == 0.0:
            return self._finish(W, 0.0)
        more, under, factor = W, top, L1_FACTOR
        while more.nnz < CLOSE * budget.pairs and l1 > SMALLEST_L1 * top:
            W, under = more, l1
            l1 *= factor
            more = self._solve(W, l1, budget)
            factor = _next_factor(W.nnz, more.nnz, under / l1, budget.pairs)
        return self._bisect(W, under, more, l1, budget)

    def _bisect(self, W: csr_array, under: float, more: csr_array, over: float, budget: PairBudget) -> Solution:
        """Between an l1 that leaves few enough pairs and one that leaves too many."""
        if more.nnz <= budget.pairs:
            return self._finish(more, over)
        for _ in range(BISECTIONS):
            middle = float(np.sqrt(under * over))
            if W.nnz >= CLOSE * budget.pairs:
                break
            tried = self._solve(self._descend(_union(W, more), middle, budget), middle, budget)
            if tried.nnz <= budget.pairs:
                W, under = tried, middle
            else:
                more, over = tried, middle
        return self._finish(W, under)

    def _solve(self, W: csr_array, l1: float, budget: PairBudget) -> csr_array:
        for _ in range(self._effort.rounds):
            joining, _ = self._screen(W, l1, budget)
            if not joining.nnz:
                break
            W = self._descend(_union(W, joining), l1, budget)
        return W

    def _screen(self, W: csr_array, l1: float, budget: PairBudget) -> tuple[csr_array, float]:
        """The pairs outside W's pattern that are furthest beyond l1 h_ij, and the largest |G_ij| / h_ij of them."""
        inverse = Importance(1.0 / self._scale.rows, 1.0 / self._scale.columns)
        most = replace(budget, max_pairs=budget.pairs * JOINING, pairs_per_word=None)
        found = prune_rows(self._gradient_rows(W), self._problem.shape, inverse, most, self._forbidden)
        row = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
        size = np.abs(found.data) * inverse.rows[row] * inverse.columns[found.indices]
        found.data = np.where(size > l1 * (1.0 + self._effort.tol), size, 0.0).astype(np.float32)
        found.eliminate_zeros()
        return found, float(size.max(initial=0.0))

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

    def _descend(self, W: csr_array, l1: float, budget: PairBudget) -> csr_array:
        """FISTA on W's pattern; entries that end at 0 leave the pattern."""
        from scipy.sparse import csr_array

        rows = np.flatnonzero(np.diff(W.indptr))
        equations = NormalEquations.of(replace(self._problem, Q=self._problem.Q[:, rows]), self._ridge)
        with ThreadPoolExecutor(self._threads) as pool:
            A = LocalOperator(equations, W[rows], pool.map, self._threads)
            data = _fista(A, W.data.astype(np.float32), L1(l1), budget.nonnegative, self._effort)
        W = csr_array((data, W.indices, W.indptr), shape=W.shape, copy=True)
        W.eliminate_zeros()
        return W

    def _empty(self) -> csr_array:
        from scipy.sparse import csr_array

        return csr_array(self._problem.shape, dtype=np.float32)

    def _finish(self, W: csr_array, l1: float) -> Solution:
        """W with the rows of all query words."""
        from scipy.sparse import csr_array

        indptr = np.zeros(self._shape[0] + 1, W.indptr.dtype)
        indptr[self._live + 1] = np.diff(W.indptr)
        whole = csr_array((W.data, W.indices, np.cumsum(indptr, dtype=W.indptr.dtype)), shape=self._shape)
        return Solution(whole, info={"alpha": l1})


def _next_factor(before: int, now: int, ratio: float, target: int) -> float:
    """The factor of l1 that leaves a little less than the target, if pairs go on to grow as they have."""
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
