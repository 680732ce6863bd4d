"""PatternRidge: the ridge solution of a list problem on a fixed pattern P of pairs, by conjugate gradient.

    ((QᵀVQ + a) W (DᵀD + b))_P = (Qᵀ V Y D)_P

Products run over blocks of documents, so memory is bounded by the pairs and one block; or over DᵀD at the words of the
pattern, which reads no document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..thread_pool import map_in_threads
from .closed_form import Side, multiply_targets
from .document_source import DocumentSource
from .linalg import conjugate_gradient
from .losses import Squared
from .penalties import Ridge
from .problems import ListProblem, Matrix, compute_squared_norms
from .solver import Solution, Solver

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK_FLOATS = 1 << 26
"""Numbers in the dense product of W's rows and a block of documents."""
MAX_WORDS = 16_384
"""The most columns of a pattern whose products run over DᵀD: this matrix takes 1 GiB until its zeros are removed."""


class Operator(Protocol):
    """The normal equations at the entries of a pattern: a matrix, its diagonal and its right-hand side."""

    diagonal: Matrix

    def right_side(self) -> Matrix:
        """(Qᵀ V Y D)_P"""

    def __call__(self, weight: Matrix) -> Matrix:
        """((QᵀVQ + a) W (DᵀD + b))_P"""


OperatorFactory = Callable[[ListProblem, Ridge, "csr_array", int], AbstractContextManager[Operator]]
"""factory(problem, ridge, W, threads): the operator on the pattern of W."""


@dataclass(frozen=True)
class NormalEquations:
    """The normal equations without a pattern."""

    weighted_queries: csr_array
    D: csr_array
    targets: csr_array
    target_mean: float
    gram: csr_array
    diagonals: tuple[NDArray[np.float64], NDArray[np.float64]]
    ridge_document: float

    @classmethod
    def of(cls, problem: ListProblem, ridge: Ridge) -> NormalEquations:
        """The normal equations of a problem."""
        from scipy.sparse import csr_array, eye_array

        identity = eye_array(problem.shape[0], dtype=np.float32, format="csr")
        gram = csr_array(problem.query_gram + np.float32(ridge.query) * identity).astype(np.float32)
        gram.sort_indices()
        queries = compute_squared_norms(problem.Q, problem.weight) + ridge.query
        documents = compute_squared_norms(problem.D) + ridge.document
        return cls(
            problem.weighted_queries, problem.D, problem.targets, problem.target_mean, gram, (queries, documents),
            ridge.document,
        )  # fmt: skip


class LocalOperator:
    """The operator on the pattern of W, computed here."""

    def __init__(self, equations: NormalEquations, W: csr_array, threads: int = 1) -> None:
        self._equations, self._threads = equations, threads
        self._live = np.flatnonzero(np.diff(W.indptr))  # only rows with an entry take part
        self._gram = equations.gram[self._live][:, self._live]
        self._start, self._column, self._width = np.append(W.indptr[self._live], W.nnz), W.indices, W.shape[1]
        entries = np.linspace(0, W.nnz, 4 * threads + 1)[1:-1]
        bounds = np.unique([0, *np.searchsorted(self._start, entries), len(self._live)])
        self._bounds = list(pairwise(bounds.tolist()))
        row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
        diagonal = equations.diagonals[0][row] * equations.diagonals[1][W.indices]
        self.diagonal = np.where(diagonal > 0.0, diagonal, 1.0).astype(np.float32)

    @cached_property
    def _blocks(self) -> list[tuple[int, Any]]:
        D = self._equations.D
        width = max(1, min(D.shape[0], BLOCK_FLOATS // max(len(self._live), 1)))
        return [(at, D[at : at + width].tocsc()) for at in range(0, D.shape[0], width)]

    def _run_rows(self, kernel: Any, *arguments: Any) -> None:
        rows = self._start, self._column
        map_in_threads(lambda bound: kernel(*bound, *rows, *arguments), self._bounds, self._threads)

    def right_side(self) -> Matrix:
        """(Qᵀ V Y D)_P"""
        from .._kernels.pattern import at_pairs

        equations, out = self._equations, np.zeros(len(self._column), np.float32)
        by_word = equations.weighted_queries.T.tocsr()[self._live]
        words = np.asarray(by_word.sum(axis=1)).ravel()
        for at, D in self._blocks:
            left = (by_word @ equations.targets[:, at : at + D.shape[0]]).toarray()
            left -= np.float32(equations.target_mean) * words[:, None]
            self._run_rows(at_pairs, np.ascontiguousarray(left, np.float32), D.indptr, D.indices, D.data, out)
        return out

    def __call__(self, weight: Matrix) -> Matrix:
        """((QᵀVQ + a) W (DᵀD + b))_P"""
        from .._kernels.pattern import gram_at_pairs, times_documents

        out = np.zeros_like(weight)
        gram = self._gram.indptr, self._gram.indices, self._gram.data
        for _, D in self._blocks:
            product = np.zeros((len(self._live), D.shape[0]), np.float32)
            self._run_rows(times_documents, weight, D.indptr, D.indices, D.data, product)
            self._run_rows(gram_at_pairs, *gram, product, D.indptr, D.indices, D.data, out)
        self.add_document_ridge(weight, out)
        return out

    def between_grams(self, weight: Matrix, column: NDArray[np.int32], word_gram: tuple[NDArray[Any], ...]) -> Matrix:
        """((QᵀVQ + a) W K)_P, with the columns of W numbered as in K."""
        from .._kernels.pattern import between_grams

        gram, out = (self._gram.indptr, self._gram.indices, self._gram.data), np.zeros_like(weight)

        def run(bound: tuple[int, int]) -> None:
            between_grams(*bound, self._start, column, weight, *gram, *word_gram, out)

        map_in_threads(run, self._bounds, self._threads)
        return out

    def add_document_ridge(self, weight: Matrix, out: Matrix) -> None:
        """out += b ((QᵀVQ + a) W)_P"""
        from .._kernels.pattern import gram_times

        b = self._equations.ridge_document
        if b > 0.0:
            gram = self._gram.indptr, self._gram.indices, self._gram.data
            self._run_rows(gram_times, weight, *gram, np.float32(b), self._width, out)


class WordOperator:
    """The operator on the pattern of W from sums over queries and documents: a product reads no document.

    It keeps DᵀD at the columns of W without its zeros: the words that never occur together.
    """

    def __init__(self, problem: ListProblem, ridge: Ridge, W: csr_array, threads: int) -> None:
        equations = NormalEquations.of(problem, ridge)
        self._local = LocalOperator(equations, W, threads)
        self.diagonal = self._local.diagonal
        columns, column = np.unique(W.indices, return_inverse=True)
        D, queries = Side(problem.D, words=columns), equations.weighted_queries
        word_gram = D.compute_gram(threads)
        word_gram[np.diag_indices(len(columns))] += np.float32(ridge.document)
        self._word_gram = _without_zeros(word_gram)
        self._column = column.astype(np.int32)
        live = np.flatnonzero(np.diff(W.indptr))
        row = np.repeat(np.arange(len(live)), np.diff(W.indptr)[live])
        self._right_side = multiply_targets(queries[:, live], problem.targets, D, threads)[row, column]
        ones = np.asarray(queries[:, live].sum(axis=0)).ravel()[row] * D.ones[column]
        self._right_side -= np.float32(problem.target_mean) * ones.astype(np.float32)

    def right_side(self) -> Matrix:
        """(Qᵀ V Y D)_P"""
        return self._right_side

    def __call__(self, weight: Matrix) -> Matrix:
        """((QᵀVQ + a) W (DᵀD + b))_P"""
        return self._local.between_grams(weight, self._column, self._word_gram)


def _without_zeros(matrix: Matrix) -> tuple[NDArray[Any], ...]:
    """The same matrix as CSR arrays: where each row starts, columns in 16 bits, and values."""
    start = np.append(0, np.cumsum(np.count_nonzero(matrix, axis=1)))
    column, value = np.empty(start[-1], np.uint16), np.empty(start[-1], np.float32)
    for row, begin, end in zip(matrix, start[:-1], start[1:], strict=True):
        column[begin:end] = places = np.flatnonzero(row)
        value[begin:end] = row[places]
    return start, column, value


def product_costs(problem: ListProblem, W: csr_array) -> tuple[float, float]:
    """Return bounds of the multiplications of one product: from documents, and from sums in words.

    The second one is infinite if the sums would not fit.
    """
    n_columns = len(np.unique(W.indices))
    by_documents = float(problem.query_gram.nnz) * problem.D.shape[0]
    return by_documents, float(W.nnz) * n_columns if n_columns <= MAX_WORDS else np.inf


@contextmanager
def local_operator(problem: ListProblem, ridge: Ridge, W: csr_array, threads: int) -> Iterator[Operator]:
    """The operator on the pattern of W, computed by threads: from documents, or from sums in words if cheaper.

    Documents that are elsewhere compute their part of it there.
    """
    by_documents, by_words = product_costs(problem, W)
    if by_words < by_documents:
        yield WordOperator(problem, ridge, W, threads)
    elif isinstance(problem.D, DocumentSource):
        with problem.D.operator(problem, ridge, W) as operator:
            yield operator
    else:
        yield LocalOperator(NormalEquations.of(problem, ridge), W, threads)


@dataclass(frozen=True)
class PatternRidge(Solver):
    """Conjugate gradient on the entries that W has; `operator` computes the products, here or on a cluster."""

    max_iter: int = 10
    n_jobs: int | None = None
    operator: OperatorFactory = local_operator
    losses: ClassVar[tuple[type, ...]] = (Squared,)
    penalties: ClassVar[tuple[type, ...]] = (Ridge,)

    def __post_init__(self) -> None:
        validation.count("max_iter", self.max_iter)
        validation.threads(self.n_jobs)

    def solve(self, problem: ListProblem, penalty: Ridge, init: csr_array, fixed: Any = None) -> Solution:
        """W's entries after `max_iter` steps from `init`; entries marked by `fixed` stay."""
        from scipy.sparse import csr_array

        self.check(problem.loss, penalty)
        W = csr_array(init, copy=True)
        W.sort_indices()
        free = np.float32(1.0) if fixed is None else (~fixed).astype(np.float32)
        with self.operator(problem, penalty, W, validation.threads(self.n_jobs)) as A:
            W.data, converged = conjugate_gradient(
                lambda v: A(v) * free,
                A.right_side() * free,
                W.data.astype(np.float32),
                lambda r: r / A.diagonal,
                self.max_iter,
                float(np.finfo(np.float32).eps),
            )
        message = "the residual is 0 to float32" if converged else f"stopped after {self.max_iter} steps"
        return Solution(W, info={"converged": converged, "message": message})
