"""PatternRidge: the ridge solution of a list problem on a fixed pattern P of pairs, by conjugate gradient.

    ((QᵀVQ + a) W (DᵀD + b))_P = (Qᵀ V Y D)_P

Products run over blocks of documents, so memory is bounded by the pairs and one block; or over DᵀD at the words of the
pattern, which reads no document.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..thread_pool import map_in_threads
from .closed_form import BLOCK_ROWS, Side, multiply_targets, transposed_product
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
"""The most columns of a pattern whose products run over DᵀD, of which entries that are not zero take 6 bytes."""
ROWS_FLOATS = 1 << 20
"""Numbers in the dense rows of a sum in words, of which only the entries of the pattern or those not 0 are kept."""


class Operator(Protocol):
    """The normal equations at the entries of a pattern: a matrix, its diagonal and its right-hand side."""

    diagonal: Matrix

    def right_side(self) -> Matrix:
        """(Qᵀ V Y D)_P"""

    def __call__(self, weight: Matrix) -> Matrix:
        """((QᵀVQ + a) W (DᵀD + b))_P"""


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

    def __init__(
        self, equations: NormalEquations, W: csr_array, threads: int = 1, block_floats: float = np.inf
    ) -> None:
        self._equations, self._threads = equations, threads
        self._block_floats = int(min(BLOCK_FLOATS, block_floats))
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
        width = max(1, min(D.shape[0], self._block_floats // max(len(self._live), 1)))
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

    It keeps DᵀD at the columns of W without its zeros: the words that never occur together. Sums are dense for a
    few rows at a time.
    """

    def __init__(self, problem: ListProblem, ridge: Ridge, W: csr_array, threads: int) -> None:
        equations = NormalEquations.of(problem, ridge)
        self._local = LocalOperator(equations, W, threads)
        self.diagonal = self._local.diagonal
        columns, column = np.unique(W.indices, return_inverse=True)
        D, queries = Side(problem.D, words=columns), equations.weighted_queries
        self._word_gram = _sparse_gram(D, ridge.document, threads)
        self._column = column.astype(np.int32)
        live = np.flatnonzero(np.diff(W.indptr))
        row = np.repeat(np.arange(len(live)), np.diff(W.indptr)[live])
        self._right_side = np.empty(W.nnz, np.float32)
        for at, rows in _targets_of_words(queries[:, live], problem.targets, D, threads):
            first, last = np.searchsorted(row, [at, at + len(rows)])
            self._right_side[first:last] = rows[row[first:last] - at, column[first:last]]
        ones = np.asarray(queries[:, live].sum(axis=0)).ravel()[row] * D.ones[column]
        self._right_side -= np.float32(problem.target_mean) * ones.astype(np.float32)

    def right_side(self) -> Matrix:
        """(Qᵀ V Y D)_P"""
        return self._right_side

    def __call__(self, weight: Matrix) -> Matrix:
        """((QᵀVQ + a) W (DᵀD + b))_P"""
        return self._local.between_grams(weight, self._column, self._word_gram)


def _sparse_gram(D: Side, ridge: float, threads: int) -> tuple[NDArray[Any], ...]:
    """DᵀD + b at the words of D as CSR arrays without zeros: where each row starts, columns in 16 bits, and values."""
    assert D.words is not None
    counts, columns, values = [np.empty(0, np.int64)], [np.empty(0, np.uint16)], [np.empty(0, np.float32)]
    for at, rows in _gram_rows(D, threads):
        places = np.arange(len(rows))
        rows[places, at + places] += np.float32(ridge)
        row, column = np.nonzero(rows)
        counts.append(np.bincount(row, minlength=len(rows)))
        columns.append(column.astype(np.uint16))
        values.append(rows[row, column])
    return np.append(0, np.cumsum(np.concatenate(counts))), np.concatenate(columns), np.concatenate(values)


def _gram_rows(D: Side, threads: int) -> Iterator[tuple[int, Matrix]]:
    """Dense rows of DᵀD at the words of D, and the number of the first."""
    if isinstance(D.X, DocumentSource):
        gram = D.compute_gram()
        yield from ((at, gram[at : at + BLOCK_ROWS]) for at in range(0, len(gram), BLOCK_ROWS))
    else:
        yield from _iterate_rows(D.weighted, D.weighted, threads)


def _targets_of_words(queries: Any, targets: csr_array, D: Side, threads: int) -> Iterator[tuple[int, Matrix]]:
    """Dense rows of queriesᵀ Y D at the words of D, and the number of the first."""
    if isinstance(D.X, DocumentSource):
        yield 0, multiply_targets(queries, targets, D, threads)
    else:
        yield from _iterate_rows(queries, targets @ D.weighted, threads)


def _iterate_rows(A: Any, B: Any, threads: int) -> Iterator[tuple[int, Matrix]]:
    """Dense rows of Aᵀ B, and the number of the first."""
    A, height = A.tocsc(), max(1, ROWS_FLOATS // max(B.shape[1], 1))
    for at in range(0, A.shape[1], height):
        yield at, transposed_product(A[:, at : at + height], B, threads)


def product_costs(problem: ListProblem, W: csr_array, max_words: float = np.inf) -> tuple[float, float]:
    """Return bounds of the multiplications of one product: from documents, and from sums in words.

    The second one is infinite if the sums would not fit.
    """
    n_columns = len(np.unique(W.indices))
    by_documents = float(problem.query_gram.nnz) * problem.D.shape[0]
    return by_documents, float(W.nnz) * n_columns if n_columns <= min(MAX_WORDS, max_words) else np.inf


@contextmanager
def local_operator(
    problem: ListProblem, ridge: Ridge, W: csr_array, threads: int, max_words: float = np.inf
) -> Iterator[Operator]:
    """The operator on the pattern of W, computed by threads: from documents, or from sums in words if cheaper.

    Documents that are elsewhere compute their part of it there. `max_words` bounds the memory of both: a matrix of so
    many words.
    """
    by_documents, by_words = product_costs(problem, W, max_words)
    if by_words < by_documents:
        yield WordOperator(problem, ridge, W, threads)
    elif isinstance(problem.D, DocumentSource):
        with problem.D.operator(problem, ridge, W) as operator:
            yield operator
    else:
        yield LocalOperator(NormalEquations.of(problem, ridge), W, threads, max_words**2)


@dataclass(frozen=True)
class PatternRidge(Solver):
    """Conjugate gradient on the entries that W has; a matrix of `max_words` words fits the memory."""

    max_iter: int = 10
    n_jobs: int | None = None
    max_words: float = np.inf
    losses: ClassVar[tuple[type, ...]] = (Squared,)
    penalties: ClassVar[tuple[type, ...]] = (Ridge,)

    def __post_init__(self) -> None:
        validation.count("max_iter", self.max_iter)
        validation.threads(self.n_jobs)

    def solve(
        self, problem: ListProblem, penalty: Ridge, init: csr_array, fixed: Any = None, report: Any = None
    ) -> Solution:
        """W's entries after `max_iter` steps from `init`; entries marked by `fixed` stay.

        report : called with the fraction of the steps that are done.
        """
        from scipy.sparse import csr_array

        self.check(problem.loss, penalty)
        W = csr_array(init, copy=True)
        W.sort_indices()
        free = np.float32(1.0) if fixed is None else (~fixed).astype(np.float32)
        with local_operator(problem, penalty, W, validation.threads(self.n_jobs), self.max_words) as A:
            steps = count()

            def product(v: Matrix) -> Matrix:
                if report is not None:
                    report(min(next(steps) / self.max_iter, 1.0))
                return A(v) * free

            W.data, converged = conjugate_gradient(
                product,
                A.right_side() * free,
                W.data.astype(np.float32),
                lambda r: r / A.diagonal,
                self.max_iter,
                float(np.finfo(np.float32).eps),
            )
        message = "the residual is 0 to float32" if converged else f"stopped after {self.max_iter} steps"
        return Solution(W, info={"converged": converged, "message": message})
