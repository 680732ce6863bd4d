"""The squared loss over all lists with an L1 penalty, and how much of it leaves the pairs that are wanted.

    min over W   ½ ( ‖Y - Q W Dᵀ‖² + a ‖W Dᵀ‖² + b ‖Q W‖² + a b ‖W‖² ) + l1 sum_ij h_ij |w_ij|

h_ij = √((QᵀQ)_ii + a) √((DᵀD)_jj + b) is the scale at which every pair curves alike: a pair is measured as it is when W
is cut. With G the slope of the squared part, turned, W is the answer where |G_ij| ≤ l1 h_ij, and G_ij = ± l1 h_ij with
the sign of w_ij where that is not 0. So pairs are screened by G, some rows of it at a time: those beyond l1 h_ij join
the pattern, FISTA solves the problem on the pattern, and that again until none is beyond. Memory is bounded by the
pairs of the pattern and some rows of G.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import validation
from .closed_form import ROWS
from .list_problem import JudgedLists, Matrix, Ridge
from .pattern_ridge import PatternRidge, Products
from .pruning import PairBudget, Worth, cut_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FALL = 0.5
"""What l1 falls by at most from one point of the path to the next."""
CLOSE = 0.9
"""The path ends where this part of the pairs wanted is there."""
LEAST = 1e-6
"""The path ends at this part of the l1 that leaves nothing, however few pairs there are."""
HALVINGS = 3
"""How often the step from too few pairs to too many is halved."""
HELD = 2
"""Pairs that may join the pattern at once, as a multiple of those wanted."""


@dataclass(frozen=True)
class Effort:
    """FISTA steps at most on one pattern, screenings at one l1, and what part of l1 may be left of the slope."""

    steps: int = 40
    rounds: int = 1
    tol: float = 0.02


EFFORT = Effort()


class PatternL1:
    """Lists and a penalty; `solve` for one l1, `path` for so many pairs."""

    def __init__(
        self,
        lists: JudgedLists,
        evenness: float,
        ridge: Ridge,
        forbidden: csr_array | None = None,
        effort: Effort = EFFORT,
        n_jobs: int | None = None,
    ) -> None:
        # a word that no query has keeps no pair
        self._live, self._shape = np.flatnonzero(np.bincount(lists.Q.indices, minlength=lists.shape[0])), lists.shape
        self._lists = replace(lists, Q=lists.Q[:, self._live])
        self._evenness, self._ridge, self._effort = evenness, ridge, effort
        self._forbidden = None if forbidden is None else forbidden.tocsr()[self._live]
        self._scale = Worth.of(self._lists, ridge)
        self._threads = validation.threads(n_jobs)

    def solve(self, l1: float, budget: PairBudget) -> csr_array:
        """The answer for one l1; the budget bounds how many pairs join at a time, and may ask for none below 0."""
        return self._whole(self._solved(self._nothing(), l1, budget))

    def path(self, budget: PairBudget) -> tuple[csr_array, float]:
        """The answer with at most the wanted pairs, and its l1: from large to small, each from the one before."""
        W = self._nothing()
        l1 = top = self._beyond(W, 0.0, replace(budget, max_pairs=1, pairs_per_word=None))[1]
        if top == 0.0:
            return self._whole(W), 0.0
        more, under = W, top
        fall = FALL
        while more.nnz < CLOSE * budget.pairs and l1 > LEAST * top:
            W, under = more, l1
            l1 *= fall
            more = self._solved(W, l1, budget)
            fall = _fall(W.nnz, more.nnz, under / l1, budget.pairs)
        return self._halved(W, under, more, l1, budget)

    def _halved(
        self, W: csr_array, under: float, more: csr_array, over: float, budget: PairBudget
    ) -> tuple[csr_array, float]:
        """Between an l1 that leaves few enough pairs and one that leaves too many."""
        if more.nnz <= budget.pairs:
            return self._whole(more), over
        for _ in range(HALVINGS):
            middle = float(np.sqrt(under * over))
            if W.nnz >= CLOSE * budget.pairs:
                break
            tried = self._solved(self._descend(_union(W, more), middle, budget), middle, budget)
            if tried.nnz <= budget.pairs:
                W, under = tried, middle
            else:
                more, over = tried, middle
        return self._whole(W), under

    def _solved(self, W: csr_array, l1: float, budget: PairBudget) -> csr_array:
        for _ in range(self._effort.rounds):
            joining, _ = self._beyond(W, l1, budget)
            if not joining.nnz:
                break
            W = self._descend(_union(W, joining), l1, budget)
        return W

    def _beyond(self, W: csr_array, l1: float, budget: PairBudget) -> tuple[csr_array, float]:
        """The pairs outside W's pattern that are furthest beyond l1 h_ij, and the largest |G_ij| / h_ij of them."""
        outward = Worth(1.0 / self._scale.rows, 1.0 / self._scale.columns)
        wanted = PairBudget(budget.pairs * HELD, nonnegative=budget.nonnegative)
        found = cut_rows(self._slopes(W), self._lists.shape, outward, wanted, self._forbidden)
        row = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
        size = np.abs(found.data) * outward.rows[row] * outward.columns[found.indices]
        found.data = np.where(size > l1 * (1.0 + self._effort.tol), size, 0.0).astype(np.float32)
        found.eliminate_zeros()
        return found, float(size.max(initial=0.0))

    def _slopes(self, W: csr_array) -> Iterator[tuple[NDArray[np.intp], Matrix]]:
        """Qᵀ Y D - (QᵀQ + a) W (DᵀD + b), some rows at a time; 0 on the pattern of W."""
        lists, D, b = self._lists, self._lists.D, np.float32(self._ridge.b)
        found, mean = lists.targets(self._evenness)
        by_word, columns = lists.weighted.T.tocsr(), D.T.tocsr()
        words = np.asarray(by_word.sum(axis=1)).ravel()
        for at in range(0, W.shape[0], ROWS):
            some = np.arange(at, min(at + ROWS, W.shape[0]))
            moved = ((by_word[some] @ lists.Q) @ W).toarray() + np.float32(self._ridge.a) * W[some].toarray()
            moved = moved.astype(np.float32)
            left = (by_word[some] @ found).toarray().astype(np.float32) - np.float32(mean) * words[some][:, None]
            left -= (D @ np.ascontiguousarray(moved.T)).T
            slope = np.ascontiguousarray((columns @ np.ascontiguousarray(left.T)).T) - b * moved
            slope[np.repeat(np.arange(len(some)), np.diff(W.indptr[at : at + ROWS + 1])), W[some].indices] = 0.0
            yield some, slope

    def _descend(self, W: csr_array, l1: float, budget: PairBudget) -> csr_array:
        """FISTA on W's pattern, of whose rows only those with an entry matter; what ends at 0 leaves the pattern."""
        from scipy.sparse import csr_array

        rows = np.flatnonzero(np.diff(W.indptr))
        lists = replace(self._lists, Q=self._lists.Q[:, rows])
        problem = PatternRidge(lists, self._evenness, self._ridge, self._threads)
        with ThreadPoolExecutor(self._threads) as pool:
            products = Products(problem, W[rows], pool)
            data = _fista(products, W.data.astype(np.float32), l1, budget.nonnegative, self._effort)
        W = csr_array((data, W.indices, W.indptr), shape=W.shape, copy=True)
        W.eliminate_zeros()
        return W

    def _nothing(self) -> csr_array:
        from scipy.sparse import csr_array

        return csr_array(self._lists.shape, dtype=np.float32)

    def _whole(self, W: csr_array) -> csr_array:
        from scipy.sparse import csr_array

        indptr = np.zeros(self._shape[0] + 1, W.indptr.dtype)
        indptr[self._live + 1] = np.diff(W.indptr)
        return csr_array((W.data, W.indices, np.cumsum(indptr, dtype=W.indptr.dtype)), shape=self._shape)


def _fall(before: int, now: int, by: float, wanted: int) -> float:
    """What l1 should fall by to leave a little less than the pairs wanted, if they go on to grow as they have."""
    if not 0 < before < now:
        return FALL
    growth = float(np.log(now / before) / np.log(by))
    return float(np.clip((now / (0.5 * (1.0 + CLOSE) * wanted)) ** (1.0 / growth), FALL, 0.98))


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


def _fista(products: Products, w: Matrix, l1: float, nonnegative: bool, effort: Effort) -> Matrix:
    """Proximal steps on u = h w, whose squared part has a unit diagonal; momentum is dropped where it leads astray.

    One product a step: the product at the point ahead follows from those at the last two. The step is 1 / `curve`,
    which grows wherever a step has met with more curvature than that.
    """
    h: Matrix = np.sqrt(products.scale)
    right: Matrix = products.right_side() / h
    u: Matrix = w * h
    curve, t = 2.0, 1.0
    moved = products(u / h) / h
    ahead, ahead_moved = u, moved
    for _ in range(effort.steps):
        slope: Matrix = right - ahead_moved
        towards: Matrix = np.add(ahead, slope / np.float32(curve), dtype=np.float32)
        new = _shrunk(towards, np.float32(l1 / curve), nonnegative)
        new_moved = products(new / h) / h
        step, bent = new - ahead, new_moved - ahead_moved
        length = _dot(step, step)
        if length > 0.0 and _dot(step, bent) > curve * length * 1.0001:
            curve = 1.5 * _dot(step, bent) / length
            ahead, ahead_moved, t = u, moved, 1.0
            continue
        astray = _dot(ahead - new, new - u) > 0.0
        t, before = (1.0, 1.0) if astray else (0.5 + float(np.sqrt(0.25 + t * t)), t)
        push = np.float32(0.0 if astray else (before - 1.0) / t)
        ahead, ahead_moved = new + push * (new - u), new_moved + push * (new_moved - moved)
        u, moved = new, new_moved
        if curve * float(np.abs(step).max(initial=0.0)) <= effort.tol * l1:
            break
    return np.asarray(u / h, dtype=np.float32)


def _shrunk(u: Matrix, by: np.float32, nonnegative: bool) -> Matrix:
    size = np.maximum((u if nonnegative else np.abs(u)) - by, np.float32(0.0))
    return np.asarray(size if nonnegative else np.copysign(size, u), dtype=np.float32)


def _dot(a: Matrix, b: Matrix) -> float:
    return float(np.sum(a.astype(np.float64) * b))
