"""Losses on full lists, on the pairs of a pattern, beside a score that is there already:  s = base + qᵀ W d.

    domination   sum_q v_q sum_p c_qp log(1 + sum_n exp(s_n - s_p))
    softmax      sum_q v_q sum_p c_qp log(sum_d exp(s_d - s_p))          + ½ pull ‖W - W⁰‖²

p runs over the relevant documents of q, n over those that are not relevant, d over both; c_qp is p's share of the
query's grades, v_q the query's weight. Documents come in tiles, queries × documents: every document there is, or those
that the queries of one batch bring along – what is relevant to one of them, and what the base score ranks highest
without its being relevant (hard negatives). Each tile is dense, one at a time; that is all the memory there is to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from .list_problem import JudgedLists, Matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LOSSES = ("domination", "softmax")
TILE = 1 << 24
"""Numbers in a dense tile of queries × documents, where every document is a negative."""


@dataclass(frozen=True)
class Negatives:
    """Which documents a query's relevant ones should beat: all, or (batch > 0) those of its batch of queries.

    hard : how many of the documents that the base score ranks highest, and that are not relevant, each query brings.
    """

    batch: int = 0
    hard: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        validation.count("batch", self.batch)
        validation.count("hard", self.hard)

    def tiles(self, listed: Listed) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Queries and documents that meet."""
        asking = np.flatnonzero(np.diff(listed.lists.relevant.indptr))
        everything = np.arange(listed.lists.D.shape[0])
        if not self.batch:
            height = max(1, TILE // max(len(everything), 1))
            return [(asking[at : at + height], everything) for at in range(0, len(asking), height)]
        order = np.random.default_rng(self.seed).permutation(asking)
        batches = [np.sort(order[at : at + self.batch]) for at in range(0, len(order), self.batch)]
        return [(queries, self._brought(listed, queries)) for queries in batches]

    def _brought(self, listed: Listed, queries: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.union1d(listed.lists.relevant[queries].indices, hardest(listed, queries, self.hard).ravel())


@dataclass(frozen=True)
class Listed:
    """Lists, the score that is there already (queries × documents), and the document a query may not find (or -1)."""

    lists: JudgedLists
    base: Matrix
    own: NDArray[np.int64]


def hardest(listed: Listed, queries: NDArray[np.intp], k: int) -> NDArray[np.intp]:
    """For each query, the k documents with the highest base score among those that are not relevant (nor its own)."""
    k = min(k, listed.lists.D.shape[0])
    score, own = listed.base[queries].astype(np.float32), listed.own[queries]
    relevant = listed.lists.relevant[queries].tocoo()
    score[relevant.coords] = -np.inf
    score[np.flatnonzero(own >= 0), own[own >= 0]] = -np.inf
    return np.argsort(-score, axis=1, kind="stable")[:, :k]


EVERYTHING = Negatives()
"""Every document there is."""


class PatternSoftmax:
    """One of the two losses over lists; `refit` learns the entries of a W by it, from where they are."""

    def __init__(
        self, listed: Listed, loss: str, pull: float, negatives: Negatives = EVERYTHING, n_jobs: int | None = None
    ) -> None:
        self._loss, self._pull = validation.choice("loss", loss, LOSSES), validation.number("pull", pull, low=0.0)
        self._listed, self._threads = listed, validation.threads(n_jobs)
        self._tiles = negatives.tiles(listed)

    def refit(self, W: csr_array, steps: int, fixed: Any = None, nonnegative: bool = False) -> csr_array:
        """W's entries after at most so many steps of L-BFGS; `fixed` entries stay, none falls below 0 where so told."""
        from scipy.optimize import minimize
        from scipy.sparse import csr_array

        W = csr_array(W, copy=True)
        W.sort_indices()
        free = np.ones(W.nnz, np.bool_) if fixed is None else ~fixed
        start, w = W.data.astype(np.float64), W.data.astype(np.float64)

        def objective(moved: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            w[free] = moved
            value, slope = self.loss_and_slope(W, w)
            away = w - start
            return value + 0.5 * self._pull * float(np.sum(away * away)), (slope + self._pull * away)[free]

        bounds = [(0.0, None)] * int(free.sum()) if nonnegative else None
        options = {"maxiter": steps}
        found = minimize(objective, start[free], jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        w[free] = found.x
        W.data = w.astype(np.float32)
        return W

    def loss_and_slope(self, pattern: csr_array, weight: NDArray[Any]) -> tuple[float, NDArray[np.float64]]:
        """The loss, without the pull, of these weights on a pattern, and its derivative by each of them."""
        total, slope = 0.0, np.zeros(pattern.nnz, np.float64)
        with ThreadPoolExecutor(self._threads) as pool:
            for tile in self._matrices(pattern):
                scores = tile.base + tile.learned(weight.astype(np.float32), pool)
                value, pushed = LOSS[self._loss](scores, tile.share)
                total += value
                slope += tile.at_pairs(pushed, pool)
        return total, slope

    def _matrices(self, pattern: csr_array) -> Iterator[_Tile]:
        lists, base, own = self._listed.lists, self._listed.base, self._listed.own
        live = np.flatnonzero(np.diff(pattern.indptr))
        indptr = np.append(0, np.cumsum(np.diff(pattern.indptr)[live]))
        bounds = np.unique(np.searchsorted(indptr, np.linspace(0, indptr[-1], 4 * self._threads + 1)))
        for queries, documents in self._tiles:
            here = base[queries][:, documents].astype(np.float32)
            place = np.searchsorted(documents, np.maximum(own[queries], 0))
            place = np.minimum(place, len(documents) - 1)
            hidden = (own[queries] >= 0) & (documents[place] == own[queries])
            here[np.flatnonzero(hidden), place[hidden]] = -np.inf
            Q, D = lists.Q[queries][:, live], lists.D[documents].tocsc()
            share = shares(lists, queries)[:, documents]
            yield _Tile(Q, D, here, share, indptr, pattern.indices, list(pairwise(bounds.tolist())))


def shares(lists: JudgedLists, queries: NDArray[np.intp]) -> csr_array:
    """v_q c_qp"""
    from scipy.sparse import csr_array

    grades = lists.relevant[queries]
    total = np.asarray(grades.sum(axis=1), dtype=np.float64).ravel()
    scale = np.where(total > 0.0, lists.weights[queries] / np.where(total > 0.0, total, 1.0), 0.0)
    return csr_array(grades.multiply(scale[:, None]))


@dataclass(frozen=True)
class _Tile:
    """Some queries by some documents, and the rows of a pattern that have an entry (those are Q's columns)."""

    Q: csr_array
    D: Any
    base: Matrix
    share: csr_array
    start: NDArray[Any]
    column: NDArray[Any]
    bounds: list[tuple[int, int]]

    def learned(self, weight: Matrix, pool: ThreadPoolExecutor) -> Matrix:
        """Q W Dᵀ"""
        from .._kernels.pattern import times_documents

        product = np.zeros((self.Q.shape[1], self.D.shape[0]), np.float32)
        self._rows(pool, times_documents, weight, self.D.indptr, self.D.indices, self.D.data, product)
        return np.asarray(self.Q @ product, dtype=np.float32)

    def at_pairs(self, pushed: Matrix, pool: ThreadPoolExecutor) -> Matrix:
        """(Qᵀ G D)_P"""
        from .._kernels.pattern import at_pairs

        left = np.ascontiguousarray(self.Q.T @ pushed, dtype=np.float32)
        out = np.zeros(len(self.column), np.float32)
        self._rows(pool, at_pairs, left, self.D.indptr, self.D.indices, self.D.data, out)
        return out

    def _rows(self, pool: ThreadPoolExecutor, kernel: Any, *arguments: Any) -> None:
        list(pool.map(lambda bound: kernel(*bound, self.start, self.column, *arguments), self.bounds))


def domination(scores: Matrix, share: csr_array) -> tuple[float, Matrix]:
    """sum_qp share_qp log(1 + sum_n exp(s_n - s_p)), and its derivative by each score; a score of -inf is not there."""
    row, column = share.tocoo().coords
    beaten = scores.copy()
    beaten[row, column] = -np.inf
    top, odds, total = _exponentials(beaten)
    # a query that everything is relevant to has nothing to beat: log 0 = -inf, and the loss is 0
    with np.errstate(divide="ignore"):
        away = (np.log(total) + top)[row] - scores[row, column]
    away = np.where(np.isfinite(scores[row, column]), away, -np.inf)
    loss = float(np.sum(share.data * np.logaddexp(0.0, away)))
    lost = share.data / (1.0 + np.exp(np.minimum(-away, 700.0)))
    pushed = np.asarray(odds * (np.bincount(row, lost, len(scores)) / np.where(total > 0, total, 1.0))[:, None], "f4")
    pushed[row, column] -= lost
    return loss, pushed


def softmax(scores: Matrix, share: csr_array) -> tuple[float, Matrix]:
    """sum_qp share_qp log(sum_d exp(s_d - s_p)), and its derivative by each score; a score of -inf is not there."""
    row, column = share.tocoo().coords
    there = np.isfinite(scores[row, column])
    row, column, data = row[there], column[there], share.data[there]
    top, odds, total = _exponentials(scores)
    loss = float(np.sum(data * ((np.log(total) + top)[row] - scores[row, column])))
    pushed = np.asarray(odds * (np.bincount(row, data, len(scores)) / total)[:, None], np.float32)
    pushed[row, column] -= data
    return loss, pushed


LOSS = {"domination": domination, "softmax": softmax}


def _exponentials(scores: Matrix) -> tuple[NDArray[np.float64], Matrix, NDArray[np.float64]]:
    """The highest score of each row, exp(scores - that), and its sum."""
    top = scores.max(axis=1, initial=-np.inf)
    top = np.where(np.isfinite(top), top, np.float32(0.0))
    odds = np.exp(scores - top[:, None])
    return top.astype(np.float64), odds, odds.sum(axis=1, dtype=np.float64)
