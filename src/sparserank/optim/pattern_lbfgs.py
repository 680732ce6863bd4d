"""PatternLBFGS: a listwise loss on the pairs of a pattern, beside a score that is there already: s = base + qᵀ W d.

    sum_q v_q loss(s_q, c_q) + penalty(W - W⁰)

c_qp is the share of document p in the grades of query q. Scores are dense in tiles of queries × documents, one tile at
a time: all documents, or those that a batch of queries brings along.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import validation
from .losses import Domination, Softmax
from .penalties import L2
from .problems import ListProblem, Matrix, RerankingProblem
from .solver import Solution, Solver

if TYPE_CHECKING:
    from scipy.sparse import csr_array

TILE_FLOATS = 1 << 24
"""Numbers in a dense tile of queries × documents, if every document is a negative."""


@dataclass(frozen=True)
class Negatives:
    """The documents that the relevant ones should beat: all (batch = 0), or those of a batch of queries.

    batch : queries in a batch. Their documents are the relevant ones of each, and the hard negatives of each.
    hard : hard negatives of a query: documents with the highest base score that are not relevant.
    """

    batch: int = 0
    hard: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        validation.count("batch", self.batch)
        validation.count("hard", self.hard)

    def make_tiles(self, problem: RerankingProblem) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Pairs of queries and the documents that they are compared on."""
        relevant = problem.lists.relevant
        queries, everything = np.flatnonzero(np.diff(relevant.indptr)), np.arange(relevant.shape[1])
        if not self.batch:
            height = max(1, TILE_FLOATS // max(len(everything), 1))
            return [(queries[at : at + height], everything) for at in range(0, len(queries), height)]
        order = np.random.default_rng(self.seed).permutation(queries)
        batches = [np.sort(order[at : at + self.batch]) for at in range(0, len(order), self.batch)]
        return [
            (batch, np.union1d(relevant[batch].indices, problem.find_hardest(batch, self.hard).ravel()))
            for batch in batches
        ]


ALL_DOCUMENTS = Negatives()


@dataclass(frozen=True)
class PatternLBFGS(Solver):
    """L-BFGS on the entries that W has."""

    max_iter: int = 10
    negatives: Negatives = ALL_DOCUMENTS
    n_jobs: int | None = None
    losses: ClassVar[tuple[type, ...]] = (Domination, Softmax)
    penalties: ClassVar[tuple[type, ...]] = (L2,)

    def __post_init__(self) -> None:
        validation.count("max_iter", self.max_iter)
        validation.threads(self.n_jobs)

    def solve(
        self, problem: RerankingProblem, penalty: L2, init: csr_array, fixed: Any = None, nonnegative: bool = False
    ) -> Solution:
        """W's entries from `init`, which the penalty pulls them to; entries marked by `fixed` stay."""
        from scipy.optimize import minimize
        from scipy.sparse import csr_array

        self.check(problem.loss, penalty)
        W = csr_array(init, copy=True)
        W.sort_indices()
        loss = ListLoss(problem, self.negatives, validation.threads(self.n_jobs))
        free = np.ones(W.nnz, np.bool_) if fixed is None else ~fixed
        start, w = W.data.astype(np.float64), W.data.astype(np.float64)

        def objective(moved: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            w[free] = moved
            value, gradient = loss.evaluate(W, w)
            return value + penalty.value(w - start), (gradient + 2.0 * penalty.alpha * (w - start))[free]

        bounds = [(0.0, None)] * int(free.sum()) if nonnegative else None
        options = {"maxiter": self.max_iter}
        found = minimize(objective, start[free], jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        w[free] = found.x
        W.data = w.astype(np.float32)
        return Solution(W, info={"converged": bool(found.success), "message": str(found.message)})


class ListLoss:
    """The loss of a reranking problem as a function of W's entries."""

    def __init__(self, problem: RerankingProblem, negatives: Negatives, threads: int = 1) -> None:
        self._problem, self._threads = problem, threads
        self._tiles = negatives.make_tiles(problem)

    def evaluate(self, pattern: csr_array, weight: NDArray[Any]) -> tuple[float, NDArray[np.float64]]:
        """The loss of these weights on the pattern, and its gradient."""
        evaluate_loss = LOSS_FUNCTIONS[type(self._problem.loss)]
        total, gradient = 0.0, np.zeros(pattern.nnz, np.float64)
        with ThreadPoolExecutor(self._threads) as pool:
            for tile in self._iterate_tiles(pattern):
                scores = tile.base + tile.compute_scores(weight.astype(np.float32), pool)
                value, by_score = evaluate_loss(scores, tile.share)
                total += value
                gradient += tile.project(by_score, pool)
        return total, gradient

    def _iterate_tiles(self, pattern: csr_array) -> Iterator[_Tile]:
        lists, base, excluded = self._problem.lists, self._problem.base, self._problem.excluded
        live = np.flatnonzero(np.diff(pattern.indptr))
        indptr = np.append(0, np.cumsum(np.diff(pattern.indptr)[live]))
        bounds = np.unique(np.searchsorted(indptr, np.linspace(0, indptr[-1], 4 * self._threads + 1)))
        for queries, documents in self._tiles:
            here = base[queries][:, documents].astype(np.float32)
            place = np.searchsorted(documents, np.maximum(excluded[queries], 0))
            place = np.minimum(place, len(documents) - 1)
            hidden = (excluded[queries] >= 0) & (documents[place] == excluded[queries])
            here[np.flatnonzero(hidden), place[hidden]] = -np.inf
            Q, D = lists.Q[queries][:, live], lists.D[documents].tocsc()
            share = compute_shares(lists, queries)[:, documents]
            yield _Tile(Q, D, here, share, indptr, pattern.indices, list(pairwise(bounds.tolist())))


def compute_shares(lists: ListProblem, queries: NDArray[np.intp]) -> csr_array:
    """v_q c_qp"""
    from scipy.sparse import csr_array

    grades = lists.relevant[queries]
    total = np.asarray(grades.sum(axis=1), dtype=np.float64).ravel()
    scale = np.where(total > 0.0, lists.query_weights[queries] / np.where(total > 0.0, total, 1.0), 0.0)
    return csr_array(grades.multiply(scale[:, None]))


@dataclass(frozen=True)
class _Tile:
    """Some queries and documents; Q has the columns that are rows of the pattern with an entry."""

    Q: csr_array
    D: Any
    base: Matrix
    share: csr_array
    start: NDArray[Any]
    column: NDArray[Any]
    bounds: list[tuple[int, int]]

    def compute_scores(self, weight: Matrix, pool: ThreadPoolExecutor) -> Matrix:
        """Q W Dᵀ"""
        from .._kernels.pattern import times_documents

        product = np.zeros((self.Q.shape[1], self.D.shape[0]), np.float32)
        self._run_rows(pool, times_documents, weight, self.D.indptr, self.D.indices, self.D.data, product)
        return np.asarray(self.Q @ product, dtype=np.float32)

    def project(self, gradient: Matrix, pool: ThreadPoolExecutor) -> Matrix:
        """(Qᵀ G D)_P"""
        from .._kernels.pattern import at_pairs

        left = np.ascontiguousarray(self.Q.T @ gradient, dtype=np.float32)
        out = np.zeros(len(self.column), np.float32)
        self._run_rows(pool, at_pairs, left, self.D.indptr, self.D.indices, self.D.data, out)
        return out

    def _run_rows(self, pool: ThreadPoolExecutor, kernel: Any, *arguments: Any) -> None:
        list(pool.map(lambda bound: kernel(*bound, self.start, self.column, *arguments), self.bounds))


def softmax_loss(scores: Matrix, share: csr_array) -> tuple[float, Matrix]:
    """sum_qp share_qp log(sum_d exp(s_d - s_p)), and its gradient; a score of -inf is no candidate."""
    row, column = share.tocoo().coords
    there = np.isfinite(scores[row, column])
    row, column, data = row[there], column[there], share.data[there]
    top, odds, total = _exponentials(scores)
    loss = float(np.sum(data * ((np.log(total) + top)[row] - scores[row, column])))
    gradient = np.asarray(odds * (np.bincount(row, data, len(scores)) / total)[:, None], np.float32)
    gradient[row, column] -= data
    return loss, gradient


def domination_loss(scores: Matrix, share: csr_array) -> tuple[float, Matrix]:
    """sum_qp share_qp log(1 + sum_n exp(s_n - s_p)), and its gradient; a score of -inf is no candidate."""
    row, column = share.tocoo().coords
    losers = scores.copy()
    losers[row, column] = -np.inf
    top, odds, total = _exponentials(losers)
    # a query that everything is relevant to has no losers: log 0 = -inf, and the loss is 0
    with np.errstate(divide="ignore"):
        away = (np.log(total) + top)[row] - scores[row, column]
    away = np.where(np.isfinite(scores[row, column]), away, -np.inf)
    loss = float(np.sum(share.data * np.logaddexp(0.0, away)))
    lost = share.data / (1.0 + np.exp(np.minimum(-away, 700.0)))
    by_query = np.bincount(row, lost, len(scores)) / np.where(total > 0, total, 1.0)
    gradient = np.asarray(odds * by_query[:, None], np.float32)
    gradient[row, column] -= lost
    return loss, gradient


def _exponentials(scores: Matrix) -> tuple[NDArray[np.float64], Any, NDArray[np.float64]]:
    """The highest score of each row, exp(scores - that), and its sum."""
    top = scores.max(axis=1, initial=-np.inf)
    top = np.where(np.isfinite(top), top, np.float32(0.0))
    odds = np.exp(scores - top[:, None])
    return top.astype(np.float64), odds, odds.sum(axis=1, dtype=np.float64)


LOSS_FUNCTIONS: dict[type, Any] = {Domination: domination_loss, Softmax: softmax_loss}
