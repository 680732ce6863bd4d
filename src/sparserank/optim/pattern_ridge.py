"""The squared loss over all lists, on the pairs of a pattern: conjugate gradients, W's entries being the unknowns.

    ((QᵀQ + a) W (DᵀD + b))_P = (Qᵀ Y D)_P

Products go through the documents, a block of them at a time, so memory is bounded by the pairs and one block.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .. import validation
from .list_problem import JudgedLists, Matrix, Ridge, squared_lengths

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK = 1 << 26
"""Numbers in the dense product of W's rows and a block of documents."""


class PatternRidge:
    """Lists, a penalty, and solves on any pattern over them."""

    def __init__(self, lists: JudgedLists, evenness: float, ridge: Ridge, n_jobs: int | None = None) -> None:
        from scipy.sparse import csr_array, eye_array

        self._lists, self._ridge, self._threads = lists, ridge, validation.threads(n_jobs)
        self._targets, self._mean = lists.targets(evenness)
        held = np.float32(ridge.a) * eye_array(lists.shape[0], dtype=np.float32, format="csr")
        self._gram = csr_array(lists.Q.T @ lists.weighted + held).astype(np.float32)
        self._gram.sort_indices()
        self._length = [squared_lengths(lists.Q, lists.weight) + ridge.a, squared_lengths(lists.D) + ridge.b]

    def refit(self, W: csr_array, steps: int, fixed: Any = None) -> csr_array:
        """W's entries after so many steps of conjugate gradients from where they are; `fixed` entries stay."""
        from scipy.sparse import csr_array

        W = csr_array(W, copy=True)
        W.sort_indices()
        with ThreadPoolExecutor(self._threads) as pool:
            products = self._products(W, pool)
            W.data = _conjugate_gradients(products, W.data.astype(np.float32), steps, fixed)
        return W

    def _products(self, W: csr_array, pool: ThreadPoolExecutor) -> Operator:
        """What conjugate gradients ask for, on the pattern of W; a solver that makes products elsewhere says how."""
        return Products(self, W, pool)

    def part(self, first: int, last: int) -> PatternRidge:
        """The same problem seen from documents first … last - 1 alone, without b: what parts give adds up to the whole.

        It has one thread.
        """
        lists, one = self._lists, object.__new__(PatternRidge)
        one._lists = JudgedLists(lists.Q, lists.D[first:last], lists.grades[:, first:last], lists.weight)
        one._targets, one._mean = self._targets[:, first:last], self._mean
        one._gram, one._length = self._gram, self._length
        one._ridge, one._threads = Ridge(self._ridge.a, 0.0), 1
        return one


class Operator(Protocol):
    """A symmetric positive operator on the entries of a pattern, its right side and the size of its diagonal."""

    scale: Matrix

    def right_side(self) -> Matrix:
        """What the operator should give."""

    def __call__(self, weight: Matrix) -> Matrix:
        """What it gives."""


class Products:
    """The operator and the right side, at the entries of one pattern."""

    def __init__(self, problem: PatternRidge, W: csr_array, pool: ThreadPoolExecutor) -> None:
        self._problem, self._pool = problem, pool
        live = np.flatnonzero(np.diff(W.indptr))  # the only rows that take part
        self._live, self._gram = live, problem._gram[live][:, live]
        self._start, self._column, self._width = np.append(W.indptr[live], W.nnz), W.indices, W.shape[1]
        entries = np.linspace(0, W.nnz, 4 * problem._threads + 1)
        self._bounds = list(pairwise(np.unique([0, *np.searchsorted(self._start, entries[1:-1]), len(live)]).tolist()))
        row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
        left, right = problem._length
        scale = left[row] * right[W.indices]
        self.scale = np.where(scale > 0.0, scale, 1.0).astype(np.float32)

    @cached_property
    def _blocks(self) -> list[tuple[int, Any]]:
        D = self._problem._lists.D
        width = max(1, min(D.shape[0], BLOCK // max(len(self._live), 1)))
        return [(at, D[at : at + width].tocsc()) for at in range(0, D.shape[0], width)]

    def _rows(self, kernel: Any, *arguments: Any) -> None:
        list(self._pool.map(lambda bound: kernel(*bound, self._start, self._column, *arguments), self._bounds))

    def right_side(self) -> Matrix:
        """(Qᵀ Y D)_P"""
        from .._kernels.pattern import at_pairs

        problem, out = self._problem, np.zeros(len(self._column), np.float32)
        by_word = problem._lists.weighted.T.tocsr()[self._live]
        words = np.asarray(by_word.sum(axis=1)).ravel()
        for at, D in self._blocks:
            left = (by_word @ problem._targets[:, at : at + D.shape[0]]).toarray()
            left -= np.float32(problem._mean) * words[:, None]
            self._rows(at_pairs, np.ascontiguousarray(left, np.float32), D.indptr, D.indices, D.data, out)
        return out

    def __call__(self, weight: Matrix) -> Matrix:
        """((QᵀQ + a) W (DᵀD + b))_P"""
        from .._kernels.pattern import at_pairs, gram_rows, times_documents

        b, out = self._problem._ridge.b, np.zeros_like(weight)
        gram = self._gram.indptr, self._gram.indices, self._gram.data
        for _, D in self._blocks:
            product, left = (np.zeros((len(self._live), D.shape[0]), np.float32) for _ in range(2))
            self._rows(times_documents, weight, D.indptr, D.indices, D.data, product)
            list(self._pool.map(lambda bound: gram_rows(*bound, *gram, product, left), self._bounds))  # noqa: B023
            self._rows(at_pairs, left, D.indptr, D.indices, D.data, out)
        if b > 0.0:
            self.held_back(weight, out)
        return out

    def held_back(self, weight: Matrix, out: Matrix) -> None:
        """out += b ((QᵀQ + a) W)_P"""
        from .._kernels.pattern import gram_times

        gram = self._gram.indptr, self._gram.indices, self._gram.data
        self._rows(gram_times, weight, *gram, np.float32(self._problem._ridge.b), self._width, out)


def _conjugate_gradients(products: Operator, w: Matrix, steps: int, fixed: Any) -> Matrix:
    """Preconditioned by the diagonal; inner products in 64 bits, without BLAS: the same bits for any threads."""
    free = np.float32(1.0) if fixed is None else (~fixed).astype(np.float32)
    missed = (products.right_side() - products(w)) * free
    step: Matrix = np.divide(missed, products.scale, dtype=np.float32)
    direction, fit = step, _dot(missed, step)
    rounding = fit * float(np.finfo(np.float32).eps) ** 2
    for _ in range(steps):
        if fit <= rounding:  # what is left would vanish step by step until the numbers give out
            break
        pushed = products(direction) * free
        length = np.float32(fit / _dot(direction, pushed))
        w = w + length * direction
        missed = missed - length * pushed
        step = np.divide(missed, products.scale, dtype=np.float32)
        fit, before = _dot(missed, step), fit
        direction = np.add(step, np.float32(fit / before) * direction, dtype=np.float32)
    return w


def _dot(a: Matrix, b: Matrix) -> float:
    return float(np.sum(a.astype(np.float64) * b))
